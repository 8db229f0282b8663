// SPDX-License-Identifier: MIT
#include <heed/plot/chart.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <heed/plot/detail/axis.hpp>

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

TEST(Axis, PowersOfTen) {
  EXPECT_EQ(labels(make_log_axis(0.0004, 2, 6, true)),
            (Labels{"0.0001", "0.001", "0.01", "0.1", "1", "10"}));
  const Axis axis = make_log_axis(1, 1000, 5, true);
  EXPECT_NEAR(axis.share(10), 1. / 3, 1e-12);
  EXPECT_TRUE(std::isnan(axis.share(0)));
  EXPECT_TRUE(std::isnan(axis.share(-1)));
  EXPECT_EQ(axis.minor_ticks.size(), 3u * 8);
  EXPECT_LE(make_log_axis(1e-300, 1e300, 5, true).ticks.size(), 6u);
  EXPECT_NEAR(make_log_axis(1e-300, 1e300, 5, true).share(1), 0.5, 1e-12);
  EXPECT_EQ(labels(make_log_axis(2, 5, 5, false)), (Labels{"2", "5"}));
  EXPECT_LT(make_log_axis(3, 3, 5, true).low, 3);
}

TEST(Axis, NearlyOneValueAtAPowerOfTen) {
  for (const double power : {1e-300, 1e-3, 1., 10., 1e299}) {
    for (const bool widen : {false, true}) {
      const double low = power * (1 - 5e-11), high = power * (1 + 5e-11);
      const Axis axis = make_log_axis(low, high, 5, widen);
      for (const double share : {axis.share(low), axis.share(high)}) {
        EXPECT_TRUE(share >= 0 && share <= 1) << power << " " << widen << " " << share;
      }
      EXPECT_LE(axis.low, low) << power;
      EXPECT_GE(axis.high, high) << power;
      EXPECT_GE(axis.ticks.size(), 2u) << power;
    }
  }
}

TEST(Axis, ValuesAtRoundedTicksAreOnIt) {
  for (int low = 0; low < 100; ++low) {
    for (int high = low + 1; high < 100; ++high) {
      const Axis axis = make_axis(low / 10., high / 10., 6, true);
      EXPECT_GE(axis.share(low / 10.), 0) << low << " " << high;
      EXPECT_LE(axis.share(high / 10.), 1) << low << " " << high;
    }
  }
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

namespace heed {
namespace {

TEST(Chart, SeriesOfAnyVector) {
  const std::vector<float> values = {3, 1, 2};
  const Series series = series_of(values, "loss", 1);
  EXPECT_EQ(series.name, "loss");
  EXPECT_EQ(series.x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(series.y, (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(series_of(view_of(values).reverse(0)).y, (std::vector<double>{2, 1, 3}));
}

TEST(Chart, AxesHoldEveryFinitePoint) {
  Chart chart;
  chart.series = {{"", {0, 1, 2, 9}, {1, NAN, 3, INFINITY}}, {"", {-4}, {2}}};
  const auto axes = detail::axes_of(chart, 6, 5);
  EXPECT_EQ(axes.x.low, -4);
  EXPECT_EQ(axes.x.high, 2);
  EXPECT_EQ(axes.y.low, 1);
  EXPECT_EQ(axes.y.high, 3);
  chart.low = 0;
  chart.high = 2.5;
  EXPECT_EQ(detail::axes_of(chart, 6, 5).y.high, 2.5);
  chart.low = 50;
  chart.high.reset();
  EXPECT_GT(detail::axes_of(chart, 6, 5).y.high, 50) << "a low end above all values";
  const auto empty = detail::axes_of({}, 6, 5);
  EXPECT_EQ(empty.y.high, 1);
}

TEST(Chart, PositionsHaveNoTicksBetweenThem) {
  Chart chart;
  chart.series = {{"", {5, 6, 9}, {1, 2, 3}}};
  EXPECT_EQ(detail::axes_of(chart, 10, 5).x.step, 1);
  chart.series[0].x[1] = 5.5;
  EXPECT_EQ(detail::axes_of(chart, 10, 5).x.step, 0.5);
  chart.series = {{"", {3}, {1}}};
  EXPECT_LT(detail::axes_of(chart, 10, 5).x.low, 3);
}

TEST(Chart, BarsHaveRoomAndTheirZero) {
  Chart chart;
  chart.series = {{"", {0, 2, 4}, {5, 6, 7}, true}};
  auto axes = detail::axes_of(chart, 10, 5);
  EXPECT_EQ(axes.x.low, -1);
  EXPECT_EQ(axes.x.high, 5);
  EXPECT_EQ(axes.y.low, 0);
  EXPECT_FALSE(axes.both);
  chart.series.push_back({"", {0, 2, 4}, {100, 200, 150}, false, true});
  axes = detail::axes_of(chart, 10, 5);
  EXPECT_TRUE(axes.both);
  EXPECT_EQ(axes.y.high, 8);
  EXPECT_EQ(axes.right.low, 100) << "a line needs no 0";
  chart.series[0].bars = false;
  EXPECT_EQ(detail::axes_of(chart, 10, 5).x.low, 0);
  chart.series = {{"", {3}, {2}, true}};
  EXPECT_EQ(detail::axes_of(chart, 10, 5).x.low, 2.5) << "a bar alone";
}

TEST(Chart, NamesTakeThePlaceOfNumbers) {
  Chart chart;
  chart.x_labels = {"a", "b", "c"};
  for (const bool bars : {false, true}) {
    chart.series = {{"", {0, 1}, {1, 2}, bars}};
    const auto axes = detail::axes_of(chart, 10, 5);
    EXPECT_EQ(axes.x.low, -0.5);
    EXPECT_EQ(axes.x.high, 2.5);
    EXPECT_EQ(axes.x.ticks, (std::vector<double>{0, 1, 2}));
  }
}

TEST(Chart, RunsEndWhereAPointIsMissing) {
  Chart chart;
  chart.series = {{"", {0, 1, 2, 3, 4}, {NAN, 1, 2, NAN, 3}}};
  const auto axes = detail::axes_of(chart, 5, 5);
  const auto runs = detail::runs_of(chart.series[0], axes);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].size(), 2u);
  EXPECT_EQ(runs[1].size(), 1u);
  EXPECT_EQ(runs[1][0].x, 1);
}

TEST(Chart, PlacesOfBarsThatDifferByRoundingAreOne) {
  const auto thinnest = [](const Chart& chart) {
    double width = 1;
    for (const auto& bar : detail::bars_of(chart, detail::axes_of(chart, 5, 5))) {
      width = std::min(width, bar.right - bar.left);
    }
    return width;
  };
  Chart chart;
  chart.series = {{"", {0.1, 0.2, 0.1 + 0.2}, {1, 2, 3}, true},
                  {"", {0.1, 0.2, 0.3}, {1, 2, 3}, true}};
  EXPECT_GT(thinnest(chart), 0.1);
  chart.series = {{"", {0.1 + 0.2}, {1}, true}, {"", {0.3}, {1}, true}};
  EXPECT_GT(thinnest(chart), 0.1);
  chart.series = {{"", {1.7e9, 1.7e9 + 1, 1.7e9 + 3}, {1, 2, 3}, true}};
  EXPECT_GT(thinnest(chart), 0.1);
}

TEST(Chart, WhatAnAxisLeavesOutIsNotDrawn) {
  Chart chart;
  chart.series = {{"", {0, 1, 1e305, 2}, {1, 2, 3, 4}}, {"", {0, 1, 1e305, 2}, {1, 2, 3, 4}, true}};
  const auto axes = detail::axes_of(chart, 5, 5);
  EXPECT_EQ(detail::runs_of(chart.series[0], axes).size(), 2u);
  EXPECT_EQ(detail::bars_of(chart, axes).size(), 3u);
}

TEST(Chart, LinesAreCutAtTheEndsOfTheAxis) {
  detail::ChartPoint a{0, -1}, b{1, 3};
  ASSERT_TRUE(detail::clip(a, b));
  EXPECT_DOUBLE_EQ(a.x, 0.25);
  EXPECT_DOUBLE_EQ(a.y, 0);
  EXPECT_DOUBLE_EQ(b.x, 0.5);
  EXPECT_DOUBLE_EQ(b.y, 1);
  detail::ChartPoint c{0, 2}, d{1, 1.5};
  EXPECT_FALSE(detail::clip(c, d));
}

TEST(Chart, RefusesWhatCannotBeDrawn) {
  Chart chart;
  chart.series = {{"loss", {1, 2}, {1}}};
  try {
    detail::check_chart(chart);
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "chart: series 'loss' has 2 x and 1 y");
  }
  chart.series.clear();
  for (const auto& [low, high] : {std::pair{1., 1.}, {0., double(NAN)}, {double(-INFINITY), 0.}}) {
    chart.low = low;
    chart.high = high;
    EXPECT_THROW(detail::check_chart(chart), InvalidArgument) << low << " " << high;
    Chart right;
    right.right_low = low;
    right.right_high = high;
    EXPECT_THROW(detail::check_chart(right), InvalidArgument) << low << " " << high;
  }
  try {
    detail::check_chart({.low = -1, .log_y = true});
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "chart: y from -1 to none; expected a range within 1e300, low first, above 0");
  }
  Chart log{.series = {{"", {1}, {1}, true}}, .log_x = true};
  EXPECT_THROW(detail::check_chart(log), InvalidArgument) << "bars";
  log.series[0].bars = false;
  EXPECT_NO_THROW(detail::check_chart(log));
  log.x_labels = {"name"};
  EXPECT_THROW(detail::check_chart(log), InvalidArgument) << "names";
}

TEST(Chart, ColorsDifferAndReadOnWhite) {
  std::set<std::tuple<int, int, int>> colors;
  for (std::size_t i = 0; i < 7; ++i) {
    const Color color = detail::line_color(i);
    colors.emplace(color.red, color.green, color.blue);
    EXPECT_GT(contrast(color, {255, 255, 255}), 2) << i;
  }
  EXPECT_EQ(colors.size(), 7u);
}

}  // namespace
}  // namespace heed
