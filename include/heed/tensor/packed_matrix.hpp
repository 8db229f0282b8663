// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/core/half.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/q4_1.hpp>
#include <heed/core/q8_0.hpp>
#include <heed/core/scalar.hpp>
#include <heed/simd/product_kernels.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A matrix laid out once for many products with it on the right, as weights are in inference: one
/// row times it reads its memory straight through. A copy; it does not follow the matrix it was
/// made from. Same bits in every product as that matrix.
template <Scalar T>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// Packs `matrix`, (rows, columns), any strides.
  template <Viewable X>
  explicit PackedMatrix(const X& matrix) {
    const TensorView<const T, 2> view = view_of(matrix);
    rows_ = view.extent(0);
    columns_ = view.extent(1);
    const Index panels = (columns_ + simd::panel_columns - 1) / simd::panel_columns;
    values_ = Tensor<T, 1>({panels * rows_ * simd::panel_columns});
    const auto pack = simd::product_kernels<T>().pack;
    parallel_for(panels, [&](Index panel) {
      const Index first = panel * simd::panel_columns;
      const Index left = columns_ - first;
      pack({view.data_handle() + first * view.stride(1), view.stride(0), view.stride(1)}, rows_,
           left < simd::panel_columns ? left : simd::panel_columns, values_.data() + first * rows_);
    });
  }

  /// Packs the transpose of a quantized matrix, (columns, rows) in blocks Q4_1 or Q8_0 at any
  /// alignment, as it is stored: 6 or 10 bits a weight instead of 32. Products have the bits of the
  /// dequantized matrix. Throws ShapeError for rows that are no multiple of 32 and for bytes that
  /// are not that many blocks.
  template <class Block>
  static PackedMatrix transposed_blocks(std::span<const std::byte> bytes, Index rows,
                                        Index columns) {
    static_assert(
        std::is_same_v<T, float> && (std::is_same_v<Block, Q4_1> || std::is_same_v<Block, Q8_0>),
        "PackedMatrix: floats in blocks Q4_1 or Q8_0");
    constexpr Index terms = simd::QuantizedPanel::terms;
    const Index per_column = rows / terms;
    if (rows < 1 || columns < 1 || rows % terms != 0 ||
        static_cast<Index>(bytes.size() / sizeof(Block)) / per_column != columns ||
        bytes.size() != static_cast<std::size_t>(per_column * columns) * sizeof(Block)) {
      throw_shape_error("PackedMatrix: ", bytes.size(), " bytes of blocks for (", rows, ", ",
                        columns, ")");
    }
    PackedMatrix packed;
    packed.rows_ = rows;
    packed.columns_ = columns;
    packed.nibbles_ = std::is_same_v<Block, Q4_1>;
    const Index block_bytes = simd::QuantizedPanel::block_bytes(packed.nibbles_);
    const Index panels = (columns + simd::panel_columns - 1) / simd::panel_columns;
    packed.blocks_ = Tensor<std::uint8_t, 1>({panels * per_column * block_bytes});
    parallel_for(columns, [&](Index column) {
      const Index panel = column / simd::panel_columns, lane = column % simd::panel_columns;
      for (Index i = 0; i < per_column; ++i) {
        Block block;
        std::memcpy(
            &block,
            bytes.data() + static_cast<std::size_t>(column * per_column + i) * sizeof(Block),
            sizeof(Block));
        lay_out(block, lane, packed.blocks_.data() + (panel * per_column + i) * block_bytes);
      }
    });
    return packed;
  }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  bool empty() const { return rows_ == 0 || columns_ == 0; }
  /// [panel][row][panel_columns]
  const T* data() const { return values_.data(); }
  /// Whether it holds quantized blocks, [panel][rows / 32], and no `data`.
  bool is_quantized() const { return !blocks_.empty(); }
  simd::QuantizedPanel blocks() const { return {blocks_.data(), nibbles_}; }

 private:
  static void lay_out(const Q4_1& block, Index lane, std::uint8_t* to) {
    lay_out_range(float_of_half(block.scale), float_of_half(block.least), lane, to);
    for (Index term = 0; term < 32; ++term) {  // the file has terms i and i + 16 in a byte
      const std::uint8_t pair = block.values[term % 16];
      const auto code = static_cast<std::uint32_t>(term < 16 ? pair & 15 : pair >> 4);
      put(code << (term % 8 * 4), term / 8, lane, to);
    }
  }
  static void lay_out(const Q8_0& block, Index lane, std::uint8_t* to) {
    lay_out_range(float_of_half(block.scale), -0.f, lane, to);  // x + -0 is x for every x
    for (Index term = 0; term < 32; ++term) {
      const auto code = static_cast<std::uint8_t>(block.values[term]);
      put(std::uint32_t{code} << (term % 4 * 8), term / 4, lane, to);
    }
  }
  /// Adds bits to word `index` of a column, which begins as 0.
  static void put(std::uint32_t bits, Index index, Index lane, std::uint8_t* to) {
    to += 4 * ((2 + index) * simd::panel_columns + lane);
    std::uint32_t word;
    std::memcpy(&word, to, 4);
    word |= bits;
    std::memcpy(to, &word, 4);
  }
  static void lay_out_range(float scale, float least, Index lane, std::uint8_t* to) {
    std::memcpy(to + 4 * lane, &scale, 4);
    std::memcpy(to + 4 * (simd::panel_columns + lane), &least, 4);
  }

  Tensor<T, 1> values_;
  Tensor<std::uint8_t, 1> blocks_;
  bool nibbles_ = false;
  Index rows_ = 0;
  Index columns_ = 0;
};

}  // namespace heed
