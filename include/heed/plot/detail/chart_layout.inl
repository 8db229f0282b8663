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
#include <heed/plot/color.hpp>
#include <heed/plot/detail/axis.hpp>
#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/detail/picture.hpp>
#include <heed/plot/line_chart.hpp>

namespace heed::detail {

/// Lays a chart out: a field with a grid, numbers below and to the left of it, and the legend
/// beside it or, if that is long, below.
class ChartLayout {
 public:
  explicit ChartLayout(const LineChart& chart) : chart_(chart), axes_(axes_of(chart, 10, 6)) {
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      if (chart.series[i].name.empty()) continue;
      named_.push_back(i);
      names_.push_back(cut_to(chart.series[i].name, longest_name / text_size));
      name_width_ = std::max(name_width_, text_ems(names_.back()) * text_size);
    }
    beside_ = static_cast<double>(named_.size()) * line_height <= field_height;
  }

  Picture picture() {
    double widest = 0;
    for (const double tick : axes_.y.ticks) {
      widest = std::max(widest, text_ems(axes_.y.label(tick)) * text_size);
    }
    left_ = std::ceil(margin + (chart_.y_title.empty() ? 0 : 24) + widest + 8);
    double right = 24;
    if (!axes_.x.ticks.empty()) {
      right = std::max(right, text_ems(axes_.x.label(axes_.x.ticks.back())) * text_size / 2 + 6);
    }
    if (beside_ && !named_.empty()) right = std::max(right, 16 + sample + 6 + name_width_ + margin);
    picture_.width = static_cast<Index>(std::ceil(left_ + field_width + right));
    top_ = margin + add_title(picture_, chart_.title);
    draw_grid();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(i);
    double bottom = top_ + field_height + 26;
    if (!chart_.x_title.empty()) {
      const std::string words = cut_to(chart_.x_title, field_width / text_size);
      picture_.texts.push_back({.at = {left_ + field_width / 2, bottom + 14},
                                .words = words,
                                .anchor = 0.5,
                                .color = quiet_ink});
      bottom += 22;
    }
    if (!chart_.y_title.empty()) {
      picture_.texts.push_back({.at = {margin + text_ascent * text_size, top_ + field_height / 2},
                                .words = cut_to(chart_.y_title, field_height / text_size),
                                .anchor = 0.5,
                                .angle = 90,
                                .color = quiet_ink});
    }
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
    return top_ + inset + (1 - share) * (field_height - 2 * inset);
  }
  static bool on_axis(double share) { return share >= -1e-9 && share <= 1 + 1e-9; }

  void line(const Point& from, const Point& to, const Color& color) {
    picture_.lines.push_back({.points = {from, to}, .color = color});
  }
  void line_up(double share, const Color& color) {
    if (!on_axis(share)) return;
    line({x_of(share), top_}, {x_of(share), top_ + field_height}, color);
  }
  void line_across(double share, const Color& color) {
    if (!on_axis(share)) return;
    line({left_, y_of(share)}, {left_ + field_width, y_of(share)}, color);
  }

  void draw_grid() {
    for (const double tick : axes_.x.minor_ticks) line_up(axes_.x.share(tick), minor);
    for (const double tick : axes_.y.minor_ticks) line_across(axes_.y.share(tick), minor);
    for (const double tick : axes_.x.ticks) line_up(axes_.x.share(tick), major);
    for (const double tick : axes_.y.ticks) line_across(axes_.y.share(tick), major);
    const double bottom = top_ + field_height;
    line({left_, bottom}, {left_ + field_width, bottom}, frame);
    line({left_, top_}, {left_, bottom}, frame);
    for (const double tick : axes_.y.ticks) {
      if (!on_axis(axes_.y.share(tick))) continue;
      const double y = y_of(axes_.y.share(tick));
      picture_.texts.push_back(
          {.at = {left_ - 8, y + 0.32 * text_size}, .words = axes_.y.label(tick), .anchor = 1});
    }
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
  }

  /// The dashes of a line that hides another one let it be seen.
  std::size_t dash_of(std::size_t i) const {
    const std::size_t dash = line_style(i).dash;
    return dash == 0 && hides_another(chart_, i) ? 1 : dash;
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
    if (series.x.size() > 20 * most_marks) return;
    const std::string name = series.name.empty() ? "" : series.name + ": ";
    for (std::size_t at = 0; at < series.x.size(); ++at) {
      const ChartPoint point{axes_.x.share(series.x[at]), axes_.y.share(series.y[at])};
      if (!finite(point.x) || !finite(point.y) || !inside(point)) continue;
      picture_.marks.push_back({.at = {x_of(point.x), y_of(point.y)},
                                .shape = line_style(i).mark,
                                .color = line_style(i).color,
                                .visible = series.x.size() <= most_marks,
                                .title = name + brief(series.x[at]) + " → " + brief(series.y[at])});
    }
  }

  /// The legend beside the field, or below it from y on; the height that it takes there.
  double draw_legend(double y) {
    const std::vector<double> widths(names_.size(), sample + 6 + name_width_ + 18);
    const double room = static_cast<double>(picture_.width) - left_ - margin + 18;
    const Flow flow = flow_of(widths, room, line_height);
    for (std::size_t entry = 0; entry < named_.size(); ++entry) {
      const std::size_t i = named_[entry];
      const Point at = beside_ ? Point{left_ + field_width + 16,
                                       top_ + 8 + static_cast<double>(entry) * line_height}
                               : Point{left_ + flow.places[entry].x, y + flow.places[entry].y + 8};
      picture_.lines.push_back({.points = {at, {at.x + sample, at.y}},
                                .color = line_style(i).color,
                                .width = 1.8,
                                .dash = dash_of(i)});
      if (chart_.series[i].x.size() <= most_marks) {
        picture_.marks.push_back({.at = {at.x + sample / 2, at.y},
                                  .shape = line_style(i).mark,
                                  .color = line_style(i).color});
      }
      picture_.texts.push_back(
          {.at = {at.x + sample + 6, at.y + 0.32 * text_size}, .words = names_[entry]});
    }
    return beside_ ? 0 : flow.height + 8;
  }

  const LineChart& chart_;
  ChartAxes axes_;
  std::vector<std::size_t> named_;  // series of the legend
  std::vector<std::string> names_;  // theirs, cut
  double name_width_ = 0, left_ = 0, top_ = 0;
  bool beside_ = true;
  Picture picture_;
};

HEED_INLINE Picture picture_of(const LineChart& chart) { return ChartLayout(chart).picture(); }

}  // namespace heed::detail
