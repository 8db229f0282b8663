// SPDX-License-Identifier: MIT
#include <heed/attention/gradient_options.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed {
namespace {

TEST(PerQueryInput, TakesEveryRankAsThree) {
  const Tensor<float, 3> three({2, 3, 4});
  const Tensor<float, 2> two({3, 4});
  const std::vector<float> one(4);
  EXPECT_EQ(PerQueryInput<float>(three).view().extents(), (Extents<3>{2, 3, 4}));
  EXPECT_EQ(PerQueryInput<float>(two).view().extents(), (Extents<3>{1, 3, 4}));
  EXPECT_EQ(PerQueryInput<float>(one).view().extents(), (Extents<3>{1, 1, 4}));
  Tensor<float, 3> writable({1, 1, 5});
  EXPECT_EQ(PerQueryInput<float>(writable.view()).view().data_handle(), writable.data());
  EXPECT_TRUE(PerQueryInput<float>(one).given());
  EXPECT_FALSE(PerQueryInput<float>().given());
}

static_assert(!std::is_constructible_v<PerQueryInput<float>, Tensor<double, 3>>);

}  // namespace
}  // namespace heed
