// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/plot/color.hpp>

// Texts and numbers as they are drawn, and pictures that are laid out: everything in them has its
// place and size in pixels. Heatmaps and charts are laid out once, and SVG and PNG draw the same
// places. Definitions: drawing.inl.

namespace heed {
struct Heatmap;
struct Chart;
}  // namespace heed

namespace heed::detail {

/// A character as drawn: UTF-8 with its combining accents, and its width in a terminal.
struct Glyph {
  std::string bytes;
  Index width = 1;
};

/// The width of a code point in a terminal: 0 combining, 2 wide East Asian and pictographs,
/// otherwise 1. From the large blocks of Unicode's EastAsianWidth, without every exception.
Index code_point_width(char32_t code);

/// The characters of a text, safe for terminals and XML: control characters become their symbols (␊
/// for a line break, ␛ for escape), bytes that are not UTF-8 become U+FFFD.
std::vector<Glyph> glyphs(std::string_view text);

/// The width of a text in a terminal.
Index text_width(std::string_view text);

/// The text in exactly `width` columns, padded with spaces or cut with an ellipsis.
std::string fitted(std::string_view text, Index width);

/// The text as it is, safe for terminals.
std::string safe_text(std::string_view text);

std::string spaces(Index count);

/// The width of a text in sizes of its font. It is that of the wider of DejaVu Sans and Arial for
/// each letter, so that a text fits the place that was measured for it in most fonts.
double text_ems(std::string_view text);

/// The text in at most so many sizes of its font, cut with an ellipsis.
std::string cut_to(std::string_view text, double ems);

/// The text in lines of at most so many sizes of its font, broken at spaces where there are any;
/// the last of at most `lines` is cut with an ellipsis.
std::vector<std::string> wrapped(std::string_view text, double ems, std::size_t lines);

/// A number with `decimals` digits after the point, the same in every locale.
std::string fixed(double value, int decimals);

/// A number in at most four significant digits: "0.5", "12", "1e-09".
std::string brief(double value);

/// A value for a cell in two significant digits: ".96", "1.0", "-.05", "12"; "·" for an exact zero,
/// which is a masked weight and not merely a small one.
std::string cell_text(double value);

/// True for numbers: not for NaN and infinities.
inline bool finite(double value) { return value - value == 0; }

struct Point {
  double x = 0, y = 0;
};

inline constexpr Color ink{34, 34, 34}, quiet_ink{102, 102, 102};
/// Heights above and below the baseline that letters of a font of size 1 take.
inline constexpr double text_ascent = 0.88, text_descent = 0.24;
inline constexpr double text_height = text_ascent + text_descent;
/// The middle of letters, above the baseline.
inline constexpr double text_middle = text_ascent - text_height / 2;

struct PictureText {
  Point at = {};  // on the baseline
  std::string words = {};
  double size = 13;   // of the font
  double anchor = 0;  // what of the text stands at `at`: 0 its begin, 0.5 its middle, 1 its end
  int angle = 0;      // degrees to the left: 90 reads upwards
  Color color = ink;
  bool bold = false;

  double width() const;
  /// The corners of the box around the letters, in order.
  std::array<Point, 4> corners() const;
};

/// A rectangle of one color. SVG shows the title under the pointer.
struct PictureBox {
  Point at = {};
  double width = 0, height = 0;
  Color color = {};
  std::string title = {};
};

/// A line through points; dash is a number of `dash_patterns`.
struct PictureLine {
  std::vector<Point> points;
  Color color = {};
  double width = 1;
  std::size_t dash = 0;
};
/// Lengths of strokes and gaps; a solid line first. Of lines that coincide, the second is drawn
/// with pattern 1, the third with 4, and the others with 5: of each of the three below, strokes
/// stay visible.
inline constexpr std::array<std::array<double, 4>, 6> dash_patterns = {
    {{0, 0, 0, 0}, {6, 6, 6, 6}, {2, 3, 2, 3}, {9, 3, 2, 3}, {3, 9, 3, 9}, {1.5, 10.5, 1.5, 10.5}}};

/// The sign of a point: a shape of `mark_shapes`, or none that is visible. SVG shows the title
/// under the pointer.
struct PictureMark {
  Point at = {};
  std::size_t shape = 0;
  Color color = {};
  bool visible = true;
  std::string title = {};
};
/// Corners of marks around (0, 0); a circle has none.
inline constexpr std::size_t mark_shapes = 5;
std::vector<Point> mark_corners(std::size_t shape);

/// A matrix of cells. A level is a number of the palette: an odd number of them are values, so that
/// one is the middle.
struct PictureCells {
  static constexpr std::uint8_t levels_of_values = 253, masked = 254, no_number = 255;

  Point at = {};
  Index rows = 0, columns = 0;
  Index cell_width = 1, cell_height = 1;
  std::array<Color, 256> palette = {};
  std::vector<std::uint8_t> levels = {};
  std::vector<std::string> titles = {};  // none, or one per cell
  /// Where there are no titles: what an HTML page makes them of.
  std::vector<float> values = {};
  std::vector<std::string> row_names = {}, column_names = {}, categories = {};
  bool hatched = false;  // masked cells have a stroke

  Color color(Index cell) const { return palette[levels[static_cast<std::size_t>(cell)]]; }
  Point corner(Index cell) const {
    const Index row = cell / columns, column = cell % columns;
    return {at.x + static_cast<double>(column * cell_width),
            at.y + static_cast<double>(row * cell_height)};
  }
};
inline constexpr Color hatch_color{178, 170, 156};

/// Drawn in this order: cells, boxes, lines, marks, texts.
struct Picture {
  Index width = 0, height = 0;
  Index title_height = 0;
  std::vector<PictureCells> cells = {};
  std::vector<PictureBox> boxes = {};
  std::vector<PictureLine> lines = {};
  std::vector<PictureMark> marks = {};
  std::vector<PictureText> texts = {};
};

/// Lays a heatmap out. Throws ShapeError and InvalidArgument for what check_heatmap refuses.
Picture picture_of(const Heatmap& heatmap);
/// Lays a chart out. Throws ShapeError and InvalidArgument for what check_chart refuses.
Picture picture_of(const Chart& chart);

/// Several pictures in one: rows of `columns`, each as high as its highest picture, with what is
/// below the titles at one height. Throws InvalidArgument, with the caller's name, for columns
/// below 1.
Picture page_of(const char* caller, std::span<const Picture> pictures, Index columns);

/// The same of what is to be laid out.
template <class Item>
Picture page_of(const char* caller, std::span<const Item> items, Index columns) {
  std::vector<Picture> pictures;
  for (const Item& item : items) pictures.push_back(picture_of(item));
  return page_of(caller, std::span<const Picture>(pictures), columns);
}

/// The labels along one side of a picture that fit beside one another: every step-th one, so large,
/// at this angle, and cut to what there is room for.
struct SideLabels {
  std::vector<std::string> words = {};
  Index step = 1;
  double size = 13;  // of the font
  int angle = 0;
  bool numbers = false;
  double longest = 0;  // pixels

  /// Room that they take across the side.
  double depth() const;
};
/// Labels one below the other, or upright ones beside one another, `pitch` pixels apart: in a
/// smaller font, or only every step-th one where that could not be read.
SideLabels labels_down(const std::vector<std::string>& words, double pitch, int angle = 0);
/// Labels beside one another: level where they fit, slanted where they can be read so, and upright
/// otherwise.
SideLabels labels_across(const std::vector<std::string>& words, double pitch);

/// A picture of one heatmap or chart, or of several.
template <class Pictures>
Picture drawn(const char* caller, const Pictures& pictures, Index columns = 2) {
  if constexpr (requires { picture_of(pictures); }) {
    return picture_of(pictures);
  } else {
    using Item = std::remove_cvref_t<decltype(*std::data(pictures))>;
    return page_of(caller, std::span<const Item>(pictures), columns);
  }
}

/// Places for items of these widths, one after the other in lines of `room` pixels, and where the
/// last line ends.
struct Flow {
  std::vector<Point> places;
  double height = 0;
};
Flow flow_of(const std::vector<double>& widths, double room, double line_height);

/// Adds a title above a picture of this width; the height that it takes.
double add_title(Picture& picture, const std::string& title);

/// An SVG file. Definition: svg.inl, and so for `escaped` and `base64_of`.
std::string svg_of(const Picture& picture);
/// An HTML page around an SVG picture, which tells the values of cells that SVG does not tell.
/// Definition: html.inl, and so for `json_string`.
std::string html_around(const std::string& title, const Picture& picture);

/// Text escaped for XML.
std::string escaped(std::string_view text);
/// Bytes in base64: RFC 4648.
std::string base64_of(std::span<const std::uint8_t> bytes);
/// A JSON string that is safe inside <script>.
std::string json_string(std::string_view text);

}  // namespace heed::detail
