// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Text and bytes inside SVG and HTML. Definitions: svg.inl, html.inl.

namespace heed::detail {

struct Picture;

/// Text escaped for XML.
std::string escaped(std::string_view text);

/// Bytes in base64: RFC 4648.
std::string base64_of(std::span<const std::uint8_t> bytes);

/// A JSON string that is safe inside <script>.
std::string json_string(std::string_view text);

/// An HTML page around an SVG picture, which tells the values of cells that SVG does not tell.
std::string html_around(const std::string& title, const Picture& picture);

}  // namespace heed::detail
