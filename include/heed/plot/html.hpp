// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/plot/attention_page.hpp>
#include <heed/plot/detail/picture.hpp>
#include <heed/plot/svg.hpp>
#include <heed/plot/write_picture.hpp>

namespace heed {

/// An HTML file with all layers and heads as thumbnails; a click enlarges one, and query, key and
/// weight under the pointer are shown. Buttons switch between the masks of the page. The page is
/// self-contained: it loads nothing, and its content security policy forbids it. Throws ShapeError
/// for labels that do not fit, and for weights of different extents.
inline std::string to_html(const AttentionPage& page) { return detail::html_of(page); }

/// An HTML page around to_svg of the same arguments: one heatmap or chart, or several,
/// `columns` of them in a row. The value of the cell or point under the pointer is shown, by a
/// script where a heatmap has more than 8,000 cells. Nothing is loaded. Throws as to_svg does.
template <class Pictures, class... Columns>
requires requires(const Pictures& pictures, Columns... columns) { to_svg(pictures, columns...); }
std::string to_html(const Pictures& pictures, Columns... columns) {
  std::string title = "Pictures";
  if constexpr (requires { pictures.title.empty(); }) {
    if (!pictures.title.empty()) title = pictures.title;
  }
  return detail::html_around(title, detail::drawn("to_html", pictures, columns...));
}

}  // namespace heed

#include <heed/plot/detail/definitions.hpp>
