// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/element_type.hpp>, which includes this file.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace heed {

namespace detail {

struct ElementTypeRow {
  ElementType type;
  std::string_view name;
  std::size_t width;
};
inline constexpr std::array<ElementTypeRow, 8> element_types = {
    {{ElementType::f64, "F64", 8},
     {ElementType::i64, "I64", 8},
     {ElementType::f32, "F32", 4},
     {ElementType::i32, "I32", 4},
     {ElementType::f16, "F16", 2},
     {ElementType::bf16, "BF16", 2},
     {ElementType::u8, "U8", 1},
     {ElementType::boolean, "BOOL", 1}}};

inline const ElementTypeRow& row_of(ElementType type) {
  return element_types[static_cast<std::size_t>(type)];
}

}  // namespace detail

HEED_INLINE std::string_view name_of(ElementType type) { return detail::row_of(type).name; }

HEED_INLINE std::size_t width_of(ElementType type) { return detail::row_of(type).width; }

HEED_INLINE std::optional<ElementType> element_type(std::string_view name) {
  for (const auto& row : detail::element_types) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace heed
