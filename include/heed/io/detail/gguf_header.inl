// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/gguf_header.hpp>, which includes this file.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/core/text.hpp>
#include <heed/io/element_type.hpp>

namespace heed {

HEED_INLINE const GgufType* gguf_type(std::uint32_t id) {
  for (const GgufType& type : detail::gguf_types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

HEED_INLINE bool is_dequantizable(const GgufType& type) {
  for (const std::string_view name :
       {"F32", "F16", "BF16", "F64", "Q8_0", "Q4_0", "Q4_1", "Q6_K"}) {
    if (type.name == name) return true;
  }
  return false;
}

HEED_INLINE std::string_view name_of(GgufValueType type) {
  constexpr std::string_view names[] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "text", "array", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(type)];
}

HEED_INLINE std::size_t width_of(GgufValueType type) {
  constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return widths[static_cast<std::size_t>(type)];
}

HEED_INLINE Index GgufTensor::size() const {
  Index product = std::count(shape().begin(), shape().end(), 0) > 0 ? 0 : 1;
  for (const Index extent : shape()) product *= extent;
  return product;
}

namespace detail {

HEED_INLINE std::string_view ByteReader::text(std::string_view what) {
  const auto length = number<std::uint64_t>(what);
  if (length > left()) fail(what, " of ", length, " bytes, the file has ", left(), " more");
  const auto bytes = take(static_cast<std::size_t>(length), what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

HEED_INLINE std::size_t ByteReader::count(std::size_t least, std::string_view what) {
  const auto value = number<std::uint64_t>(what);
  if (value > left() / least) fail(what, " is ", value, ", the file has ", left(), " more bytes");
  return static_cast<std::size_t>(value);
}

HEED_INLINE std::span<const std::byte> ByteReader::take(std::size_t size, std::string_view what) {
  if (size > left()) fail("the file ends inside ", what);
  const auto taken = bytes_.subspan(at_, size);
  at_ += size;
  return taken;
}

}  // namespace detail

}  // namespace heed
