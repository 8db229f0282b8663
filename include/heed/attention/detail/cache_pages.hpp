// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include <heed/core/bfloat16.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/tensor/view.hpp>

namespace heed::detail {

/// The memory of keys, or of values, in a cache: pages of consecutive tokens, of which a table per
/// batch item names the next one. A page holds [head][token][dim].
struct CachePages {
  const void* data = nullptr;
  bool narrow = false;  // bfloat16
  Index dim = 0;
  Index heads = 0;
  Index page_size = 0;
  const Index* const* tables = nullptr;  // [item][page of the sequence]

  Index page_numbers() const { return heads * page_size * dim; }
  /// Where a token stands, in elements.
  Index offset(Index item, Index head, Index token) const {
    const Index page = tables[item][token / page_size];
    return page * page_numbers() + (head * page_size + token % page_size) * dim;
  }

  /// The tokens [first, first + count): where they lie, if that is in one piece of T, or copied and
  /// widened to `scratch`, (count, dim).
  template <class T>
  simd::MatrixRef<T> rows(Index item, Index head, Index first, Index count, T* scratch) const {
    if (!narrow && first / page_size == (first + count - 1) / page_size) {
      return {static_cast<const T*>(data) + offset(item, head, first), dim, 1};
    }
    for (Index token = first; token < first + count;) {
      const Index end = (token / page_size + 1) * page_size;
      const Index piece = (end < first + count ? end : first + count) - token;
      const Index from = offset(item, head, token);
      T* to = scratch + (token - first) * dim;
      if (narrow) {
        simd::decode_kernels<T>().widen(static_cast<const std::uint16_t*>(data) + from, piece * dim,
                                        to);
      } else {
        __builtin_memcpy(to, static_cast<const T*>(data) + from,
                         static_cast<std::size_t>(piece * dim) * sizeof(T));
      }
      token += piece;
    }
    return {scratch, dim, 1};
  }
};

/// One head's part of a token, as a cache stores it.
template <class T, class Stored>
void store_row(const TensorView<const T, 3>& from, Index head, Index token, Stored* to) {
  if constexpr (std::is_same_v<T, Stored>) {
    if (from.stride(2) == 1 && from.extent(2) > 0) {
      __builtin_memcpy(to, &from(head, token, 0),
                       static_cast<std::size_t>(from.extent(2)) * sizeof(T));
      return;
    }
  }
  for (Index d = 0; d < from.extent(2); ++d) to[d] = Stored(from(head, token, d));
}

}  // namespace heed::detail
