// SPDX-License-Identifier: MIT
#include <heed/attention/options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(BiasView, ExtentsOfOneAreRepeated) {
  const Tensor<float, 3> per_head({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const auto bias = BiasView<float>(per_head).over({5, 2, 7, 3});
  EXPECT_EQ(bias.view().extents(), (Extents<4>{5, 2, 7, 3}));
  EXPECT_EQ(bias.view()(4, 1, 6, 2), 6.f);
  EXPECT_EQ(bias.view()(0, 0, 3, 1), 2.f);
}

TEST(BiasView, NothingStaysNothing) {
  EXPECT_FALSE(BiasView<float>().given());
  EXPECT_FALSE(BiasView<float>().over({1, 2, 3, 4}).given());
}

TEST(BiasView, OtherExtentsAreRefused) {
  const Tensor<double, 2> bias({4, 5});
  EXPECT_THROW(BiasView<double>(bias).over({1, 1, 4, 6}), ShapeError);
}

}  // namespace
}  // namespace heed
