// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/color.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>

namespace heed::detail {

/// Lays a chart out: a field with a grid, numbers or names below it, numbers on both sides of it,
/// and the legend beside it or, if that is long, below.
class ChartLayout {
 public:
  explicit ChartLayout(const Chart& chart) : chart_(chart), axes_(axes_of(chart, 10, 6)) {
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      if (chart.series[i].name.empty()) continue;
      const std::string side = chart.series[i].right ? " (right)" : "";
      const double room = longest_name / text_size - text_ems(side);
      named_.push_back(i);
      names_.push_back(cut_to(chart.series[i].name, room) + side);
      name_width_ = std::max(name_width_, text_ems(names_.back()) * text_size);
    }
    beside_ = static_cast<double>(named_.size()) * line_height <= field_height;
    bars_ = bars_of(chart, axes_);
    for (const ChartBar& bar : bars_) foot_ = bar.low == 0 ? 0 : foot_;
    const double places = axes_.x.high - axes_.x.low;
    if (!chart.x_labels.empty()) {
      labels_ = labels_across(chart.x_labels, (field_width - 2 * inset) / places);
    }
  }

  Picture picture() {
    left_ = std::ceil(std::max(margin + (chart_.y_title.empty() ? 0 : 24) + widest(axes_.y) + 8,
                               margin + overhang()));
    right_ = left_ + field_width;
    if (axes_.both) right_ += 8 + widest(axes_.right) + (chart_.right_title.empty() ? 0 : 24);
    double right = 24;
    if (!axes_.x.ticks.empty() && labels_.words.empty()) {
      const double last = text_ems(axes_.x.label(axes_.x.ticks.back())) * text_size / 2 + 6;
      right = std::max(right, left_ + field_width + last - right_);
    }
    if (beside_ && !named_.empty()) right = std::max(right, 16 + sample + 6 + name_width_ + margin);
    picture_.width = static_cast<Index>(std::ceil(right_ + right));
    top_ = margin + add_title(picture_, chart_.title);
    draw_grid();
    draw_bars();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (!chart_.series[i].bars) draw_series(i);
    }
    draw_numbers(axes_.y, left_ - 8, 1);
    if (axes_.both) draw_right_axis();
    double bottom = draw_x_axis();
    if (!chart_.x_title.empty()) {
      const std::string words = cut_to(chart_.x_title, field_width / text_size);
      picture_.texts.push_back({.at = {left_ + field_width / 2, bottom + 14},
                                .words = words,
                                .anchor = 0.5,
                                .color = quiet_ink});
      bottom += 22;
    }
    draw_side_title(chart_.y_title, margin + text_ascent * text_size);
    if (axes_.both) draw_side_title(chart_.right_title, right_ - text_descent * text_size);
    bottom += draw_legend(bottom + 8);
    picture_.height = static_cast<Index>(std::ceil(bottom + 10));
    return std::move(picture_);
  }

 private:
  static constexpr double margin = 16, field_width = 560, field_height = 300, text_size = 13;
  static constexpr double inset = 8;  // from the ends of the axes to the edge of the field
  static constexpr double line_height = 20, sample = 28, longest_name = 240;
  static constexpr std::size_t most_marks = 60;
  static constexpr Color frame{102, 102, 102}, major{218, 218, 218}, minor{241, 241, 241};

  double x_of(double share) const { return left_ + inset + share * (field_width - 2 * inset); }
  double y_of(double share) const {
    return top_ + inset + (1 - share) * (field_height - inset - foot_);
  }
  static bool on_axis(double share) { return share >= -1e-9 && share <= 1 + 1e-9; }
  static double widest(const Axis& axis) {
    double widest = 0;
    for (const double tick : axis.ticks) {
      widest = std::max(widest, text_ems(axis.label(tick)) * text_size);
    }
    return widest;
  }

  void line(const Point& from, const Point& to, const Color& color) {
    picture_.lines.push_back({.points = {from, to}, .color = color});
  }

  /// Lines behind all others: boxes, which are drawn first.
  void draw_grid() {
    const auto draw = [&](const Axis& axis, const std::vector<double>& ticks, const Color& color) {
      const bool up = &axis == &axes_.x;
      for (const double tick : ticks) {
        const double share = axis.share(tick);
        if (!on_axis(share)) continue;
        const Point at =
            up ? Point{std::floor(x_of(share)), top_} : Point{left_, std::floor(y_of(share))};
        picture_.boxes.push_back({.at = at,
                                  .width = up ? 1 : field_width,
                                  .height = up ? field_height : 1,
                                  .color = color});
      }
    };
    draw(axes_.x, axes_.x.minor_ticks, minor);
    draw(axes_.y, axes_.y.minor_ticks, minor);
    if (labels_.words.empty()) draw(axes_.x, axes_.x.ticks, major);
    draw(axes_.y, axes_.y.ticks, major);
    const double bottom = top_ + field_height;
    line({left_, bottom}, {left_ + field_width, bottom}, frame);
    line({left_, top_}, {left_, bottom}, frame);
  }

  /// The numbers of an axis to the left (anchor 1) or to the right (anchor 0) of x.
  void draw_numbers(const Axis& axis, double x, double anchor) {
    for (const double tick : axis.ticks) {
      if (!on_axis(axis.share(tick))) continue;
      const double y = y_of(axis.share(tick));
      picture_.texts.push_back(
          {.at = {x, y + 0.32 * text_size}, .words = axis.label(tick), .anchor = anchor});
    }
  }

  void draw_right_axis() {
    const double x = left_ + field_width;
    line({x, top_}, {x, top_ + field_height}, frame);
    for (const double tick : axes_.right.ticks) {
      const double share = axes_.right.share(tick);
      if (on_axis(share)) line({x, y_of(share)}, {x + 5, y_of(share)}, frame);
    }
    draw_numbers(axes_.right, x + 8, 0);
  }

  void draw_side_title(const std::string& title, double x) {
    if (title.empty()) return;
    picture_.texts.push_back({.at = {x, top_ + field_height / 2},
                              .words = cut_to(title, field_height / text_size),
                              .anchor = 0.5,
                              .angle = 90,
                              .color = quiet_ink});
  }

  /// Numbers or names below the field; where they end.
  double draw_x_axis() {
    const double bottom = top_ + field_height;
    if (!labels_.words.empty()) return draw_labels(bottom);
    double written = -1e300;  // where the last number ends
    for (const double tick : axes_.x.ticks) {
      const double x = x_of(axes_.x.share(tick));
      const std::string words = axes_.x.label(tick);
      const double half = text_ems(words) * text_size / 2;
      line({x, bottom}, {x, bottom + 5}, frame);
      if (x - half < written + 6) continue;
      written = x + half;
      picture_.texts.push_back({.at = {x, bottom + 19}, .words = words, .anchor = 0.5});
    }
    return bottom + 26;
  }

  /// Names below the field: turned ones end at their tick.
  double draw_labels(double bottom) {
    const double size = labels_.size, turned = labels_.angle * 3.14159265358979323846 / 180;
    for (std::size_t i = 0; i < labels_.words.size(); ++i) {
      const double x = label_x(i);
      line({x, bottom}, {x, bottom + 5}, frame);
      const Point aside{text_middle * size * std::sin(turned),
                        text_ascent * size * std::cos(turned)};
      picture_.texts.push_back({.at = {x + aside.x, bottom + 8 + aside.y},
                                .words = labels_.words[i],
                                .size = size,
                                .anchor = labels_.angle == 0 ? 0.5 : 1,
                                .angle = labels_.angle});
    }
    return bottom + 8 + labels_.depth() + text_descent * size + 4;
  }
  double label_x(std::size_t i) const {
    return x_of(axes_.x.share(static_cast<double>(static_cast<Index>(i) * labels_.step)));
  }
  /// How far slanted names reach beyond the left edge of the field.
  double overhang() const {
    double reach = 0;
    for (std::size_t i = 0; labels_.angle == 45 && i < labels_.words.size(); ++i) {
      const double length = text_ems(labels_.words[i]) + text_ascent - text_middle;
      reach = std::max(reach, length * labels_.size * 0.7071 - (label_x(i) - left_));
    }
    return reach;
  }

  void draw_bars() {
    for (const ChartBar& bar : bars_) {
      const double left = std::clamp(x_of(bar.left), left_, left_ + field_width);
      const double right = std::clamp(x_of(bar.right), left_, left_ + field_width);
      // A gap of a pixel to the next bar, where bars are wide enough for one.
      const double width = right - left > 4 ? right - left - 1 : right - left;
      picture_.boxes.push_back({.at = {left, y_of(bar.high)},
                                .width = width,
                                .height = y_of(bar.low) - y_of(bar.high),
                                .color = bar_color(bar.series),
                                .title = title_of(bar.series, bar.point)});
    }
  }

  /// The series of a point, and its numbers.
  std::string title_of(std::size_t i, std::size_t at) const {
    const Series& series = chart_.series[i];
    const double x = x_at(series, at);
    const bool named = x >= 0 && x < static_cast<double>(chart_.x_labels.size());
    const auto label = static_cast<std::size_t>(named ? x : 0);
    return (series.name.empty() ? "" : series.name + ": ") +
           (named && x == std::floor(x) ? chart_.x_labels[label] : brief(x)) + " → " +
           brief(series.y[at]);
  }

  /// The dashes of a line that hides others let them be seen.
  std::size_t dash_of(std::size_t i) const {
    constexpr std::size_t sparse[] = {0, 1, 4, 5};
    const std::size_t dash = line_style(i).dash, hidden = lines_hidden_by(chart_, i);
    return dash == 0 ? sparse[std::min<std::size_t>(hidden, 3)] : dash;
  }

  void draw_series(std::size_t i) {
    const LineStyle style = line_style(i);
    PictureLine drawn{.points = {}, .color = style.color, .width = 1.8, .dash = dash_of(i)};
    const auto finish = [&] {
      if (drawn.points.size() > 1) picture_.lines.push_back(drawn);
      drawn.points.clear();
    };
    for (const auto& run : runs_of(chart_.series[i], axes_)) {
      for (std::size_t at = 1; at < run.size(); ++at) {
        ChartPoint a = run[at - 1], b = run[at];
        if (!clip(a, b)) {
          finish();
          continue;
        }
        if (drawn.points.empty()) drawn.points.push_back({x_of(a.x), y_of(a.y)});
        drawn.points.push_back({x_of(b.x), y_of(b.y)});
        if (!inside(run[at])) finish();
      }
      finish();
    }
    draw_marks(i);
  }

  /// Draws a mark at every point, which shows its numbers under the pointer; the marks of long
  /// lines are invisible.
  void draw_marks(std::size_t i) {
    const Series& series = chart_.series[i];
    if (series.y.size() > 20 * most_marks) return;
    for (std::size_t at = 0; at < series.y.size(); ++at) {
      const ChartPoint point{axes_.x.share(x_at(series, at)),
                             axes_.y_of(series).share(series.y[at])};
      if (!placed(point.x) || !inside(point)) continue;
      picture_.marks.push_back({.at = {x_of(point.x), y_of(point.y)},
                                .shape = line_style(i).mark,
                                .color = line_style(i).color,
                                .visible = series.y.size() <= most_marks,
                                .title = title_of(i, at)});
    }
  }

  /// The legend beside the field, or below it from y on; the height that it takes there.
  double draw_legend(double y) {
    const std::vector<double> widths(names_.size(), sample + 6 + name_width_ + 18);
    const double room = static_cast<double>(picture_.width) - left_ - margin + 18;
    const Flow flow = flow_of(widths, room, line_height);
    for (std::size_t entry = 0; entry < named_.size(); ++entry) {
      const std::size_t i = named_[entry];
      const Point at = beside_
                           ? Point{right_ + 16, top_ + 8 + static_cast<double>(entry) * line_height}
                           : Point{left_ + flow.places[entry].x, y + flow.places[entry].y + 8};
      draw_sample(i, at);
      picture_.texts.push_back(
          {.at = {at.x + sample + 6, at.y + 0.32 * text_size}, .words = names_[entry]});
    }
    return beside_ ? 0 : flow.height + 8;
  }

  /// What a series looks like, from a point to the right.
  void draw_sample(std::size_t i, const Point& at) {
    if (chart_.series[i].bars) {
      picture_.boxes.push_back(
          {.at = {at.x + 8, at.y - 6}, .width = 12, .height = 12, .color = bar_color(i)});
      return;
    }
    picture_.lines.push_back({.points = {at, {at.x + sample, at.y}},
                              .color = line_style(i).color,
                              .width = 1.8,
                              .dash = dash_of(i)});
    if (chart_.series[i].y.size() > most_marks) return;
    picture_.marks.push_back({.at = {at.x + sample / 2, at.y},
                              .shape = line_style(i).mark,
                              .color = line_style(i).color});
  }

  const Chart& chart_;
  ChartAxes axes_;
  std::vector<ChartBar> bars_ = {};
  double foot_ = inset;             // below the low end of the axes: 0 where bars stand on it
  SideLabels labels_ = {};          // of x, if it has any
  std::vector<std::size_t> named_;  // series of the legend
  std::vector<std::string> names_;  // theirs, cut
  double name_width_ = 0, left_ = 0, right_ = 0, top_ = 0;
  bool beside_ = true;
  Picture picture_;
};

HEED_INLINE Picture picture_of(const Chart& chart) { return ChartLayout(chart).picture(); }

}  // namespace heed::detail
