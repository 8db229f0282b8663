// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/quantized.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// Throws InvalidArgument where two factors of type T have no such products.
template <class T>
void check_products(Products products) {
  if (products == Products::exact) return;
  if (std::is_same_v<T, float> && products == Products::bfloat16) return;
  throw_invalid_argument("products in ", products == Products::bfloat16 ? "bfloat16" : "int16",
                         " of ",
                         std::is_same_v<T, float>    ? "float"
                         : std::is_same_v<T, double> ? "double"
                                                     : "bfloat16",
                         "; those in bfloat16 are of float, those in int16 of quantized weights");
}

}  // namespace detail

/// A right-hand matrix packed once for many products, as weights are in inference: multiplying one
/// row by it reads its memory sequentially. A copy; it does not follow later changes of the source
/// matrix. Every product has the same bits as with the source matrix and the same `products`.
template <ModelScalar T>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// Packs `matrix`, (rows, columns), any strides, of T or, where T is float, of bfloat16, which
  /// takes half the memory. Floats are rounded to it for Products::bfloat16. Exact products with
  /// bfloat16 have the bits of the widened matrix. Throws InvalidArgument for `products` that T
  /// does not have.
  template <Viewable X>
  explicit PackedMatrix(const X& matrix, Products products = Products::exact) {
    constexpr bool narrow = std::is_same_v<ValueOf<const X>, bfloat16> && std::is_same_v<T, float>;
    constexpr bool fits = narrow || std::is_same_v<ValueOf<const X>, T>;
    constexpr bool is_matrix = ViewOf<const X>::rank() == 2;
    static_assert(fits,
                  "PackedMatrix takes a matrix of its own scalar type, or of bfloat16 for float");
    static_assert(is_matrix, "PackedMatrix takes a matrix (rows, columns)");
    if constexpr (fits && is_matrix) {
      detail::check_products<T>(products);
      const auto view = view_of(matrix);
      if (narrow || products == Products::bfloat16) {
        *this = in_blocks<bfloat16>(view.extent(0), view.extent(1), products,
                                    [&](Index column, Index row) {
                                      return bfloat16(static_cast<float>(view(row, column)));
                                    });
      } else if constexpr (!narrow) {
        pack_panels(view);
      }
    }
  }

  /// Packs the transpose of a matrix (columns, rows) in the precision in which it is stored, at any
  /// alignment: in blocks Q4_0, Q4_1 or Q8_0, or as bfloat16 or float16, at 4.5, 5, 8.5 or 16
  /// bits per weight instead of 32. Exact products have the bits of the widened matrix. For int16
  /// products with blocks, the left-hand rows are rounded to 16 bits in blocks of 32 terms, with an
  /// error of at most 1/65534 of the block's largest magnitude; for bfloat16 products with
  /// bfloat16, to 8 bits, with an error of at most 1/512 of each number. Other combinations of
  /// blocks and `products` give exact products. A result row has the same bits whatever rows
  /// accompany it. `rows` and `columns` are those of the packed matrix, whose columns are stored in
  /// blocks one after another. Throws ShapeError if one of them is below 1, if `rows` is not a
  /// multiple of the block's length, and if `bytes` is not the right number of blocks.
  template <class Block>
  static PackedMatrix transposed_blocks(std::span<const std::byte> bytes, Index rows, Index columns,
                                        Products products = Products::exact) {
    static_assert(std::is_same_v<T, float>, "PackedMatrix: blocks stand for floats");
    constexpr Index length = length_of<Block>;
    const Index per_column = rows / length;
    if (rows < 1 || columns < 1 || rows % length != 0 ||
        static_cast<Index>(bytes.size() / sizeof(Block)) / per_column != columns ||
        bytes.size() != static_cast<std::size_t>(per_column * columns) * sizeof(Block)) {
      throw_shape_error("PackedMatrix: ", bytes.size(), " bytes of blocks for (", rows, ", ",
                        columns, ")");
    }
    return in_blocks<Block>(rows, columns, products, [=](Index column, Index i) {
      Block block;
      std::memcpy(&block,
                  bytes.data() + static_cast<std::size_t>(column * per_column + i) * sizeof(Block),
                  sizeof(Block));
      return block;
    });
  }

  /// The columns first, …, last − 1. Throws ShapeError unless `first` is a multiple of
  /// simd::panel_columns, and `last` too or the number of columns.
  PackedMatrix columns(Index first, Index last) const {
    constexpr Index width = simd::panel_columns;
    if (first < 0 || last < first || last > columns_ || first % width != 0 ||
        (last % width != 0 && last != columns_)) {
      throw_shape_error("PackedMatrix: columns ", first, " to ", last, " of ", columns(),
                        ", expected multiples of ", width);
    }
    PackedMatrix part;
    part.codes_ = codes_;
    part.products_ = products_;
    part.rows_ = rows_;
    part.columns_ = last - first;
    const auto take = [&](const auto& from, auto& to) {
      const Index panels = detail::parts_of(columns_, width);
      const Index panel = panels == 0 ? 0 : from.size() / panels;
      to = std::remove_reference_t<decltype(to)>::copy_of(
          from.view().slice(0, first / width * panel, detail::parts_of(last, width) * panel));
    };
    take(values_, part.values_);
    take(blocks_, part.blocks_);
    return part;
  }

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  /// Bytes of memory that the weights take.
  Index byte_count() const {
    return values_.size() * static_cast<Index>(sizeof(T)) + blocks_.size();
  }
  bool empty() const { return rows_ == 0 || columns_ == 0; }
  /// [panel][row][panel_columns]
  const T* data() const { return values_.data(); }
  /// Whether the matrix is in blocks, [panel][block], and has no `data`.
  bool is_quantized() const { return !blocks_.empty(); }
  simd::QuantizedPanel blocks() const { return {blocks_.data(), codes_, products_}; }

 private:
  void pack_panels(const TensorView<const T, 2>& matrix) {
    rows_ = matrix.extent(0);
    columns_ = matrix.extent(1);
    const Index panels = detail::parts_of(columns_, simd::panel_columns);
    values_ = Tensor<T, 1>({panels * rows_ * simd::panel_columns});
    const auto pack = simd::product_kernels<T>().pack;
    parallel_for(panels, [&](Index panel) {
      const Index first = panel * simd::panel_columns;
      const auto columns =
          matrix.slice(1, first, detail::smaller(first + simd::panel_columns, columns_));
      pack({columns.data_handle(), columns.stride(0), columns.stride(1)}, rows_, columns.extent(1),
           values_.data() + first * rows_);
    });
  }
  template <class Block>
  static constexpr simd::QuantizedCodes codes_of =
      std::is_same_v<Block, Q4_1>       ? simd::QuantizedCodes::nibbles
      : std::is_same_v<Block, Q4_0>     ? simd::QuantizedCodes::signed_nibbles
      : std::is_same_v<Block, bfloat16> ? simd::QuantizedCodes::bfloat16
      : std::is_same_v<Block, float16>  ? simd::QuantizedCodes::half
                                        : simd::QuantizedCodes::bytes;
  template <class Block>
  static constexpr Index length_of = simd::QuantizedPanel::has_pairs(codes_of<Block>)
                                         ? 1
                                         : simd::QuantizedPanel::terms;

  /// Packs the blocks that `block_at(column, i)` gives.
  template <class Block, class BlockAt>
  static PackedMatrix in_blocks(Index rows, Index columns, Products products,
                                const BlockAt& block_at) {
    PackedMatrix packed;
    packed.rows_ = rows;
    packed.columns_ = columns;
    packed.codes_ = codes_of<Block>;
    const bool rounds = length_of<Block> == 1
                            ? std::is_same_v<Block, bfloat16> && products == Products::bfloat16
                            : products == Products::int16;
    if (rounds) packed.products_ = products;
    const Index panel_bytes = simd::QuantizedPanel::bytes(packed.codes_, rows);
    const Index panels = detail::parts_of(columns, simd::panel_columns);
    packed.blocks_ = Tensor<std::uint8_t, 1>({panels * panel_bytes});
    parallel_for(panels, [&](Index panel) {
      const auto block = block_at;  // stays in registers, unlike what bytes may be written to
      const Index first = panel * simd::panel_columns, count = rows / length_of<Block>;
      const Index last = detail::smaller(first + simd::panel_columns, columns);
      std::uint8_t* to = packed.blocks_.data() + panel * panel_bytes;
      for (Index column = first; column < last; ++column) {
        for (Index i = 0; i < count; ++i) packed.lay_out(block(column, i), i, column - first, to);
      }
    });
    return packed;
  }

  /// Adds block `i` of a column to its place in the panel, which starts as zeros.
  template <class Block>
  void lay_out(const Block& block, Index i, Index lane, std::uint8_t* to) const {
    if constexpr (length_of<Block> == 1) {
      const Index words = i / 2 * simd::panel_columns + lane;
      std::memcpy(to + 4 * words + (i % 2 == 0 ? 2 : 0), &block.bits, 2);
    } else {
      lay_out_codes(block, lane, to + i * simd::QuantizedPanel::block_bytes(codes_));
    }
  }
  template <class Block>
  void lay_out_codes(const Block& block, Index lane, std::uint8_t* to) const {
    constexpr bool bytes = codes_of<Block> == simd::QuantizedCodes::bytes;
    std::memcpy(to + 2 * lane, &block.scale, 2);
    to += 2 * simd::panel_columns;
    if constexpr (codes_of<Block> == simd::QuantizedCodes::nibbles) {
      std::memcpy(to + 2 * lane, &block.least, 2);
      to += 2 * simd::panel_columns;
    }
    constexpr Index half = simd::QuantizedPanel::terms / 2, bits = bytes ? 8 : 4;
    const auto add_codes = [&](auto pairs) {
      constexpr Index in_word = 32 / bits / (pairs ? 2 : 1);
      for (Index term = 0; term < 2 * half; ++term) {
        std::uint32_t code, word;
        if constexpr (bytes) {
          code = static_cast<std::uint8_t>(block.values[term]);
        } else {  // the file has terms i and i + 16 in one byte
          code = block.values[term % half] >> (term < half ? 0 : 4) & 15u;
        }
        const Index place = pairs ? term % half : term, shift = pairs ? term / half * 16 : 0;
        std::uint8_t* at = to + 4 * (place / in_word * simd::panel_columns + lane);
        std::memcpy(&word, at, 4);
        word |= code << (place % in_word * bits + shift);
        std::memcpy(at, &word, 4);
      }
    };
    products_ == Products::int16 ? add_codes(std::true_type{}) : add_codes(std::false_type{});
  }

  Tensor<T, 1> values_;
  Tensor<std::uint8_t, 1> blocks_;
  simd::QuantizedCodes codes_ = simd::QuantizedCodes::nibbles;
  Products products_ = Products::exact;
  detail::HeldCount rows_;
  detail::HeldCount columns_;
};

}  // namespace heed
