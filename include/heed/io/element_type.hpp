// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include <heed/core/bfloat16.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// The element type of a tensor in a safetensors file, widest first: the order in which
/// SafetensorsWriter writes tensors.
enum class ElementType : std::uint8_t { f64, i64, f32, i32, f16, bf16, u8, boolean };

namespace detail {

struct ElementTypeRow {
  ElementType type;
  std::string_view name;
  std::size_t width;
};
inline constexpr ElementTypeRow element_types[] = {
    {ElementType::f64, "F64", 8}, {ElementType::i64, "I64", 8},     {ElementType::f32, "F32", 4},
    {ElementType::i32, "I32", 4}, {ElementType::f16, "F16", 2},     {ElementType::bf16, "BF16", 2},
    {ElementType::u8, "U8", 1},   {ElementType::boolean, "BOOL", 1}};

inline const ElementTypeRow& row_of(ElementType type) {
  return element_types[static_cast<std::size_t>(type)];
}

/// The value at `bytes`, at any alignment.
template <class T>
T unaligned(const std::byte* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class T, class... Types>
inline constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);
template <class T>
inline constexpr bool is_floating_element = is_one_of<T, float, double, bfloat16, float16>;
template <class T>
inline constexpr bool has_element_type =
    is_floating_element<T> || is_one_of<T, std::int64_t, std::int32_t, std::uint8_t, bool>;

/// Bytes of so many elements of this width; nothing for a negative extent, and for too many to be
/// counted, if there are any.
inline std::optional<std::size_t> bytes_of(std::size_t width, std::span<const Index> shape) {
  std::size_t bytes = std::count(shape.begin(), shape.end(), 0) > 0 ? 0 : width;
  for (const Index extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

/// The rank of a tensor that is read without one: refused while the call is looked up, so that this
/// sentence is the first.
template <class T>
constexpr std::size_t rank_not_given() {
  static_assert(sizeof(T) == 0,
                "a tensor's rank is part of its type: name it behind the scalar type, as 2 for a "
                "matrix in load_npy<float, 2>(path) or file.tensor<float, 2>(name)");
  return 1;
}
template <class Name>
void expect_type_of_tensor() {
  static_assert(never<Name>,
                "the type and the rank of a tensor are named: load_npy<float, 2>(path), "
                "file.tensor<float, 2>(name)");
}

}  // namespace detail

/// The type's name in files, e.g. "BF16".
inline std::string_view name_of(ElementType type) { return detail::row_of(type).name; }

/// Bytes of one element.
inline std::size_t width_of(ElementType type) { return detail::row_of(type).width; }

/// The type with that name in files; nothing for types that heed does not have.
inline std::optional<ElementType> element_type(std::string_view name) {
  for (const auto& row : detail::element_types) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

/// The type with exactly the values of T.
template <class T>
constexpr ElementType element_type_of() {
  static_assert(detail::has_element_type<T>,
                "tensors are read and written as float, double, bfloat16, float16, std::int64_t, "
                "std::int32_t, std::uint8_t or bool");
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
  if constexpr (std::is_same_v<T, bfloat16>) return ElementType::bf16;
  if constexpr (std::is_same_v<T, float16>) return ElementType::f16;
  if constexpr (std::is_same_v<T, std::int64_t>) return ElementType::i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return ElementType::i32;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ElementType::u8;
  return ElementType::boolean;
}

/// Whether elements of this type can be read as T: floating-point types as any other, rounded to
/// nearest where T is narrower, any other type as itself.
template <class T>
bool is_readable_as(ElementType type) {
  if (type == element_type_of<T>()) return true;
  const bool floating = type == ElementType::f64 || type == ElementType::f32 ||
                        type == ElementType::f16 || type == ElementType::bf16;
  return detail::is_floating_element<T> && floating;
}

namespace detail {

/// Converts numbers at any alignment. Most are taken in parts of a fixed size, which compilers put
/// in vectors at -O2 too.
template <class From, class To>
void convert_elements(const std::byte* from, Index count, std::byte* to) {
  constexpr Index part = 64;
  if constexpr (std::is_same_v<From, To>) {
    if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(To));
  } else {
    for (; count >= part; count -= part) {
      std::array<From, part> before;
      std::array<To, part> after;
      std::memcpy(before.data(), from, sizeof(before));
      for (std::size_t i = 0; i < part; ++i) after[i] = static_cast<To>(before[i]);
      std::memcpy(to, after.data(), sizeof(after));
      from += sizeof(before);
      to += sizeof(after);
    }
    for (; count > 0; --count, from += sizeof(From), to += sizeof(To)) {
      const auto value = static_cast<To>(unaligned<From>(from));
      std::memcpy(to, &value, sizeof(To));
    }
  }
}

/// Calls visit(Number{}) with the type whose bits are an element of this type, which T reads.
template <class T, class Visit>
void with_stored_type(ElementType type, const Visit& visit) {
  if constexpr (std::is_same_v<T, bool>) {
    visit(std::uint8_t{});
  } else if constexpr (!is_floating_element<T>) {
    visit(T{});
  } else {
    if (type == ElementType::f64) return visit(double{});
    if (type == ElementType::f32) return visit(float{});
    if (type == ElementType::f16) return visit(float16{});
    visit(bfloat16{});
  }
}

}  // namespace detail

/// Reads `count` elements of that type, at any alignment, as T. is_readable_as<T>(type) must be
/// true.
template <class T>
void read_elements(ElementType type, const std::byte* from, Index count, T* to) {
  detail::with_stored_type<T>(type, [&]<class Stored>(Stored) {
    detail::convert_elements<Stored, T>(from, count, reinterpret_cast<std::byte*>(to));
  });
}
/// One of them.
template <class T>
T read_element(ElementType type, const std::byte* bytes) {
  T value{};
  read_elements(type, bytes, 1, &value);
  return value;
}

/// Writes `count` values to `to`, at any alignment, as that type, rounded to nearest if it is
/// narrower. is_readable_as<T>(type) must be true.
template <class T>
void write_elements(ElementType type, const T* from, Index count, std::byte* to) {
  detail::with_stored_type<T>(type, [&]<class Stored>(Stored) {
    detail::convert_elements<T, Stored>(reinterpret_cast<const std::byte*>(from), count, to);
  });
}
/// One of them.
template <class T>
void write_element(ElementType type, T value, std::byte* bytes) {
  write_elements(type, &value, 1, bytes);
}

}  // namespace heed
