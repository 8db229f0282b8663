// SPDX-License-Identifier: MIT
#include <heed/training/optimizers.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <training/tiny_model.hpp>

namespace heed {
namespace {

struct Large {
  Tensor<float, 1> first{{70001}};
  Tensor<float, 2> second{Extents<2>{3, 20000}};
  static auto members(auto& model) {
    return std::tuple{member("first", model.first), member("second", model.second)};
  }
};

Large random_large() {
  Large model;
  Random random(1);
  for (float& value : model.first) value = random.normal<float>();
  for (float& value : model.second) value = 100 * random.normal<float>();
  return model;
}

TEST(GradientNorm, AgreesWithLongDoubleForAnyThreads) {
  const Large model = random_large();
  long double exact = 0;
  for (const float value : model.first) exact += static_cast<long double>(value) * value;
  for (const float value : model.second) exact += static_cast<long double>(value) * value;
  const auto expected = static_cast<double>(std::sqrt(exact));
  const Index threads = thread_count();
  set_thread_count(1);
  const double one = gradient_norm(model).value;
  EXPECT_NEAR(one / expected, 1, 1e-14);
  for (const Index count : {2, 3, 5}) {
    set_thread_count(count);
    EXPECT_EQ(gradient_norm(model).value, one);
  }
  set_thread_count(threads);
}

TEST(GradientNorm, FloatsDoNotOverflow) {
  Large model;
  model.first(7) = 3e38f;
  model.second(2, 5) = -2e38f;
  const auto norm = gradient_norm(model);
  EXPECT_TRUE(norm.infinite.empty());
  EXPECT_NEAR(norm.value / std::hypot(3e38, 2e38), 1, 1e-6);
}

TEST(GradientNorm, NamesTheFirstThatIsNotFinite) {
  Large model = random_large();
  model.second(2, 19999) = NAN;
  EXPECT_EQ(gradient_norm(model).infinite, "second");
  model.first(70000) = -INFINITY;
  EXPECT_EQ(gradient_norm(model).infinite, "first");
}

TEST(ClipGradientNorm, ScalesWhatIsTooLong) {
  Large model = random_large();
  const double norm = gradient_norm(model).value;
  const Large before = model;
  EXPECT_EQ(clip_gradient_norm(model, norm).value, norm);
  EXPECT_EQ(std::memcmp(model.first.data(), before.first.data(), 70001 * sizeof(float)), 0);
  EXPECT_EQ(clip_gradient_norm(model, 2.5).value, norm);
  EXPECT_NEAR(gradient_norm(model).value, 2.5, 1e-6);
  EXPECT_NEAR(model.second(1, 1) / before.second(1, 1), 2.5 / norm, 1e-8);
}

TEST(ClipGradientNorm, LeavesWhatIsNotFinite) {
  Large model = random_large();
  model.first(3) = INFINITY;
  const Large before = model;
  const auto norm = clip_gradient_norm(model, 1);
  EXPECT_EQ(norm.infinite, "first");
  EXPECT_EQ(std::memcmp(model.second.data(), before.second.data(), 60000 * sizeof(float)), 0);
  EXPECT_THROW(clip_gradient_norm(model, 0), InvalidArgument);
  EXPECT_THROW(clip_gradient_norm(model, NAN), InvalidArgument);
}

}  // namespace
}  // namespace heed
