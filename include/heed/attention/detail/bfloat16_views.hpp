// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/cache_pages.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// The tensors of a bfloat16 call, as they came.
struct Bfloat16Views {
  TensorView<const bfloat16, 4> queries;      // (batch, heads, queries, head_dim)
  TensorView<const bfloat16, 4> keys;         // (batch, key heads, keys, head_dim)
  TensorView<const bfloat16, 4> values;       // (batch, key heads, keys, value_dim)
  TensorView<bfloat16, 4> out;                // (batch, heads, queries, value_dim)
  const CachePages* cached_keys = nullptr;    // where keys and values lie, if not in the views,
  const CachePages* cached_values = nullptr;  // whose extents hold in any case
};

/// Rows of keys or of values of one head, as bits, in a tensor or in a cache's pages.
class Bfloat16Rows {
 public:
  Bfloat16Rows(const TensorView<const bfloat16, 4>& view, const CachePages* pages, Index item,
               Index head)
      : view_(view), pages_(pages), item_(item), head_(head) {}

  Index columns() const { return view_.extent(3); }
  Index column_stride() const { return pages_ != nullptr ? 1 : view_.stride(3); }
  Index row_stride() const { return pages_ != nullptr ? pages_->dim : view_.stride(2); }
  const std::uint16_t* at(Index token) const {
    if (pages_ != nullptr) {
      return static_cast<const std::uint16_t*>(pages_->data) + pages_->offset(item_, head_, token);
    }
    // Not by the member's address: rows of no columns have no memory.
    return reinterpret_cast<const std::uint16_t*>(view_.data_handle() + item_ * view_.stride(0) +
                                                  head_ * view_.stride(1) +
                                                  token * view_.stride(2));
  }
  /// Whether `row_stride` leads from each of the tokens [first, first + count) to the next.
  bool in_one_piece(Index first, Index count) const {
    return pages_ == nullptr ||
           first / pages_->page_size == (first + count - 1) / pages_->page_size;
  }
  /// Copies a row, with zeros behind its columns.
  void copy(Index token, Index padded, std::uint16_t* to) const {
    const std::uint16_t* from = at(token);
    const Index step = column_stride();
    for (Index d = 0; d < padded; ++d) to[d] = d < columns() ? from[d * step] : std::uint16_t{0};
  }

 private:
  const TensorView<const bfloat16, 4>& view_;
  const CachePages* pages_;
  Index item_;
  Index head_;
};

}  // namespace heed::detail
