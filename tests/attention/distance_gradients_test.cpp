// SPDX-License-Identifier: MIT
#include <heed/masks.hpp>

#include "support/changed_gradients.hpp"

namespace heed::test {
namespace {

TEST(DistanceGradients, OneTableForAllHeadsGetsTheSumOverHeads) {
  const Shape shape{2, 3, 3, 70, 90, 4, 3};
  const Inputs<double> in(shape, 1);
  const Loss<double> loss(shape, 1);
  Changes<double> score_mods(shape, 1);
  for (Index h = 1; h < 3; ++h) {
    for (Index i = 0; i < 19; ++i)
      score_mods.relative_table(h, i) = score_mods.relative_table(0, i);
  }
  const auto each =
      fused_changed(shape, in, loss, masks::Causal{}, score_mods, Changes<double>::relative);
  score_mods.relative_table =
      Tensor<double, 2>::copy_of(score_mods.relative_table.view().slice(0, 0, 1));
  const auto one =
      fused_changed(shape, in, loss, masks::Causal{}, score_mods, Changes<double>::relative);
  for (Index i = 0; i < 19; ++i) {
    EXPECT_NEAR(one.relative(0, i), each.relative(0, i) + each.relative(1, i) + each.relative(2, i),
                1e-13);
  }
}

TEST(DistanceGradients, ASlopeIsARelativeBiasOfItsOwn) {
  // − slope · |distance| has the gradient − Σ |distance| · (that of a relative bias).
  const Shape shape{1, 1, 1, 30, 30, 4, 3};
  const Inputs<double> in(shape, 2);
  const Loss<double> loss(shape, 2);
  Changes<double> score_mods(shape, 2);
  score_mods.relative_table = Tensor<double, 2>({1, 59});
  std::fill(score_mods.relative_table.begin(), score_mods.relative_table.end(), 0.0);
  const auto result = fused_changed(shape, in, loss, masks::Causal{}, score_mods,
                                    Changes<double>::relative | Changes<double>::alibi);
  double slope = 0;
  for (Index i = 0; i < 59; ++i) {
    slope -= std::fabs(static_cast<double>(i - 29)) * result.relative(0, i);
  }
  EXPECT_NEAR(result.slopes[0], slope, 1e-12);
}

}  // namespace
}  // namespace heed::test
