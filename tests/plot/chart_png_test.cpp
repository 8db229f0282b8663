// SPDX-License-Identifier: MIT
#include <heed/plot/png.hpp>

#include <gtest/gtest.h>

#include <filesystem>

#include <heed/plot/detail/axis.hpp>

namespace heed {
namespace {

Index pixels_of(const detail::PngCanvas& canvas, const Color& color) {
  Index count = 0;
  for (Index y = 0; y < canvas.height(); ++y) {
    for (Index x = 0; x < canvas.width(); ++x) count += canvas.at(x, y) == color;
  }
  return count;
}

detail::PngCanvas drawn(const Chart& chart) {
  return detail::PngWriter(detail::picture_of(chart), {}).canvas();
}

TEST(ChartPng, LinesInTheirColors) {
  Chart chart;
  chart.series = {{"a", {0, 1}, {0, 1}}, {"b", {0, 1}, {1, 0}}};
  const auto both = drawn(chart);
  for (const std::size_t line : {0u, 1u}) {
    EXPECT_GT(pixels_of(both, detail::line_color(line)), 300) << line;
  }
  EXPECT_EQ(pixels_of(both, detail::line_color(2)), 0);
  chart.high = 0.5;
  const auto cut = drawn(chart);
  const auto wide = pixels_of(both, detail::line_color(0));
  EXPECT_LT(pixels_of(cut, detail::line_color(0)), wide) << "cut off at the end of the axis";
  EXPECT_EQ(cut.at(cut.width() / 2, 10), (Color{255, 255, 255}));
}

TEST(ChartPng, DashesHaveGaps) {
  Chart chart;
  chart.series = {{"", {0, 1}, {0, 0}}};
  chart.series[0].x.resize(100, 1);  // many points have no marks
  chart.series[0].y.resize(100, 0);
  const auto colored = [](const detail::PngCanvas& canvas) {
    Index count = 0;
    for (Index y = 0; y < canvas.height(); ++y) {
      for (Index x = 0; x < canvas.width(); ++x) {
        count += canvas.at(x, y).red + 40 < canvas.at(x, y).blue ? 1 : 0;
      }
    }
    return count;
  };
  const auto solid = colored(drawn(chart));
  chart.series.resize(7);
  chart.series.push_back(chart.series[0]);
  chart.series[0] = {};
  const auto dashed = colored(drawn(chart));
  EXPECT_GT(dashed, solid / 4);
  EXPECT_LT(dashed, 3 * solid / 4);
}

TEST(ChartPng, WritesAFile) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("heed_l_" + std::to_string(::getpid()))).string();
  Chart chart;
  chart.title = "title";
  for (std::size_t i = 0; i < 9; ++i) chart.series.push_back({"line", {0, 1}, {0, double(i)}});
  const Chart charts[] = {chart, {}};
  write_png(path, charts);
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  write_png(path, chart);
  EXPECT_THROW(write_png("/no/such/folder/x.png", chart), FileError);
  chart.series[0].x.pop_back();
  EXPECT_THROW(write_png(path, chart), ShapeError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace heed
