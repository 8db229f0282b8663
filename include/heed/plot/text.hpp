// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>

namespace heed::detail {

/// The characters of UTF-8 text, one string each; bytes that are no UTF-8 stand for themselves.
inline std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  for (const char letter : text) {
    const bool continues = (static_cast<unsigned char>(letter) & 0xc0) == 0x80;
    if (continues && !result.empty()) {
      result.back() += letter;
    } else {
      result.emplace_back(1, letter);
    }
  }
  return result;
}

/// How many characters of width 1 a text takes.
inline Index text_width(std::string_view text) {
  return static_cast<Index>(characters(text).size());
}

/// The text cut to `width` characters, the last one an ellipsis if any went, or filled with spaces.
inline std::string fitted(std::string_view text, Index width) {
  const auto letters = characters(text);
  const auto count = static_cast<Index>(letters.size());
  std::string result;
  for (Index i = 0; i < width; ++i) {
    const bool cut = i == width - 1 && count > width;
    result += cut ? "…" : i < count ? letters[static_cast<std::size_t>(i)] : " ";
  }
  return result;
}

/// A number with `decimals` digits behind the point.
inline std::string fixed(double value, int decimals) {
  char buffer[64];
  const int length = std::snprintf(buffer, sizeof(buffer), "%.*f", decimals, value);
  return std::string(buffer, static_cast<std::size_t>(length < 63 ? length : 63));
}

/// A number as short as it reads well: "0.5", "12", "1e-09".
inline std::string brief(double value) {
  char buffer[64];
  const int length = std::snprintf(buffer, sizeof(buffer), "%.4g", value);
  return std::string(buffer, static_cast<std::size_t>(length));
}

/// A value for a cell of three characters: ".96", "1.0", "-.5"; "·" for an exact zero, which a
/// masked weight is.
inline std::string cell_text(double value) {
  if (value == 0) return "·";
  if (value != value) return "NaN";
  std::string text = fixed(value, 2);
  if (text == "-0.00") text = "0.00";
  if (text.substr(0, 2) == "0.") return text.substr(1);
  if (text.substr(0, 3) == "-0.") return "-" + text.substr(2, 2);
  return text.size() > 3 && text[3] != '.' ? text.substr(0, 3) : fixed(value, 0);
}

}  // namespace heed::detail
