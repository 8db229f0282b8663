// SPDX-License-Identifier: MIT
#include <heed/plot/line_chart.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const double tick : axis.ticks) result.push_back(axis.label(tick));
  return result;
}
using Labels = std::vector<std::string>;

TEST(Axis, RoundNumbersInsideTheRange) {
  EXPECT_EQ(labels(make_axis(0, 9, 10, false)),
            (Labels{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  EXPECT_EQ(labels(make_axis(1, 20, 5, false)), (Labels{"5", "10", "15", "20"}));
  EXPECT_EQ(labels(make_axis(-0.31, 0.29, 6, false)),
            (Labels{"-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2"}));
  EXPECT_EQ(labels(make_axis(0, 3e9, 3, false)), (Labels{"0", "1e+09", "2e+09", "3e+09"}));
}

TEST(Axis, WidenedToEndOnTicks) {
  const Axis axis = make_axis(2.204, 2.347, 5, true);
  EXPECT_EQ(labels(axis), (Labels{"2.20", "2.25", "2.30", "2.35"}));
  EXPECT_DOUBLE_EQ(axis.low, 2.2);
  EXPECT_DOUBLE_EQ(axis.high, 2.35);
  EXPECT_NEAR(axis.share(2.275), 0.5, 1e-12);
}

TEST(Axis, StepsAreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_DOUBLE_EQ(round_step(10, 10), 1);
  EXPECT_DOUBLE_EQ(round_step(11, 10), 2);
  EXPECT_DOUBLE_EQ(round_step(0.03, 10), 0.005);
  EXPECT_DOUBLE_EQ(round_step(7e-9, 1), 1e-8);
}

TEST(Axis, OneValueAndHugeOnes) {
  for (const double value : {0., 3., -7e12, 1e-300}) {
    for (const bool widen : {false, true}) {
      const Axis axis = make_axis(value, value, 5, widen);
      EXPECT_LT(axis.low, value);
      EXPECT_GT(axis.high, value);
      EXPECT_FALSE(axis.ticks.empty());
      EXPECT_LE(axis.ticks.size(), 8u);
    }
  }
  EXPECT_LE(make_axis(-1e300, 1e300, 5, true).ticks.size(), 8u);
  EXPECT_LE(make_axis(1e15, 1e15 + 1, 5, true).ticks.size(), 8u);
}

}  // namespace
}  // namespace heed::detail
