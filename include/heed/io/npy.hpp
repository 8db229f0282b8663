// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/io/element_type.hpp>
#include <heed/io/file.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// The header of an .npy file.
struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<Index> shape;
  std::size_t data_offset = 0;
  std::size_t descr_offset = 0, shape_offset = 0;  // positions of descr and shape in the file
};

/// The header in the bytes of an .npy file; `name` appears in error messages. Throws FileError.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view name = "npy");

/// Bytes per element of numpy's type `descr`, e.g. 4 for "<f4"; 0 if the type does not fix them.
std::size_t npy_element_size(std::string_view descr);

/// Checks that a file of `file_size` bytes holds exactly the data of type and shape. Throws
/// FileError.
void check_npy_size(const NpyHeader& header, std::size_t file_size, std::string_view name = "npy");

namespace detail {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, ".npy arrays are read as little-endian");

/// The .npy name of a scalar type.
template <class T>
constexpr std::string_view npy_descr() {
  static_assert(is_one_of<T, float, double, std::int32_t, std::int64_t, bool>,
                "an .npy array is one of float, double, std::int32_t, std::int64_t or bool");
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, double>) return "<f8";
  if constexpr (std::is_same_v<T, std::int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, std::int64_t>) return "<i8";
  return "|b1";
}

/// Which T reads elements of this type, for an error message; empty if none does.
constexpr std::string_view npy_type_hint(std::string_view descr) {
  if (descr == "<f4" || descr == "<f2") return "; load them as float";
  if (descr == "<f8") return "; load them as double";
  if (descr == "<i4") return "; load them as std::int32_t";
  if (descr == "<i8") return "; load them as std::int64_t";
  return descr == "|b1" ? "; load them as bool" : "";
}

/// The extents of the array. Throws FileError if its rank is another one or its size does not match
/// the file's.
template <std::size_t Rank>
Extents<Rank> npy_extents(const NpyHeader& header, std::size_t file_size, std::string_view name) {
  if (header.shape.size() != Rank) {
    throw_file_error(name, ": byte ", header.shape_offset, ": shape ", header.shape, " has rank ",
                     header.shape.size(), ", expected ", Rank);
  }
  check_npy_size(header, file_size, name);
  Extents<Rank> extents{};
  for (std::size_t axis = 0; axis < Rank; ++axis) extents[axis] = header.shape[axis];
  return extents;
}

/// Writes row-major elements of a type as an .npy file.
void write_npy(const std::string& path, std::string_view descr, std::span<const Index> extents,
               std::span<const std::byte> elements);

}  // namespace detail

/// The array in the bytes of an .npy file. T is float, double, std::int32_t, std::int64_t or bool
/// and must be the file's type; half precision widens to float. `name` appears in error messages.
/// Any bytes give a tensor or a FileError, in time and memory proportional to their number.
template <class T, std::size_t Rank = detail::rank_not_given<T>()>
Tensor<T, Rank> parse_npy(std::span<const std::byte> bytes, std::string_view name = "npy") {
  const NpyHeader header = parse_npy_header(bytes, name);
  const bool half = std::is_same_v<T, float> && header.descr == "<f2";
  if (!half && header.descr != detail::npy_descr<T>()) {
    throw_file_error(name, ": byte ", header.descr_offset, ": elements are '", header.descr,
                     "', expected '", detail::npy_descr<T>(), "'",
                     detail::npy_type_hint(header.descr));
  }
  const auto extents = detail::npy_extents<Rank>(header, bytes.size(), name);
  auto tensor = Tensor<T, Rank>::uninitialized(extents);
  const ElementType type = half ? ElementType::f16 : element_type_of<T>();
  read_elements(type, bytes.data() + header.data_offset, tensor.size(), tensor.data());
  if constexpr (Rank > 1) {
    if (header.fortran_order && !tensor.empty()) {  // C order of the reversed axes
      Extents<Rank> reversed = extents, order{};
      std::reverse(reversed.begin(), reversed.end());
      for (std::size_t axis = 0; axis < Rank; ++axis)
        order[axis] = static_cast<Index>(Rank - 1 - axis);
      const auto turned = std::move(tensor).reshaped(reversed);
      return Tensor<T, Rank>::copy_of(turned.view().permute(order));
    }
  }
  return tensor;
}

/// Loads the array in an .npy file; see parse_npy.
template <class T, std::size_t Rank = detail::rank_not_given<T>()>
Tensor<T, Rank> load_npy(const FilePath& path) {
  return parse_npy<T, Rank>(read_file(path), path);
}

template <detail::PathLike Path>
Tensor<float, 1> load_npy(const Path&) {
  return detail::expect_type_of_tensor<Path>(), Tensor<float, 1>();
}

/// Writes any view as a C-ordered .npy file (version 1.0), completely or not at all. Throws
/// FileError.
template <Viewable X>
void write_npy(const FilePath& path, const X& values) {
  using T = ValueOf<X>;
  constexpr std::size_t rank = ViewOf<const X>::rank();
  const TensorView<const T, rank> view = view_of(values);
  const auto tensor = Tensor<T, rank>::copy_of(view);
  detail::write_npy(
      path, detail::npy_descr<T>(), view.extents(),
      std::as_bytes(std::span(tensor.data(), static_cast<std::size_t>(tensor.size()))));
}
template <detail::Expression X>
void write_npy(const FilePath&, const X&) {
  detail::expect_evaluated<X>();
}
template <detail::NoPath X>
void write_npy(const X&, const std::string&) {
  detail::expect_path_first<X>();
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/io/detail/npy.inl>
#endif
