// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <heed/io/file.hpp>

// Pictures as files: heatmaps, line charts, several of either in rows of so many columns, and for
// HTML an AttentionPage. A file is written whole or not at all. All throw FileError, and what the
// to_… of the same name throws, which gives the same bytes as a string.

namespace heed {

namespace detail {

inline void write_picture(const std::string& path, const std::string& bytes) {
  write_file(path, std::as_bytes(std::span(bytes)));
}

}  // namespace detail

/// write_svg(path, heatmap), write_svg(path, chart), write_svg(path, charts, 3).
template <class... Pictures>
void write_svg(const std::string& path, const Pictures&... pictures) {
  detail::write_picture(path, to_svg(pictures...));
}

/// The same as a page for a browser; also write_html(path, attention_page).
template <class... Pictures>
void write_html(const std::string& path, const Pictures&... pictures) {
  detail::write_picture(path, to_html(pictures...));
}

/// The same as pixels.
template <class... Pictures>
void write_png(const std::string& path, const Pictures&... pictures) {
  constexpr bool drawn = requires { to_png(pictures...); };
  static_assert(drawn,
                "write_png draws heatmaps with <heed/plot/png.hpp> and line charts with "
                "<heed/plot/line_chart_png.hpp>, which need stb");
  if constexpr (drawn) detail::write_picture(path, to_png(pictures...));
}

}  // namespace heed
