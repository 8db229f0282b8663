// SPDX-License-Identifier: MIT
#include <heed/attention/options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

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
