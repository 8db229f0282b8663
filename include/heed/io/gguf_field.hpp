// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/printable.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/error.hpp>

namespace heed {

/// What a piece of GGUF metadata is, by the numbers of the format.
enum class GgufValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};

/// "u32", "text", …
inline std::string_view name_of(GgufValueType type) {
  constexpr std::string_view names[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "text", "array", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(type)];
}

/// Bytes of one value; 0 for text and arrays, which say it themselves.
inline std::size_t width_of(GgufValueType type) {
  constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return widths[static_cast<std::size_t>(type)];
}

namespace detail {

/// Calls visit with the number at `bytes`, which is of that type; neither text nor array.
template <class Visit>
decltype(auto) visit_number(GgufValueType type, const std::byte* bytes, const Visit& visit) {
  switch (type) {
    case GgufValueType::u8:
      return visit(unaligned<std::uint8_t>(bytes));
    case GgufValueType::i8:
      return visit(unaligned<std::int8_t>(bytes));
    case GgufValueType::u16:
      return visit(unaligned<std::uint16_t>(bytes));
    case GgufValueType::i16:
      return visit(unaligned<std::int16_t>(bytes));
    case GgufValueType::u32:
      return visit(unaligned<std::uint32_t>(bytes));
    case GgufValueType::i32:
      return visit(unaligned<std::int32_t>(bytes));
    case GgufValueType::f32:
      return visit(unaligned<float>(bytes));
    case GgufValueType::u64:
      return visit(unaligned<std::uint64_t>(bytes));
    case GgufValueType::i64:
      return visit(unaligned<std::int64_t>(bytes));
    case GgufValueType::f64:
      return visit(unaligned<double>(bytes));
    default:
      return visit(*bytes != std::byte{0});
  }
}

/// 64-bit length and as many bytes; checked when the file was opened.
inline std::string_view text_at(const std::byte* bytes) {
  return {reinterpret_cast<const char*>(bytes) + 8,
          static_cast<std::size_t>(unaligned<std::uint64_t>(bytes))};
}

}  // namespace detail

/// One piece of a GGUF file's metadata. The file checked it when it was opened; the values stay in
/// the file and are read when they are asked for.
struct GgufField {
  std::string_view key;
  GgufValueType type{};   // of the value, or of an array's elements
  bool is_array = false;  // arrays of arrays: type is `array`
  std::size_t count = 1;  // elements
  const std::byte* data = nullptr;

  /// Whether the value, or each element, can be read as T: std::string_view from text, bool from
  /// bool, float and double from either, integers from integers (which must fit).
  template <class T>
  bool holds() const {
    const bool floating = type == GgufValueType::f32 || type == GgufValueType::f64;
    if constexpr (std::same_as<T, std::string_view>) return type == GgufValueType::text;
    if constexpr (std::same_as<T, bool>) return type == GgufValueType::boolean;
    if constexpr (std::floating_point<T>) return floating;
    return !floating && width_of(type) > 0 && type != GgufValueType::boolean;
  }

  /// Calls visit with each of the first `most` values as T, in order, and takes no memory. Throws
  /// FileError, naming the key, when they are something else.
  template <class T, class Visit>
  void for_each(const Visit& visit, std::size_t most = SIZE_MAX) const {
    if (!holds<T>()) {
      throw_file_error(quote(key), " is ", name_of(type), ", expected ", expected_name<T>());
    }
    const std::byte* at = data;
    for (std::size_t i = 0; i < std::min(count, most); ++i) {
      if constexpr (std::same_as<T, std::string_view>) {
        const std::string_view text = detail::text_at(at);
        visit(text);
        at += 8 + text.size();
      } else {
        visit(detail::visit_number(type, at, [&](auto number) { return as<T>(number); }));
        at += width_of(type);
      }
    }
  }
  /// The values as T, in order; at most so many. Throws as for_each does.
  template <class T>
  std::vector<T> values(std::size_t most = SIZE_MAX) const {
    std::vector<T> result;
    if (holds<T>()) result.reserve(std::min(count, most));
    for_each<T>([&](T value) { result.push_back(value); }, most);
    return result;
  }

 private:
  template <class T>
  static constexpr std::string_view expected_name() {
    if constexpr (std::same_as<T, std::string_view>) return "text";
    if constexpr (std::same_as<T, bool>) return "bool";
    return std::floating_point<T> ? "a floating-point number" : "an integer";
  }
  template <class T, class Number>
  T as(Number number) const {
    if constexpr (std::same_as<T, Number>) {
      return number;
    } else if constexpr (std::integral<T> && std::integral<Number> && !std::same_as<T, bool> &&
                         !std::same_as<Number, bool>) {
      if (!std::in_range<T>(number)) {
        throw_file_error(quote(key), ": ", number, " is out of range");
      }
      return static_cast<T>(number);
    } else {
      return static_cast<T>(number);
    }
  }
};

}  // namespace heed
