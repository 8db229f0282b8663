// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>

namespace heed::detail {

HEED_INLINE void check_heatmap(const Heatmap& heatmap) {
  const auto check = [](const char* what, std::size_t labels, Index extent) {
    if (labels != 0 && static_cast<Index>(labels) != extent) {
      throw_shape_error("heatmap: ", labels, " ", what, " labels for ", extent, " ", what, "s");
    }
  };
  check("row", heatmap.row_labels.size(), heatmap.values.extent(0));
  check("column", heatmap.column_labels.size(), heatmap.values.extent(1));
  if (!(heatmap.low <= heatmap.high && heatmap.high - heatmap.low <= 1.7e308)) {
    throw_invalid_argument("heatmap: colors from ", heatmap.low, " to ", heatmap.high,
                           "; expected a finite range, low first");
  }
}

HEED_INLINE ColorRange range_of(const Heatmap& heatmap) {
  if (!heatmap.categories.empty()) {
    return {0, static_cast<double>(std::max<std::size_t>(heatmap.categories.size() - 1, 1))};
  }
  if (heatmap.colors != ColorMap::diverging) return {heatmap.low, heatmap.high};
  // Half of the largest number, so that the difference of both ends is finite.
  const double most = std::numeric_limits<double>::max() / 2;
  const double size = std::min(most, std::max(std::fabs(heatmap.low), std::fabs(heatmap.high)));
  return {-size, size};
}

HEED_INLINE double share_of(const Heatmap& heatmap, double value) {
  const auto [low, high] = range_of(heatmap);
  if (value != value) return value;
  if (high > low) {
    const double share = (value - low) / (high - low);
    return goes_by_root(heatmap) && share > 0 ? std::sqrt(share) : share;
  }
  return heatmap.colors == ColorMap::diverging ? 0.5 : 0.0;
}

HEED_INLINE bool is_masked(const Heatmap& heatmap, double value) {
  if (value == -std::numeric_limits<double>::infinity()) return true;
  return value == 0 && heatmap.low >= 0 && heatmap.zeros_are_masked && heatmap.categories.empty();
}

HEED_INLINE std::string masked_meaning(const Heatmap& heatmap) {
  const bool zero = heatmap.low >= 0 && heatmap.zeros_are_masked;
  return zero ? "masked (exactly 0)" : "masked (-∞)";
}

HEED_INLINE Heatmap shrunk(const Heatmap& heatmap, Index rows, Index columns) {
  Heatmap small;
  small.title = heatmap.title;
  small.row_title = heatmap.row_title;
  small.column_title = heatmap.column_title;
  small.low = heatmap.low;
  small.high = heatmap.high;
  small.colors = heatmap.colors;
  small.by_root = heatmap.by_root;
  small.zeros_are_masked = heatmap.zeros_are_masked;
  small.categories = heatmap.categories;
  small.values = Tensor<double, 2>(
      {parts_of(heatmap.values.extent(0), rows), parts_of(heatmap.values.extent(1), columns)});
  Tensor<double, 2> counts(small.values.extents());
  for (double& value : small.values) value = std::numeric_limits<double>::quiet_NaN();
  for (Index row = 0; row < heatmap.values.extent(0); ++row) {
    for (Index column = 0; column < heatmap.values.extent(1); ++column) {
      const double value = heatmap.values(row, column);
      double& sum = small.values(row / rows, column / columns);
      double& count = counts(row / rows, column / columns);
      if (value != value) continue;
      if (!heatmap.categories.empty()) {
        sum = sum >= value ? sum : value;
      } else if (value == -std::numeric_limits<double>::infinity()) {
        if (count == 0) sum = value;
      } else {
        sum = count == 0 ? value : sum + value;
        count += 1;
      }
    }
  }
  for (Index i = 0; i < small.values.size(); ++i) {
    if (counts.data()[i] > 0) small.values.data()[i] /= counts.data()[i];
  }
  return small;
}

HEED_INLINE std::string shrunk_note(const Heatmap& heatmap, Index rows, Index columns) {
  return std::string("a cell is the ") + (heatmap.categories.empty() ? "mean" : "most") + " of " +
         std::to_string(rows) + " x " + std::to_string(columns);
}

/// Lays a heatmap out: labels above and to the left, a color bar to the right, and below it the
/// title of the columns and the legend.
class HeatmapLayout {
 public:
  explicit HeatmapLayout(const Heatmap& heatmap) : heatmap_(heatmap) {
    check_heatmap(heatmap);
    const Index longest_side = 1024;
    row_factor_ = std::max<Index>(1, parts_of(heatmap.values.extent(0), longest_side));
    column_factor_ = std::max<Index>(1, parts_of(heatmap.values.extent(1), longest_side));
    if (row_factor_ * column_factor_ > 1) {
      note_ = shrunk_note(heatmap, row_factor_, column_factor_);
      heatmap_ = shrunk(heatmap, row_factor_, column_factor_);
    }
    choose_cells();
    label_rows();
    label_columns();
    range_ = range_of(heatmap_);
    bar_ = make_axis(range_.low, range_.high, 5, false);
  }

  Picture picture() {
    const double cells_width = static_cast<double>(cell_width_ * columns());
    const double cells_height = static_cast<double>(cell_height_ * rows());
    left_ = std::ceil(margin + (heatmap_.row_title.empty() ? 0 : 22) + row_labels_.longest + 8);
    double right = 16;
    if (heatmap_.categories.empty()) right = bar_gap + bar_width + 8 + bar_labels_width() + 16;
    if (column_labels_.angle == 45) right = std::max(right, overhang() + 16);
    constexpr double narrowest = 280;  // leaves room for titles and a legend
    picture_.width = ceiled(std::max(left_ + cells_width + right, narrowest));
    top_ = std::ceil(margin + add_title(picture_, heatmap_.title) + column_labels_.depth() + 8);
    draw_cells();
    const double bar_length = heatmap_.categories.empty() ? std::max(cells_height, 100.0) : 0;
    if (bar_length > 0) draw_bar(left_ + cells_width + bar_gap, bar_length);
    double body = std::max({cells_height, bar_length, 40.0});
    draw_labels();
    draw_row_title(cells_height, body);
    if (!heatmap_.column_title.empty()) {
      const double room = static_cast<double>(picture_.width) - 2 * margin;
      const std::string words = cut_to(heatmap_.column_title, room / 13);
      const double half = text_ems(words) * 13 / 2;
      const double middle = std::clamp(left_ + cells_width / 2, margin + half,
                                       static_cast<double>(picture_.width) - margin - half);
      body += 22;
      picture_.texts.push_back(
          {.at = {middle, top_ + body - 4}, .words = words, .anchor = 0.5, .color = quiet_ink});
    }
    body += 8 + draw_legend(top_ + body + 8);
    picture_.height = ceiled(top_ + body + 8);
    return std::move(picture_);
  }

 private:
  static constexpr double margin = 16, bar_gap = 20, bar_width = 14, tick_size = 11;
  static constexpr Color frame_color{170, 170, 170};
  static constexpr Index most_numbers = 64;         // rows and columns with numbers in cells
  static constexpr std::size_t most_titles = 8000;  // cells that show their value under the pointer

  Index rows() const { return heatmap_.values.extent(0); }
  Index columns() const { return heatmap_.values.extent(1); }
  static Index ceiled(double value) { return static_cast<Index>(std::ceil(value)); }

  /// Square cells, as large as a picture of a common size allows; those of a matrix that is much
  /// longer one way are longer the other way.
  void choose_cells() {
    const Index longest = std::max<Index>(1, std::max(rows(), columns()));
    Index cell = std::clamp<Index>((longest > 80 ? 800 : 640) / longest, 1, 34);
    if (longest <= 80) cell = std::max<Index>(cell, 10);
    numbers_ = heatmap_.numbers && longest <= most_numbers;
    if (numbers_) {
      double widest = 0;
      for (const double value : heatmap_.values) {
        widest = std::max(widest, text_ems(number_of(value)));
      }
      cell = std::clamp<Index>(ceiled(widest * 12) + 6, 34, 60);
      number_size_ = widest == 0 ? 12 : std::min(12.0, static_cast<double>(cell - 4) / widest);
    }
    const auto grown = [&](Index count) {
      return std::max(cell, std::min<Index>(34, 160 / std::max<Index>(count, 1)));
    };
    cell_width_ = grown(columns());
    cell_height_ = grown(rows());
  }

  /// Numbers of `count` rows or columns that take `pitch` pixels each.
  static SideLabels numbered(Index count, Index factor, double pitch, bool across) {
    SideLabels labels{.size = tick_size, .numbers = true};
    const std::string last = std::to_string(std::max<Index>(0, count - 1) * factor);
    const double widest = text_ems(last) * tick_size;
    const double room = across ? widest + 6 : text_height * tick_size;
    while (static_cast<double>(labels.step) * pitch < room) {  // 1, 2, 5, 10, 20, …
      Index first = labels.step;
      while (first >= 10) first /= 10;
      labels.step = first == 2 ? labels.step / 2 * 5 : labels.step * 2;
    }
    for (Index i = 0; i < count; i += labels.step)
      labels.words.push_back(std::to_string(i * factor));
    labels.longest = across ? 0 : widest;
    return labels;
  }

  void label_rows() {
    const auto pitch = static_cast<double>(cell_height_);
    row_labels_ = heatmap_.row_labels.empty() ? numbered(rows(), row_factor_, pitch, false)
                                              : labels_down(heatmap_.row_labels, pitch);
  }

  void label_columns() {
    const auto pitch = static_cast<double>(cell_width_);
    column_labels_ = heatmap_.column_labels.empty()
                         ? numbered(columns(), column_factor_, pitch, true)
                         : labels_across(heatmap_.column_labels, pitch);
  }

  /// How far slanted labels reach beyond the cells.
  double overhang() const {
    double reach = 0;
    const double size = column_labels_.size;
    for (std::size_t i = 0; i < column_labels_.words.size(); ++i) {
      const double to_end = static_cast<double>(cell_width_) *
                            (static_cast<double>(columns() - static_cast<Index>(i)) - 0.5);
      const double length = text_ems(column_labels_.words[i]) * size;
      reach = std::max(reach, (length + text_descent * size) * 0.7071 - to_end);
    }
    return reach;
  }

  void draw_cells() {
    PictureCells cells{.at = {left_, top_},
                       .rows = rows(),
                       .columns = columns(),
                       .cell_width = cell_width_,
                       .cell_height = cell_height_};
    for (int level = 0; level < PictureCells::levels_of_values; ++level) {
      const double share = level / (PictureCells::levels_of_values - 1.0);
      cells.palette[static_cast<std::size_t>(level)] = color_of(heatmap_.colors, share);
    }
    cells.palette[PictureCells::masked] = {226, 221, 211};
    cells.palette[PictureCells::no_number] = {128, 128, 128};
    cells.hatched = std::min(cell_width_, cell_height_) >= 6;
    const bool titled = static_cast<std::size_t>(heatmap_.values.size()) <= most_titles;
    for (Index row = 0; row < rows(); ++row) {
      for (Index column = 0; column < columns(); ++column) {
        const double value = heatmap_.values(row, column);
        const std::uint8_t level = level_of(value);
        any_masked_ = any_masked_ || level == PictureCells::masked;
        any_no_number_ = any_no_number_ || level == PictureCells::no_number;
        cells.levels.push_back(level);
        if (titled) {
          cells.titles.push_back(title_of(row, column));
        } else {
          cells.values.push_back(static_cast<float>(value));
        }
        if (numbers_ && level != PictureCells::masked) {
          draw_number(row, column, cells.palette[level]);
        }
      }
    }
    if (!titled) name_cells(cells);
    palette_ = cells.palette;
    draw_frame(static_cast<double>(columns() * cell_width_),
               static_cast<double>(rows() * cell_height_));
    picture_.cells.push_back(std::move(cells));
    draw_tiles();
  }

  /// Lines between tiles, over the cells; two pixels, for pictures that are shown at half the size.
  void draw_tiles() {
    constexpr Color tile_color{128, 128, 128};
    const auto width = static_cast<double>(columns() * cell_width_);
    const auto height = static_cast<double>(rows() * cell_height_);
    for (Index at = heatmap_.tile_rows; at > 0 && at < rows(); at += heatmap_.tile_rows) {
      const double y = top_ + static_cast<double>(at * cell_height_);
      picture_.boxes.push_back({{left_, y - 1}, width, 2, tile_color});
    }
    for (Index at = heatmap_.tile_columns; at > 0 && at < columns(); at += heatmap_.tile_columns) {
      const double x = left_ + static_cast<double>(at * cell_width_);
      picture_.boxes.push_back({{x - 1, top_}, 2, height, tile_color});
    }
  }

  /// The edge of the cells, which may be white.
  void draw_frame(double width, double height) {
    const double left = left_ - 1, top = top_ - 1, right = left_ + width, bottom = top_ + height;
    for (const auto& [from, to] : {std::pair<Point, Point>{{left, top}, {right + 1, top}},
                                   {{left, bottom}, {right + 1, bottom}},
                                   {{left, top}, {left, bottom + 1}},
                                   {{right, top}, {right, bottom + 1}}}) {
      picture_.lines.push_back({.points = {from, to}, .color = frame_color});
    }
  }

  std::uint8_t level_of(double value) const {
    if (is_masked(heatmap_, value)) return PictureCells::masked;
    if (value != value) return PictureCells::no_number;
    const double share = std::clamp(share_of(heatmap_, value), 0.0, 1.0);
    return static_cast<std::uint8_t>(share * (PictureCells::levels_of_values - 1) + 0.5);
  }

  std::string title_of(Index row, Index column) const {
    const double value = heatmap_.values(row, column);
    const bool named = value >= 0 && value < static_cast<double>(heatmap_.categories.size());
    return name_of(heatmap_.row_labels, row, row_factor_) + " → " +
           name_of(heatmap_.column_labels, column, column_factor_) + ": " +
           (named ? heatmap_.categories[static_cast<std::size_t>(value)] : brief(value));
  }
  static std::string name_of(const std::vector<std::string>& labels, Index at, Index factor) {
    const auto i = static_cast<std::size_t>(at);
    return i < labels.size() ? labels[i] : std::to_string(at * factor);
  }
  void name_cells(PictureCells& cells) const {
    for (Index row = 0; row < rows(); ++row) {
      cells.row_names.push_back(name_of(heatmap_.row_labels, row, row_factor_));
    }
    for (Index column = 0; column < columns(); ++column) {
      cells.column_names.push_back(name_of(heatmap_.column_labels, column, column_factor_));
    }
    cells.categories = heatmap_.categories;
  }

  void draw_number(Index row, Index column, const Color& back) {
    picture_.texts.push_back({.at = {center(left_, column, cell_width_),
                                     center(top_, row, cell_height_) + 0.35 * number_size_},
                              .words = number_of(heatmap_.values(row, column)),
                              .size = number_size_,
                              .anchor = 0.5,
                              .color = text_color_on(back)});
  }

  /// A zero that is no masked weight is a number.
  static std::string number_of(double value) { return value == 0 ? "0" : cell_text(value); }

  static double center(double begin, Index at, Index cell) {
    return begin + (static_cast<double>(at) + 0.5) * static_cast<double>(cell);
  }

  void draw_labels() {
    for (std::size_t i = 0; i < row_labels_.words.size(); ++i) {
      const double y = center(top_, static_cast<Index>(i) * row_labels_.step, cell_height_);
      tick(row_labels_, {left_ - 4, y}, {left_, y});
      picture_.texts.push_back({.at = {left_ - 8, y + text_middle * row_labels_.size},
                                .words = row_labels_.words[i],
                                .size = row_labels_.size,
                                .anchor = 1});
    }
    for (std::size_t i = 0; i < column_labels_.words.size(); ++i) {
      const double x = center(left_, static_cast<Index>(i) * column_labels_.step, cell_width_);
      tick(column_labels_, {x, top_ - 4}, {x, top_});
      const int angle = column_labels_.angle;
      const double aside = angle == 90 ? text_middle * column_labels_.size : 0;
      picture_.texts.push_back({.at = {x + aside, top_ - 8},
                                .words = column_labels_.words[i],
                                .size = column_labels_.size,
                                .anchor = angle == 0 ? 0.5 : 0,
                                .angle = angle});
    }
  }

  /// The stroke that says which row or column a label belongs to, where not all have one.
  void tick(const SideLabels& labels, const Point& from, const Point& to) {
    if (labels.step == 1 && !labels.numbers) return;
    picture_.lines.push_back({.points = {from, to}, .color = quiet_ink});
  }

  void draw_row_title(double cells_height, double body) {
    if (heatmap_.row_title.empty()) return;
    const std::string words = cut_to(heatmap_.row_title, body / 13);
    const double half = text_ems(words) * 13 / 2;
    const double middle = top_ + std::max(cells_height / 2, half);
    picture_.texts.push_back({.at = {margin + text_ascent * 13, middle},
                              .words = words,
                              .anchor = 0.5,
                              .angle = 90,
                              .color = quiet_ink});
  }

  /// Whether the range is too narrow for numbers along the bar; its axis is wider then.
  bool one_value() const { return bar_.low != range_.low; }
  std::vector<double> bar_ticks() const {
    if (one_value()) return {range_.low};
    std::vector<double> ticks = bar_.ticks;
    if (goes_by_root(heatmap_)) {
      // A number among the small values, which take much of the bar; the largest are kept first.
      const double small = range_.low + bar_.step / 10;
      if (ticks.front() < small) ticks.insert(ticks.begin() + 1, small);
      std::reverse(ticks.begin(), ticks.end());
    }
    return ticks;
  }
  std::string bar_label(double tick) const {
    if (one_value()) return brief(tick);
    if (!goes_by_root(heatmap_)) return bar_.label(tick);
    return brief(std::fabs(tick) < bar_.step / 100 ? 0 : tick);
  }
  double bar_labels_width() const {
    double widest = 0;
    for (const double tick : bar_ticks()) {
      widest = std::max(widest, text_ems(bar_label(tick)) * tick_size);
    }
    return widest;
  }

  void draw_bar(double x, double length) {
    const Index steps = std::min<Index>(ceiled(length), 128);
    const auto edge = [&](Index step) {
      return std::round(length * static_cast<double>(step) / static_cast<double>(steps));
    };
    for (Index step = 0; step < steps; ++step) {
      const double share = 1 - (static_cast<double>(step) + 0.5) / static_cast<double>(steps);
      picture_.boxes.push_back({.at = {x, top_ + edge(step)},
                                .width = bar_width,
                                .height = edge(step + 1) - edge(step),
                                .color = color_of(heatmap_.colors, share)});
    }
    double written = -1e300;  // the last number; those of roots may be near each other
    for (const double value : bar_ticks()) {
      const double share = one_value() ? 0.5 : share_of(heatmap_, value);
      const double y = top_ + (1 - share) * length;
      if (goes_by_root(heatmap_) && y - written < text_height * tick_size) continue;
      written = y;
      picture_.lines.push_back(
          {.points = {{x + bar_width, y}, {x + bar_width + 4, y}}, .color = quiet_ink});
      picture_.texts.push_back({.at = {x + bar_width + 8, y + 0.32 * tick_size},
                                .words = bar_label(value),
                                .size = tick_size});
    }
  }

  /// Draws what colors beside those of the bar mean; the height that it takes.
  double draw_legend(double y) {
    std::vector<std::pair<Color, std::string>> entries;
    for (std::size_t i = 0; i < heatmap_.categories.size(); ++i) {
      const double share = share_of(heatmap_, static_cast<double>(i));
      entries.emplace_back(color_of(heatmap_.colors, share), heatmap_.categories[i]);
    }
    if (any_masked_) {
      entries.emplace_back(palette_[PictureCells::masked], masked_meaning(heatmap_));
    }
    if (any_no_number_) entries.emplace_back(palette_[PictureCells::no_number], "NaN");
    const double room = static_cast<double>(picture_.width) - 2 * margin;
    constexpr double swatch = 12, gap = 18;
    std::vector<double> widths;
    for (auto& [color, words] : entries) {
      words = cut_to(words, (room - swatch - 6) / tick_size);
      widths.push_back(swatch + 6 + text_ems(words) * tick_size + gap);
    }
    const std::string note = cut_to(note_, room / tick_size);
    if (!note.empty()) widths.push_back(text_ems(note) * tick_size);
    const Flow flow = flow_of(widths, room + gap, 18);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const double x = margin + flow.places[i].x, down = y + flow.places[i].y;
      const bool swatched = i < entries.size();
      if (swatched) draw_swatch(entries[i].first, {x, down}, swatch);
      picture_.texts.push_back({.at = {x + (swatched ? swatch + 6 : 0), down + 10},
                                .words = swatched ? entries[i].second : note,
                                .size = tick_size,
                                .color = quiet_ink});
    }
    return flow.height;
  }

  /// A cell of the legend, hatched as masked cells are.
  void draw_swatch(const Color& color, const Point& at, double size) {
    if (color == palette_[PictureCells::masked] && picture_.cells.front().hatched) {
      PictureCells cell{.at = at, .rows = 1, .columns = 1};
      cell.cell_width = cell.cell_height = static_cast<Index>(size);
      cell.palette = palette_;
      cell.levels = {PictureCells::masked};
      cell.hatched = true;
      picture_.cells.push_back(std::move(cell));
    } else {
      picture_.boxes.push_back({.at = at, .width = size, .height = size, .color = frame_color});
      picture_.boxes.push_back(
          {.at = {at.x + 1, at.y + 1}, .width = size - 2, .height = size - 2, .color = color});
    }
  }

  Heatmap heatmap_;
  Index row_factor_ = 1, column_factor_ = 1;
  std::string note_;
  Index cell_width_ = 1, cell_height_ = 1;
  bool numbers_ = false, any_masked_ = false, any_no_number_ = false;
  double number_size_ = 12, left_ = 0, top_ = 0;
  SideLabels row_labels_, column_labels_;
  ColorRange range_;
  Axis bar_;
  std::array<Color, 256> palette_ = {};
  Picture picture_;
};

HEED_INLINE Picture picture_of(const Heatmap& heatmap) { return HeatmapLayout(heatmap).picture(); }

}  // namespace heed::detail
