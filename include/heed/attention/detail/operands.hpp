// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heed/core/bfloat16.hpp>
#include <heed/core/index.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/matrix_ref.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// The rows of one (batch, head) of a tensor, from `row` on, for kernels.
template <class T>
simd::MatrixRef<T> strided_rows(const TensorView<const T, 4>& tensor, Index item, Index head,
                                Index row) {
  return {tensor.data_handle() + item * tensor.stride(0) + head * tensor.stride(1) +
              row * tensor.stride(2),
          tensor.stride(2), tensor.stride(3)};
}

/// Sets `count` numbers to +0. memset, since not every compiler vectorizes a loop of stores at -O2.
template <class T>
void clear_numbers(T* to, Index count) {
  if (count > 0) __builtin_memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
}

/// Copies rows to consecutive rows `padded` apart, with zeros after their columns.
template <class T>
void copy_rows(const simd::MatrixRef<T>& from, Index rows, Index columns, T* to, Index padded) {
  for (Index row = 0; row < rows; ++row, to += padded) {
    const T* source = from.data + row * from.row_stride;
    if (from.column_stride == 1 && columns > 0) {
      __builtin_memcpy(to, source, static_cast<std::size_t>(columns) * sizeof(T));
    } else {
      for (Index column = 0; column < columns; ++column) {
        to[column] = source[column * from.column_stride];
      }
    }
    for (Index column = columns; column < padded; ++column) to[column] = T{0};
  }
}

/// Copies the rows `kept[0]`, `kept[1]`, … (ascending) to consecutive rows; source and target may
/// be the same array.
template <class T>
void gather_rows(const simd::MatrixRef<T>& from, const Index* kept, Index count, Index columns,
                 T* to, Index padded) {
  for (Index row = 0; row < count; ++row) {
    const T* source = from.data + kept[row] * from.row_stride;
    if (source == to + row * padded) continue;
    copy_rows<T>({source, 0, from.column_stride}, 1, columns, to + row * padded, padded);
  }
}

/// The inverse: copies rows 0, 1, … to the rows `kept[0]`, `kept[1]`, …
template <class T>
void scatter_rows(const T* from, const Index* kept, Index count, T* to, Index padded) {
  for (Index row = 0; row < count; ++row) {
    copy_rows<T>({from + row * padded}, 1, padded, to + kept[row] * padded, padded);
  }
}

/// An input tensor of a call, (batch, heads, length, dim): a view or the pages of a cache, in the T
/// of the computation or in bfloat16. The only class that knows the memory layout of rows.
template <class T>
class Operand {
 public:
  Operand() = default;
  /// A view of T or bfloat16.
  template <class X>
  Operand(const TensorView<X, 4>& view)  // NOLINT(google-explicit-constructor)
      : Operand(view.data_handle(), view.extents(), view.strides()) {}
  /// Pages of consecutive tokens, each [head][token][dim]; `tables[item]` lists the pages of a
  /// batch item in order.
  template <class X>
  Operand(const X* pages, Index page_size, const Index* const* tables, const Extents<4>& extents)
      : Operand(pages, extents,
                {extents[1] * page_size * extents[3], page_size * extents[3], extents[3], 1}) {
    tables_ = tables;
    page_size_ = page_size;
  }

  const Extents<4>& extents() const { return extents_; }
  Index extent(std::size_t axis) const { return extents_[axis]; }
  Index stride(std::size_t axis) const { return strides_[axis]; }
  bool is_bfloat16() const { return kernels_ != nullptr; }
  /// The kernels that multiply bfloat16 as it is stored, if the CPU has them; null for a T.
  const simd::PairKernels<T>* pair_kernels() const { return pairs_; }
  /// Whether all rows can be read in place, as a view of T.
  bool is_view() const { return kernels_ == nullptr && tables_ == nullptr; }
  /// That view.
  TensorView<const T, 4> view() const {
    HEED_EXPECTS(is_view());
    return {static_cast<const T*>(data_), extents_, strides_};
  }
  T operator()(Index item, Index head, Index token, Index column) const {
    return static_cast<const T*>(data_)[offset(item, head, token) + column * strides_[3]];
  }
  /// The addresses of a view. Empty for pages, which no other tensor can alias.
  ByteRange bytes() const {
    if (tables_ != nullptr) return {};
    return byte_range(data_, extents_, strides_, static_cast<std::size_t>(width()));
  }
  /// The tokens [first, end) of a view.
  Operand slice(Index first, Index end) const {
    Operand some = *this;
    some.extents_[2] = end - first;
    if (end > first) some.data_ = static_cast<const char*>(data_) + first * strides_[2] * width();
    return some;
  }

  /// The rows of a view from token `first` of a head on.
  simd::MatrixRef<T> rows(Index item, Index head, Index first) const {
    return {static_cast<const T*>(data_) + offset(item, head, first), strides_[2], strides_[3]};
  }
  /// `count` rows of a view from token `first` of a head on, `step` tokens apart, in T: in place,
  /// or copied to `scratch`, (count, dim).
  simd::MatrixRef<T> spaced_rows(Index item, Index head, Index first, Index count, Index step,
                                 T* scratch) const {
    if (kernels_ == nullptr) {
      return {rows(item, head, first).data, strides_[2] * step, strides_[3]};
    }
    if (extents_[3] > 0) {
      kernels_->widen({bits(item, head, first), strides_[2] * step, strides_[3]}, count,
                      extents_[3], scratch);
    }
    return {scratch, extents_[3], 1};
  }
  /// The tokens [first, first + count) of a head in T: in place, or copied to `scratch`, (count,
  /// dim).
  simd::MatrixRef<T> rows(Index item, Index head, Index first, Index count, T* scratch) const {
    if (kernels_ == nullptr && is_contiguous(first, count)) return rows(item, head, first);
    const Index dim = extents_[3];
    for (Index token = first; dim > 0 && token < first + count;) {
      const Index some = smaller(contiguous_end(token), first + count) - token;
      T* to = scratch + (token - first) * dim;
      if (kernels_ != nullptr) {
        kernels_->widen({bits(item, head, token), strides_[2], strides_[3]}, some, dim, to);
      } else {
        copy_rows(rows(item, head, token), some, dim, to, dim);
      }
      token += some;
    }
    return {scratch, dim, 1};
  }

  /// The bits of a token in a bfloat16 operand.
  const std::uint16_t* bits(Index item, Index head, Index token) const {
    return static_cast<const std::uint16_t*>(data_) + offset(item, head, token);
  }
  /// Whether the tokens [first, first + count) are all stride(2) apart.
  bool is_contiguous(Index first, Index count) const {
    return tables_ == nullptr || contiguous_end(first) >= first + count;
  }

 private:
  template <class X>
  Operand(const X* data, const Extents<4>& extents, const Extents<4>& strides)
      : data_(data), extents_(extents), strides_(strides) {
    if constexpr (!std::is_same_v<std::remove_const_t<X>, T>) {
      static_assert(std::is_same_v<std::remove_const_t<X>, bfloat16>);
      kernels_ = &simd::bfloat16_kernels<T>();
      if constexpr (std::is_same_v<T, float>) pairs_ = simd::pair_kernels<T>();
    }
  }

  Index width() const { return static_cast<Index>(is_bfloat16() ? sizeof(bfloat16) : sizeof(T)); }
  Index offset(Index item, Index head, Index token) const {
    if (tables_ == nullptr) {
      return item * strides_[0] + head * strides_[1] + token * strides_[2];
    }
    return tables_[item][token / page_size_] * strides_[0] + head * strides_[1] +
           token % page_size_ * strides_[2];
  }
  /// The end of the contiguous run that contains `token`.
  Index contiguous_end(Index token) const {
    return tables_ == nullptr ? extents_[2] : (token / page_size_ + 1) * page_size_;
  }

  const void* data_ = nullptr;
  Extents<4> extents_{};
  Extents<4> strides_{};
  const simd::Bfloat16Kernels<T>* kernels_ = nullptr;  // null: of T; else reads bfloat16
  const simd::PairKernels<T>* pairs_ = nullptr;        // only programs with bfloat16 compile them
  const Index* const* tables_ = nullptr;               // null: a view; else pages
  Index page_size_ = 0;
};

/// The output tensor of a call, (batch, heads, queries, value_dim): of T, or of bfloat16, to which
/// results are rounded once.
template <class T>
class Result {
 public:
  Result() = default;
  template <class X>
  Result(const TensorView<X, 4>& view)  // NOLINT(google-explicit-constructor)
      : data_(view.data_handle()), extents_(view.extents()), strides_(view.strides()) {
    if constexpr (!std::is_same_v<X, T>) {
      static_assert(std::is_same_v<X, bfloat16>);
      kernels_ = &simd::bfloat16_kernels<T>();
    }
  }

  const Extents<4>& extents() const { return extents_; }
  const Extents<4>& strides() const { return strides_; }
  Index stride(std::size_t axis) const { return strides_[axis]; }
  bool is_bfloat16() const { return kernels_ != nullptr; }
  T& operator()(Index item, Index head, Index query, Index column) const {
    return rows(item, head, query)[column * strides_[3]];
  }
  ByteRange bytes() const {
    return byte_range(data_, extents_, strides_, static_cast<std::size_t>(width()));
  }
  /// The queries [first, end).
  Result slice(Index first, Index end) const {
    Result some = *this;
    some.extents_[2] = end - first;
    if (end > first) some.data_ = static_cast<char*>(data_) + first * strides_[2] * width();
    return some;
  }

  /// The row of a query in a tensor of T.
  T* rows(Index item, Index head, Index query) const {
    return static_cast<T*>(data_) + offset(item, head, query);
  }
  /// Rounds `count` rows, (count, value_dim), to the rows of a head from `query` on.
  void round(const T* from, Index count, Index item, Index head, Index query,
             Index step = 1) const {
    const Index columns = extents_[3];
    for (Index row = 0; columns > 0 && row < count; ++row, from += columns) {
      bfloat16* to = static_cast<bfloat16*>(data_) + offset(item, head, query + row * step);
      if (strides_[3] == 1) {
        kernels_->narrow(from, columns, &to->bits);
      } else {
        for (Index d = 0; d < columns; ++d)
          to[d * strides_[3]] = bfloat16(static_cast<float>(from[d]));
      }
    }
  }

 private:
  Index width() const { return static_cast<Index>(is_bfloat16() ? sizeof(bfloat16) : sizeof(T)); }
  Index offset(Index item, Index head, Index query) const {
    return item * strides_[0] + head * strides_[1] + query * strides_[2];
  }

  void* data_ = nullptr;
  Extents<4> extents_{};
  Extents<4> strides_{};
  const simd::Bfloat16Kernels<T>* kernels_ = nullptr;  // null: of T; else writes bfloat16
};

}  // namespace heed::detail
