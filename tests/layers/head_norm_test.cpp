// SPDX-License-Identifier: MIT
#include <heed/layers/detail/head_norm.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

TEST(HeadNorm, EachHeadForItself) {
  std::optional<Norm<double>> norm(NormOptions{NormKind::layer, 4});
  std::mt19937_64 bits(1);
  const auto x = random_tensor<double, 3>({2, 3, 12}, bits);
  const auto grad = random_tensor<double, 3>({2, 3, 12}, bits);
  Norm<double>::Saved saved, saved_head;
  const auto y = detail::head_norm(norm, 4, x, &saved);
  EXPECT_TRUE(same_bits(detail::head_norm(norm, 4, x), y));
  auto gradients = norm, head_gradients = norm;
  set_zero(*gradients);
  set_zero(*head_gradients);
  const auto grad_x = detail::head_norm_backward(norm, 4, grad, saved, gradients);
  for (Index head = 0; head < 3; ++head) {
    const auto of_head = [&](const Tensor<double, 3>& all) {
      return Tensor<double, 3>::copy_of(all.view().slice(2, 4 * head, 4 * head + 4));
    };
    EXPECT_TRUE(same_bits(norm->forward(of_head(x), saved_head), of_head(y))) << head;
    EXPECT_TRUE(
        same_bits(norm->backward(of_head(grad), saved_head, *head_gradients), of_head(grad_x)))
        << head;
  }
  for (Index i = 0; i < 4; ++i) {
    EXPECT_NEAR(gradients->layer->weight[i], head_gradients->layer->weight[i], 1e-12);
  }
}

TEST(HeadNorm, NothingWithoutANorm) {
  std::optional<Norm<float>> none;
  std::mt19937_64 bits(2);
  const auto x = random_tensor<float, 3>({1, 2, 6}, bits);
  EXPECT_TRUE(same_bits(detail::head_norm(none, 3, x), x));
  EXPECT_TRUE(same_bits(detail::head_norm_backward(none, 3, x, {}, none), x));
}

}  // namespace
}  // namespace heed::test
