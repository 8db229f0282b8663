// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/attention/detail/bfloat16_products.hpp>
#include <heed/attention/detail/bfloat16_views.hpp>
#include <heed/attention/detail/copy_rows.hpp>
#include <heed/attention/detail/narrow_tensors.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/simd/bfloat16_kernels.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// bfloat16 tensors, computed with as T = float: multiplied in pairs, or widened block by block;
/// results are rounded once.
template <class T>
class Bfloat16Tensors final : public NarrowTensors<T> {
 public:
  /// `products`: null or those of the same tensors.
  explicit Bfloat16Tensors(const Bfloat16Views& views,
                           const Bfloat16Products<T>* products = nullptr)
      : views_(views), kernels_(simd::bfloat16_kernels<T>()), products_(products) {}

  const NarrowProducts<T>* products() const override { return products_; }

  simd::MatrixRef<T> query_rows(Index item, Index head, Index first, Index count) const override {
    return widened(strided_rows(views_.queries, item, head, first), count, views_.queries.extent(3),
                   memory(count * views_.queries.extent(3)));
  }
  simd::MatrixRef<T> key_rows(Index item, Index head, Index first, Index count,
                              T* scratch) const override {
    const auto* pages = views_.cached_keys;
    if (pages != nullptr) return pages->rows(item, head, first, count, scratch);
    return widened(strided_rows(views_.keys, item, head, first), count, views_.keys.extent(3),
                   scratch);
  }
  simd::MatrixRef<T> value_rows(Index item, Index head, Index first, Index count,
                                T* scratch) const override {
    const auto* pages = views_.cached_values;
    if (pages != nullptr) return pages->rows(item, head, first, count, scratch);
    return widened(strided_rows(views_.values, item, head, first), count, views_.values.extent(3),
                   scratch);
  }
  T* out_rows(Index count) const override { return memory(count * views_.out.extent(3)); }
  void put_out(Index item, Index head, Index first, Index count) const override {
    const auto& out = views_.out;
    const Index columns = out.extent(3);
    if (columns == 0) return;
    const T* from = memory(count * columns);
    for (Index row = 0; row < count; ++row, from += columns) {
      bfloat16* to = out.data_handle() + item * out.stride(0) + head * out.stride(1) +
                     (first + row) * out.stride(2);
      if (out.stride(3) == 1) {
        kernels_.narrow(from, columns, &to->bits);
      } else {
        for (Index d = 0; d < columns; ++d) to[d * out.stride(3)] = bfloat16(from[d]);
      }
    }
  }

 private:
  struct Rows;  // the purpose of the memory
  static T* memory(Index count) {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    return reinterpret_cast<T*>(Scratch::of_this_thread<Rows>(bytes));
  }

  simd::MatrixRef<T> widened(const simd::MatrixRef<bfloat16>& from, Index rows, Index columns,
                             T* to) const {
    kernels_.widen(
        {from.data == nullptr ? nullptr : &from.data->bits, from.row_stride, from.column_stride},
        rows, columns, to);
    return {to, columns, 1};
  }

  const Bfloat16Views& views_;
  const simd::Bfloat16Kernels<T>& kernels_;
  const Bfloat16Products<T>* products_;
};

}  // namespace heed::detail
