// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>

// Texts and numbers as they are drawn. Definitions: drawing.inl.

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

}  // namespace heed::detail
