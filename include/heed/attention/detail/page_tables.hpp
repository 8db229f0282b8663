// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include <heed/core/index.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

/// Which pages the sequences of a cache stand on, in order: a list of page numbers for each.
class PageTables {
 public:
  explicit PageTables(Index sequences) : sizes_({sequences}), pages_({sequences, 0}) {}

  Index size(Index sequence) const { return sizes_[sequence]; }
  /// The pages of a sequence; valid until there is room for more.
  const Index* of(Index sequence) const { return pages_.data() + sequence * pages_.extent(1); }
  Index& at(Index sequence, Index i) { return pages_.data()[sequence * pages_.extent(1) + i]; }
  Index last(Index sequence) const { return of(sequence)[size(sequence) - 1]; }

  /// Room for `count` pages of every sequence, so that pushing that many cannot fail.
  void make_room(Index count) {
    if (count > pages_.extent(1)) widen(larger(count, larger(2 * pages_.extent(1), 8)));
  }
  /// Where there is room.
  void push(Index sequence, Index page) {
    HEED_EXPECTS(size(sequence) < pages_.extent(1));
    at(sequence, sizes_[sequence]++) = page;
  }
  void pop(Index sequence) { --sizes_[sequence]; }
  void clear(Index sequence) { sizes_[sequence] = 0; }
  /// Makes the list of `to` that of `from` in `tables`, which has the same width or less.
  void copy(const PageTables& tables, Index from, Index to) {
    sizes_[to] = 0;
    for (Index i = 0; i < tables.size(from); ++i) push(to, tables.of(from)[i]);
  }

 private:
  void widen(Index wider) {
    Tensor<Index, 2> pages({pages_.extent(0), wider});
    for (Index sequence = 0; sequence < pages_.extent(0); ++sequence) {
      const Index count = sizes_[sequence];
      if (count == 0) continue;
      std::memcpy(pages.data() + sequence * wider, of(sequence),
                  static_cast<std::size_t>(count) * sizeof(Index));
    }
    pages_ = std::move(pages);
  }

  Tensor<Index, 1> sizes_;
  Tensor<Index, 2> pages_;  // rows as wide as the longest list ever, the ends unused
};

}  // namespace heed::detail
