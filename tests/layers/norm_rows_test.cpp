// SPDX-License-Identifier: MIT
#include <heed/layers/detail/norm_rows.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(NormRows, CenteringIsAllThatTellsTheNormsApart) {
  const Tensor<double, 1> weight({2}, {1, 1});
  const Tensor<double, 3> x({1, 1, 2}, {3, -3});  // mean 0: both norms agree
  const auto centered = detail::NormRows<double>("a", weight, nullptr, 0, true).forward(x, nullptr);
  const auto plain = detail::NormRows<double>("b", weight, nullptr, 0, false).forward(x, nullptr);
  EXPECT_EQ(centered(0, 0, 0), 1);
  EXPECT_EQ(plain(0, 0, 0), 1);
  EXPECT_EQ(plain(0, 0, 1), -1);
}

}  // namespace
}  // namespace heed
