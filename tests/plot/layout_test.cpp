// SPDX-License-Identifier: MIT
// What SVG and PNG draw: no text touches another or leaves the picture, whatever its labels are.
#include <heed/plot/detail/drawing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <heed/plot.hpp>
#include <heed/plot/detail/axis.hpp>

namespace heed::detail {
namespace {

using Corners = std::array<Point, 4>;

/// True if a line along a side of `a` has `a` on one side and `b` on the other.
bool parted(const Corners& a, const Corners& b) {
  for (std::size_t side = 0; side < 4; ++side) {
    const Point& from = a[side];
    const Point& to = a[(side + 1) % 4];
    const auto beyond = [&](const Point& p) {
      return (to.x - from.x) * (p.y - from.y) - (to.y - from.y) * (p.x - from.x) <= 1e-6;
    };
    bool all = true;
    for (const Point& corner : b) all = all && beyond(corner);
    if (all) return true;
  }
  return false;
}

void expect_texts_apart(const Picture& picture, const std::string& what) {
  std::vector<Corners> boxes;
  for (const PictureText& text : picture.texts) {
    boxes.push_back(text.corners());
    for (const Point& corner : boxes.back()) {
      ASSERT_TRUE(corner.x >= 0 && corner.x <= static_cast<double>(picture.width) &&
                  corner.y >= 0 && corner.y <= static_cast<double>(picture.height))
          << what << ": '" << text.words << "' leaves the picture";
    }
  }
  for (const PictureBox& box : picture.boxes) {
    ASSERT_TRUE(box.at.x >= 0 && box.at.x + box.width <= static_cast<double>(picture.width) &&
                box.at.y >= 0 && box.at.y + box.height <= static_cast<double>(picture.height))
        << what << ": a box leaves the picture";
    const double right = box.at.x + box.width, bottom = box.at.y + box.height;
    const Corners corners = {box.at, Point{right, box.at.y}, {right, bottom}, {box.at.x, bottom}};
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      ASSERT_TRUE(parted(boxes[i], corners) || parted(corners, boxes[i]))
          << what << ": '" << picture.texts[i].words << "' on a box";
    }
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = i + 1; j < boxes.size(); ++j) {
      ASSERT_TRUE(parted(boxes[i], boxes[j]) || parted(boxes[j], boxes[i]))
          << what << ": '" << picture.texts[i].words << "' and '" << picture.texts[j].words << "'";
    }
  }
}

std::vector<std::string> words(const std::string& kind, Index count) {
  const std::vector<std::string> latin = {"a", "the", "##ization", "Ġbook", "[SEP]"};
  const std::vector<std::string> chinese = {"我", "爱", "学习", "人工", "智能"};
  const std::vector<std::string> lengthy = {"internationalization of everything", "ж",
                                            "人工智能人工智能人工智能", "WWWWWWWWWWWWWWWWWWWWWW"};
  const auto& all = kind == "latin" ? latin : kind == "chinese" ? chinese : lengthy;
  std::vector<std::string> labels;
  for (Index i = 0; i < count; ++i) labels.push_back(all[static_cast<std::size_t>(i) % all.size()]);
  return labels;
}

Heatmap filled(Index rows, Index columns) {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({rows, columns});
  for (Index i = 0; i < rows * columns; ++i) {
    heatmap.values.data()[i] = i % 5 == 0 ? 0 : std::fabs(std::sin(0.1 * static_cast<double>(i)));
  }
  return heatmap;
}

Index labels_of_rows(const Picture& picture) {
  Index count = 0;
  for (const PictureText& text : picture.texts) count += text.anchor == 1 ? 1 : 0;
  return count;
}

TEST(Layout, TextsOfHeatmapsAreApart) {
  const std::pair<Index, Index> sizes[] = {{1, 1},     {5, 5},  {12, 12}, {38, 38},  {66, 66},
                                           {200, 200}, {1, 90}, {90, 1},  {12, 200}, {7, 3}};
  for (const auto& [rows, columns] : sizes) {
    for (const char* kind : {"none", "latin", "chinese", "lengthy"}) {
      for (const bool numbers : {false, true}) {
        Heatmap heatmap = filled(rows, columns);
        if (std::string(kind) != "none") {
          heatmap.row_labels = words(kind, rows);
          heatmap.column_labels = words(kind, columns);
        }
        heatmap.title = numbers
                            ? "我爱学习人工智能: a title that goes on and on, past the edge of any "
                              "picture and of three lines of it, and even then does not end"
                            : "";
        heatmap.row_title = numbers ? "a title of rows that is longer than they are" : "query";
        heatmap.numbers = numbers;
        if (numbers) heatmap.values.data()[0] = NAN;
        heatmap.by_root = numbers;
        if (numbers && rows == 5) heatmap.low = 0.13, heatmap.high = 0.97;
        expect_texts_apart(picture_of(heatmap), std::to_string(rows) + " x " +
                                                    std::to_string(columns) + " " + kind +
                                                    (numbers ? " with numbers" : ""));
      }
    }
  }
}

TEST(Layout, TextsOfSeveralHeatmapsAreApart) {
  std::vector<Heatmap> panels;
  for (const Index size : {38, 12, 3, 12, 60}) {
    Heatmap heatmap = filled(size, size);
    heatmap.row_labels = heatmap.column_labels = words("lengthy", size);
    heatmap.title = "layer 3, head 2, a panel of several, with a title";
    heatmap.colors = ColorMap::diverging;
    heatmap.low = -123456;
    panels.push_back(heatmap);
  }
  panels[1].categories = {
      "masked, tile skipped", "masked, tile computed", "seen, tile in part",
      "a name that is far too long for the width of this small picture, really"};
  expect_texts_apart(page_of("", std::span<const Heatmap>(panels), 3), "panels");
}

TEST(Layout, EveryRowHasItsLabelWhileItCanBeRead) {
  Heatmap heatmap = filled(66, 66);
  EXPECT_EQ(labels_of_rows(picture_of(heatmap)), 33) << "every second number";
  heatmap.row_labels = heatmap.column_labels = words("latin", 66);
  EXPECT_EQ(labels_of_rows(picture_of(heatmap)), 66);
  heatmap = filled(200, 200);
  heatmap.row_labels = words("latin", 200);
  EXPECT_EQ(labels_of_rows(picture_of(heatmap)), 67) << "every third";
}

TEST(Layout, AxesWithoutLabelsHaveRoundNumbers) {
  std::vector<std::string> numbers;
  for (const PictureText& text : picture_of(filled(100, 5)).texts) {
    if (text.anchor == 1) numbers.push_back(text.words);
  }
  ASSERT_EQ(numbers.size(), 50u);
  EXPECT_EQ(numbers[3], "6");
  for (const Index count : {10, 100, 300, 1000}) {
    numbers.clear();
    const Picture picture = picture_of(filled(2, count));
    for (const PictureText& text : picture.texts) {
      if (text.anchor == 0.5 && text.size == 11) numbers.push_back(text.words);
    }
    ASSERT_GT(numbers.size(), 5u) << count;
    const Index step = std::stol(numbers[1]);
    Index first = step;
    while (first >= 10) first /= 10;
    EXPECT_TRUE(first == 1 || first == 2 || first == 5) << step;
  }
}

TEST(Layout, MaskedCellsLookDifferentFromSmallOnesAndSaySo) {
  Heatmap heatmap = filled(1, 6);
  const double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {0, 1e-12, 1, -infinity, NAN, 0.5};
  for (Index i = 0; i < 6; ++i) heatmap.values(0, i) = values[i];
  const auto texts = [](const Picture& picture) {
    std::set<std::string> all;
    for (const PictureText& text : picture.texts) all.insert(text.words);
    return all;
  };
  for (const ColorMap map : {ColorMap::viridis, ColorMap::magma, ColorMap::blues, ColorMap::gray}) {
    heatmap.colors = map;
    const Picture picture = picture_of(heatmap);
    const PictureCells& cells = picture.cells.front();
    EXPECT_EQ(cells.levels, (std::vector<std::uint8_t>{254, 0, 252, 254, 255, 126}));
    for (int level = 0; level < PictureCells::levels_of_values; ++level) {
      EXPECT_FALSE(cells.palette[static_cast<std::size_t>(level)] == cells.palette[254]);
    }
    EXPECT_EQ(texts(picture).count("masked (exactly 0)"), 1u);
    EXPECT_EQ(texts(picture).count("NaN"), 1u);
  }
  heatmap.zeros_are_masked = false;
  EXPECT_EQ(picture_of(heatmap).cells.front().levels[0], 0);
  EXPECT_EQ(texts(picture_of(heatmap)).count("masked (-∞)"), 1u);
  heatmap.zeros_are_masked = true;
  heatmap.low = -1;
  EXPECT_EQ(picture_of(heatmap).cells.front().levels[0], 126) << "a value among signed ones";
  heatmap.colors = ColorMap::diverging;
  heatmap.low = -0.25;
  EXPECT_EQ(picture_of(heatmap).cells.front().color(0), color_of(ColorMap::diverging, 0.5))
      << "0 is in the middle of any range";
}

TEST(Layout, ColorsByTheRootHaveTheirNumbersWhereTheyAre) {
  Heatmap heatmap = filled(12, 12);
  heatmap.by_root = true;
  const double values[] = {0.04, 0.25, 1};
  for (Index i = 0; i < 3; ++i) heatmap.values(0, i) = values[i];
  const Picture picture = picture_of(heatmap);
  EXPECT_EQ(picture.cells.front().levels[0], 50) << "0.2 of 252";
  EXPECT_EQ(picture.cells.front().levels[1], 126);
  EXPECT_EQ(picture.cells.front().levels[2], 252);
  double top = 0, bottom = 0, small = 0;
  for (const PictureText& text : picture.texts) {
    if (text.anchor != 0) continue;
    if (text.words == "1") top = text.at.y;
    if (text.words == "0.02") small = text.at.y;
    if (text.words == "0") bottom = text.at.y;
  }
  EXPECT_NEAR((bottom - small) / (bottom - top), std::sqrt(0.02), 1e-9);
  heatmap.colors = ColorMap::diverging;
  EXPECT_EQ(picture_of(heatmap).cells.front().levels[1], 158) << "not for diverging ones";
}

TEST(Layout, LargeMatricesAreMeansAndSaySo) {
  const Picture picture = picture_of(filled(2, 3000));
  EXPECT_EQ(picture.cells.front().columns, 1000);
  EXPECT_EQ(picture.cells.front().rows, 2);
  EXPECT_EQ(picture.texts.back().words, "a cell is the mean of 1 x 3");
  expect_texts_apart(picture, "means");
}

Chart chart_of(std::size_t count, const std::string& name) {
  Chart chart;
  for (std::size_t i = 0; i < count; ++i) {
    chart.series.push_back({name + " " + std::to_string(i), {0, 1, 2.5}, {0.1, double(i + 1), 3}});
  }
  chart.title = name + name + name;
  chart.x_title = "step";
  chart.y_title = "a title of the y axis that is longer than the axis is, which is not very long";
  return chart;
}

TEST(Layout, TextsOfChartsAreApart) {
  for (const std::size_t count : {0u, 1u, 7u, 15u, 16u, 20u, 60u}) {
    for (const char* name :
         {"q", "我爱学习人工智能", "a series with a name of many, many words in it"}) {
      for (const bool log : {false, true}) {
        Chart chart = chart_of(count, name);
        chart.log_x = chart.log_y = log;
        const std::string what = std::to_string(count) + " " + name + (log ? " log" : "");
        expect_texts_apart(picture_of(chart), what);
        chart.series.push_back({"far", {0.01, 3e12}, {1e-9, 7e20}});
        expect_texts_apart(picture_of(chart), what + " far");
      }
    }
  }
  const Chart charts[] = {chart_of(3, "beside"), chart_of(30, "below"), {}};
  expect_texts_apart(page_of("", std::span<const Chart>(charts), 2), "charts");
}

TEST(Layout, TextsOfBarsAndOfASecondAxisAreApart) {
  for (const Index count : {1, 4, 12, 24, 66, 200}) {
    for (const char* kind : {"none", "latin", "chinese", "lengthy"}) {
      for (const std::size_t series : {1u, 3u, 30u}) {
        Chart chart{.series = {}, .title = "bars", .x_title = "word", .y_title = "weight"};
        for (std::size_t i = 0; i < series; ++i) {
          chart.series.push_back({"series " + std::to_string(i), {}, {}, i % 3 != 2, i % 2 == 1});
          for (Index at = 0; at < count; ++at) {
            chart.series[i].x.push_back(static_cast<double>(at));
            chart.series[i].y.push_back(static_cast<double>(at % 7 + 1) * (i % 2 == 1 ? -9e6 : 1));
          }
        }
        if (std::string(kind) != "none") chart.x_labels = words(kind, count);
        chart.right_title = "a title of the right axis that is longer than the axis itself is";
        expect_texts_apart(picture_of(chart), std::to_string(count) + " bars of " +
                                                  std::to_string(series) + " " + kind);
      }
    }
  }
}

/// The boxes of bars, which alone have titles.
std::vector<PictureBox> bars_in(const Picture& picture) {
  std::vector<PictureBox> bars;
  for (const PictureBox& box : picture.boxes) {
    if (!box.title.empty()) bars.push_back(box);
  }
  return bars;
}

TEST(Layout, BarsOfAGroupStandSideBySideFromZero) {
  Chart chart;
  chart.series = {{"a", {0, 1}, {2, -1}, true}, {"b", {0, 1}, {1, 0}, true}};
  chart.x_labels = {"first", "second"};
  const auto bars = bars_in(picture_of(chart));
  ASSERT_EQ(bars.size(), 4u);
  EXPECT_EQ(bars[0].title, "a: first → 2");
  EXPECT_EQ(bars[1].title, "a: second → -1");
  const double zero = bars[0].at.y + bars[0].height;
  EXPECT_DOUBLE_EQ(bars[1].at.y, zero) << "down from 0";
  EXPECT_DOUBLE_EQ(bars[2].at.y + bars[2].height, zero);
  EXPECT_DOUBLE_EQ(2 * bars[2].height, bars[0].height);
  EXPECT_DOUBLE_EQ(bars[3].height, 0);
  const double end = bars[0].at.x + bars[0].width;
  EXPECT_GE(bars[2].at.x, end);
  EXPECT_LT(bars[2].at.x, end + 2);
  EXPECT_GT(bars[1].at.x, bars[2].at.x + bars[2].width + 20) << "a gap between groups";
  EXPECT_FALSE(bars[0].color == bars[2].color);
}

TEST(Layout, BarsAreCutAtTheEndsOfTheAxis) {
  Chart chart;
  chart.series = {{"", {0, 1, 2, 3}, {5, 10, 20, NAN}, true}};
  chart.low = 0;
  chart.high = 10;
  const auto bars = bars_in(picture_of(chart));
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_DOUBLE_EQ(2 * bars[0].height, bars[1].height);
  EXPECT_DOUBLE_EQ(bars[1].height, bars[2].height);
  EXPECT_NE(bars[2].title, bars[1].title) << "which says the number";
  chart.low = 5;
  EXPECT_DOUBLE_EQ(bars_in(picture_of(chart))[0].height, 0);
}

TEST(Layout, TwentyOneBarsOfAGroupDiffer) {
  std::set<std::tuple<int, int, int>> colors;
  for (std::size_t i = 0; i < 21; ++i) {
    colors.emplace(bar_color(i).red, bar_color(i).green, bar_color(i).blue);
  }
  EXPECT_EQ(colors.size(), 21u);
}

TEST(Layout, ThirtyFiveSeriesDiffer) {
  std::set<std::tuple<int, int, int, std::size_t>> marked;
  std::set<std::tuple<int, int, int, std::size_t>> dashed;
  for (std::size_t i = 0; i < 35; ++i) {
    const LineStyle style = line_style(i);
    const auto [red, green, blue] = style.color;
    marked.emplace(red, green, blue, style.mark);
    dashed.emplace(red, green, blue, style.dash);
  }
  EXPECT_EQ(marked.size(), 35u);
  EXPECT_EQ(dashed.size(), 28u) << "of long lines, which have no marks";
}

TEST(Layout, LinesOverOthersHaveGaps) {
  Chart chart;
  chart.series = {{"truth", {0, 1, 2}, {3, 1, 2}}, {"guess", {0, 1, 2}, {3, 1, 2}},
                  {"other", {0, 1, 2}, {3, 2, 1}}, {"third", {0, 1, 2}, {3, 1, 2}},
                  {"right", {0, 1, 2}, {3, 1, 2}}, {"bars", {0, 1, 2}, {3, 1, 2}, true}};
  chart.series[4].right = true;
  const std::size_t hidden[] = {0, 1, 0, 2, 0, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(lines_hidden_by(chart, i), hidden[i]) << i;
  std::vector<std::size_t> dashes;
  for (const PictureLine& line : picture_of(chart).lines) {
    if (line.points.size() == 3) dashes.push_back(line.dash);
  }
  EXPECT_EQ(dashes, (std::vector<std::size_t>{0, 1, 0, 4, 0}));
}

TEST(Layout, OfLinesThatCoincideEachKeepsStrokes) {
  // How far each pattern colors a line along its period, drawn in this order.
  std::vector<std::size_t> top(24);
  for (const std::size_t dash : {0u, 1u, 4u, 5u}) {
    const auto& pattern = dash_patterns[dash];
    for (std::size_t half = 0; half < top.size(); ++half) {
      double at = static_cast<double>(half) / 2;
      std::size_t part = 0;
      while (dash > 0 && at >= pattern[part]) at -= pattern[part++];
      if (part % 2 == 0) top[half] = dash;
    }
  }
  for (const std::size_t dash : {0u, 1u, 4u, 5u}) {
    EXPECT_GE(std::count(top.begin(), top.end(), dash), 3) << dash;
  }
}

TEST(Layout, PagesHoldPicturesInRows) {
  std::vector<Picture> pictures(3);
  pictures[0].width = 10, pictures[0].height = 20;
  pictures[1].width = 30, pictures[1].height = 60;
  pictures[2].width = 20, pictures[2].height = 40;
  for (Picture& picture : pictures) picture.boxes.push_back({{1, 2}, 3, 4, {}});
  pictures[1].lines.push_back({{{1, 2}}, {}});
  const Picture page = page_of("", std::span<const Picture>(pictures), 2);
  EXPECT_EQ(page.width, 40);
  EXPECT_EQ(page.height, 100);
  EXPECT_EQ(page.boxes[1].at.x, 11);
  EXPECT_EQ(page.boxes[2].at.y, 62);
  EXPECT_EQ(page.lines[0].points[0].x, 11);
  EXPECT_THROW(page_of("to_svg", std::span<const Picture>(pictures), 0), InvalidArgument);
}

}  // namespace
}  // namespace heed::detail
