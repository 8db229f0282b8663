// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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

/// The element at `bytes` as T. is_readable_as<T>(type) must be true.
template <class T>
T read_element(ElementType type, const std::byte* bytes) {
  using detail::unaligned;
  if constexpr (std::is_same_v<T, bool>) {
    return *bytes != std::byte{0};
  } else if constexpr (!detail::is_floating_element<T>) {
    return unaligned<T>(bytes);
  } else {
    if (type == ElementType::f64) return static_cast<T>(unaligned<double>(bytes));
    if (type == ElementType::f32) return static_cast<T>(unaligned<float>(bytes));
    if (type == ElementType::f16) return static_cast<T>(unaligned<float16>(bytes));
    return static_cast<T>(unaligned<bfloat16>(bytes));
  }
}

/// Writes `value` to `bytes` as that type, rounded to nearest if it is narrower.
/// is_readable_as<T>(type) must be true.
template <class T>
void write_element(ElementType type, T value, std::byte* bytes) {
  const auto put = [&](auto narrow) { std::memcpy(bytes, &narrow, sizeof(narrow)); };
  if constexpr (std::is_same_v<T, bool>) {
    put(static_cast<std::uint8_t>(value));
  } else if constexpr (!detail::is_floating_element<T>) {
    put(value);
  } else {
    if (type == ElementType::f64) return put(static_cast<double>(value));
    if (type == ElementType::f32) return put(static_cast<float>(value));
    if (type == ElementType::f16) return put(static_cast<float16>(value));
    put(static_cast<bfloat16>(value));
  }
}

}  // namespace heed
