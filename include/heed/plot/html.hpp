// SPDX-License-Identifier: MIT
#pragma once

#include <iterator>
#include <string>

#include <heed/plot/detail/drawing.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/svg.hpp>

namespace heed {

/// An HTML file with all layers and heads as thumbnails; a click enlarges one, and query, key and
/// weight under the pointer are shown. Buttons switch between the masks of the page. The page is
/// self-contained: it loads nothing, and its content security policy forbids loading. Throws
/// ShapeError for labels that do not fit, and for weights of different extents.
inline std::string to_html(const AttentionPage& page) { return detail::html_of(page); }

/// An HTML page around to_svg of the same arguments: one heatmap or chart, or several,
/// `columns` of them in a row. The value of the cell or point under the pointer is shown, by a
/// script where a heatmap has more than 8,000 cells. The page has the title of the first picture.
/// Nothing is loaded. Throws as to_svg does.
template <class Pictures, class... Columns>
requires requires(const Pictures& pictures, Columns... columns) { to_svg(pictures, columns...); }
std::string to_html(const Pictures& pictures, Columns... columns) {
  std::string title;
  if constexpr (requires { pictures.title.empty(); }) {
    title = pictures.title;
  } else if (std::size(pictures) > 0) {
    title = std::data(pictures)->title;
  }
  return detail::html_around(title.empty() ? "Pictures" : title,
                             detail::drawn("to_html", pictures, columns...));
}

/// Writes an HTML file, as write_svg does an SVG file; also write_html(path, attention_page).
template <class... Pictures>
void write_html(const FilePath& path, const Pictures&... pictures) {
  detail::write_picture(path, to_html(pictures...));
}

}  // namespace heed

#include <heed/definitions/plot.hpp>
