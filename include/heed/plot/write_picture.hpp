// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <heed/io/file.hpp>

// Pictures as files: heatmaps, charts, several of either in rows of so many columns, and
// AttentionPage for HTML. The bytes are those of the to_… function of the same name, and a file is
// written completely or not at all. All throw FileError, and the errors of to_….

namespace heed {

namespace detail {

inline void write_picture(const std::string& path, const std::string& bytes) {
  write_file(path, std::as_bytes(std::span(bytes)));
}

}  // namespace detail

/// Writes an SVG file: write_svg(path, heatmap), write_svg(path, chart), write_svg(path, charts,
/// 3).
template <class... Pictures>
void write_svg(const std::string& path, const Pictures&... pictures) {
  detail::write_picture(path, to_svg(pictures...));
}

/// Writes an HTML file; also write_html(path, attention_page).
template <class... Pictures>
void write_html(const std::string& path, const Pictures&... pictures) {
  detail::write_picture(path, to_html(pictures...));
}

/// Writes a PNG file.
template <class... Pictures>
void write_png(const std::string& path, const Pictures&... pictures) {
  constexpr bool drawn = requires { to_png(pictures...); };
  static_assert(drawn, "write_png needs <heed/plot/png.hpp>, and that header needs stb");
  if constexpr (drawn) detail::write_picture(path, to_png(pictures...));
}

}  // namespace heed
