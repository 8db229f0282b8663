// SPDX-License-Identifier: MIT
#include <heed/attention/gradient_options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(BiasGradientView, TakesEveryRankAsFour) {
  Tensor<float, 1> keys({5});
  Tensor<float, 2> scores({3, 5});
  Tensor<float, 4> all({2, 1, 3, 5});
  EXPECT_EQ(BiasGradientView<float>(keys).view().extents(), (Extents<4>{1, 1, 1, 5}));
  EXPECT_EQ(BiasGradientView<float>(scores.view()).view().extents(), (Extents<4>{1, 1, 3, 5}));
  EXPECT_EQ(BiasGradientView<float>(all).view().data_handle(), all.data());
  EXPECT_TRUE(BiasGradientView<float>(all).given());
  EXPECT_FALSE(BiasGradientView<float>().given());
}

}  // namespace
}  // namespace heed
