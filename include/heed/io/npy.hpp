// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <heed/core/half.hpp>
#include <heed/io/file.hpp>
#include <heed/io/npy_header.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, ".npy arrays are read as little-endian");

/// The .npy name of a scalar type.
template <class T>
constexpr std::string_view npy_descr() {
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, double>) return "<f8";
  if constexpr (std::is_same_v<T, std::int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, std::int64_t>) return "<i8";
  if constexpr (std::is_same_v<T, bool>) return "|b1";
}

/// The element at `bytes`, of the file's type, as T; `load_npy` decided that this is possible.
template <class T>
T npy_element(const std::byte* bytes, bool half) {
  if constexpr (std::is_same_v<T, float>) {
    if (half) {
      std::uint16_t value = 0;
      std::memcpy(&value, bytes, sizeof(value));
      return float_of_half(value);
    }
  }
  if constexpr (std::is_same_v<T, bool>) {
    return *bytes != std::byte{0};
  } else {
    T value{};
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
}

/// Checks rank and size of the array against what is wanted and what the file holds.
template <std::size_t Rank>
Extents<Rank> npy_extents(const NpyHeader& header, std::size_t file_size, std::string_view name) {
  if (header.shape.size() != Rank) {
    throw_file_error(name, ": byte ", header.shape_offset, ": shape ", header.shape, " has rank ",
                     header.shape.size(), ", expected ", Rank);
  }
  check_npy_size(header, file_size, name);
  Extents<Rank> extents{};
  std::copy_n(header.shape.begin(), Rank, extents.begin());
  return extents;
}

}  // namespace detail

/// The array in the bytes of an .npy file. T is float, double, std::int32_t, std::int64_t or bool
/// and must be the file's type; half precision widens to float. `name` stands in error messages.
/// Any bytes give a tensor or a FileError, in time and memory of the order of their number.
template <class T, std::size_t Rank>
Tensor<T, Rank> parse_npy(std::span<const std::byte> bytes, std::string_view name = "npy") {
  const NpyHeader header = parse_npy_header(bytes, name);
  const bool half = std::is_same_v<T, float> && header.descr == "<f2";
  if (!half && header.descr != detail::npy_descr<T>()) {
    throw_file_error(name, ": byte ", header.descr_offset, ": elements are '", header.descr,
                     "', expected '", detail::npy_descr<T>(), "'");
  }
  Tensor<T, Rank> tensor(detail::npy_extents<Rank>(header, bytes.size(), name));
  const std::size_t width = half ? 2 : sizeof(T);
  // Fortran order is C order of the reversed axes.
  Extents<Rank> at{};
  const std::byte* from = bytes.data() + header.data_offset;
  for (Index left = tensor.size(); left > 0; --left, from += width) {
    Index to = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) to = to * tensor.extent(axis) + at[axis];
    tensor.data()[to] = detail::npy_element<T>(from, half);
    for (std::size_t i = 0; i < Rank; ++i) {
      const std::size_t axis = header.fortran_order ? i : Rank - 1 - i;
      if (++at[axis] < tensor.extent(axis)) break;
      at[axis] = 0;
    }
  }
  return tensor;
}

/// The array in an .npy file, see parse_npy.
template <class T, std::size_t Rank>
Tensor<T, Rank> load_npy(const std::string& path) {
  return parse_npy<T, Rank>(read_file(path), path);
}

/// Writes any view as a C-ordered .npy file (version 1.0), whole or not at all.
template <Viewable X>
void write_npy(const std::string& path, const X& values) {
  using T = ValueOf<X>;
  constexpr std::size_t rank = ViewOf<const X>::rank();
  const TensorView<const T, rank> view = view_of(values);
  const auto tensor = Tensor<T, rank>::copy_of(view);
  std::string text =
      "{'descr': '" + std::string(detail::npy_descr<T>()) + "', 'fortran_order': False, 'shape': (";
  for (const Index extent : view.extents()) text += std::to_string(extent) + ", ";
  if (rank > 1) text.resize(text.size() - 2);
  text += "), }";
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');  // data begins at 64 · n
  text += '\n';
  std::string start = "\x93NUMPY";
  start += '\1';
  start += '\0';
  start += static_cast<char>(text.size() & 255);
  start += static_cast<char>(text.size() >> 8);
  start += text;
  const auto data_size = static_cast<std::size_t>(tensor.size()) * sizeof(T);
  std::vector<std::byte> bytes(start.size() + data_size);
  std::memcpy(bytes.data(), start.data(), start.size());
  if (data_size > 0) std::memcpy(bytes.data() + start.size(), tensor.data(), data_size);
  write_file(path, bytes);
}

}  // namespace heed
