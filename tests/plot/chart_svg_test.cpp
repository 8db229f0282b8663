// SPDX-License-Identifier: MIT
#include <heed/plot/svg.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Chart two_lines() {
  Chart chart;
  chart.series = {{"truth", {0, 1, 2}, {1, 3, 2}}, {"<guess>", {0, 1, 2}, {1, NAN, 2}}};
  chart.title = "A & B";
  chart.x_title = "step";
  chart.y_title = "token";
  return chart;
}

TEST(ChartSvg, LinesMarksTicksAndLegend) {
  const std::string svg = to_svg(two_lines());
  EXPECT_EQ(count(svg, "stroke-linejoin"), 3u) << "a line, and 2 of the legend";
  EXPECT_EQ(count(svg, "<title>"), 5u) << "a point that is NaN is not drawn";
  EXPECT_NE(svg.find("<title>truth: 1 → 3</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>&lt;guess&gt;: 2 → 2</title>"), std::string::npos);
  EXPECT_NE(svg.find(">&lt;guess&gt;</text>"), std::string::npos);
  EXPECT_NE(svg.find(">A &amp; B</text>"), std::string::npos);
  for (const char* word : {">step</text>", ">token</text>", ">1.0</text>", ">3.0</text>"}) {
    EXPECT_NE(svg.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(count(svg, "<g"), count(svg, "</g>"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("http", svg.find("http") + 1), std::string::npos) << "no network";
}

TEST(ChartSvg, WhereAPointStands) {
  Chart chart;
  chart.series = {{"", {0, 10}, {0, 1}}};
  // Margin 16, 20.8 for "0.0", a gap of 8: from 45 on 560 pixels wide, 300 high from 16 on, and 8
  // between the ends of the axes and the edges.
  EXPECT_NE(to_svg(chart).find("d=\"M53 308L597 24\""), std::string::npos) << to_svg(chart);
  chart.low = 0;
  chart.high = 0.5;
  EXPECT_NE(to_svg(chart).find("d=\"M53 308L325 24\""), std::string::npos) << "cut off";
}

TEST(ChartSvg, LogarithmicAxis) {
  Chart chart;
  chart.series = {{"loss", {0, 1, 2, 3}, {1, 0.1, 0, 0.01}}};
  chart.log_y = true;
  const std::string svg = to_svg(chart);
  for (const char* tick : {">1</text>", ">0.1</text>", ">0.01</text>"}) {
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  }
  EXPECT_EQ(count(svg, "<title>"), 3u) << "0 has no place";
  chart.low = 0;
  EXPECT_THROW(to_svg(chart), InvalidArgument);
}

TEST(ChartSvg, PointsThatTheAxisLeavesOutHaveNoMarks) {
  Chart chart;
  chart.series = {{"loss", {0, 1e305, 1, -1e305, INFINITY, NAN}, {1, 2, 3, 2, 2, 2}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "<title>"), 2u);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(ChartSvg, LongLinesHaveNoVisibleMarks) {
  Chart chart;
  chart.series = {series_of(std::vector<double>(500, 1.0), "flat")};
  EXPECT_EQ(count(to_svg(chart), "fill=\"#fff\""), 1u) << "the background";
  EXPECT_EQ(count(to_svg(chart), "fill-opacity=\"0\""), 500u);
  EXPECT_EQ(count(to_svg(chart), "<title>"), 500u);
}

TEST(ChartSvg, SeveralAndNone) {
  const Chart charts[] = {two_lines(), {}, two_lines()};
  EXPECT_EQ(count(to_svg(charts, 2), ">step</text>"), 2u);
  EXPECT_EQ(count(to_svg(std::span<const Chart>()), "<svg"), 1u);
  Chart broken = two_lines();
  broken.series[0].x.pop_back();
  EXPECT_THROW(to_svg(broken), ShapeError);
}

}  // namespace
}  // namespace heed
