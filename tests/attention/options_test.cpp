// SPDX-License-Identifier: MIT
#include <heed/attention/options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(AttentionOptions, DefaultsAskForNothing) {
  const AttentionOptions<float> options;
  EXPECT_FALSE(options.scale.has_value());
  EXPECT_FALSE(options.first_query.has_value());
  EXPECT_TRUE(options.first_queries.empty());
  EXPECT_FALSE(options.log_sum_exp.given());
}

TEST(PerQueryView, TakesTensorsOfRankOneToThree) {
  Tensor<float, 1> one({5});
  Tensor<float, 2> two({4, 5});
  Tensor<float, 3> three({3, 4, 5});
  EXPECT_EQ(PerQueryView<float>(one).view().extents(), (Extents<3>{1, 1, 5}));
  EXPECT_EQ(PerQueryView<float>(two).view().extents(), (Extents<3>{1, 4, 5}));
  EXPECT_EQ(PerQueryView<float>(three.view().reverse(2)).view().stride(2), -1);
  PerQueryView<float>(one).view()(0, 0, 4) = 7;
  EXPECT_EQ(one(4), 7);
}

}  // namespace
}  // namespace heed
