// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {

/// Numbered pages, each with a count of the sequences that hold it; attention/key_value_cache.hpp
/// has their memory.
class PagePool {
 public:
  explicit PagePool(Index pages);

  Index available() const { return available_; }
  Index holders(Index page) const;
  /// A free page, now held once. There must be one.
  Index take();
  void retain(Index page);
  void release(Index page);

 private:
  Tensor<Index, 1> holders_;
  Tensor<Index, 1> free_;  // the first `available_` are free; the last of them is taken next
  Index available_;
};

/// The page table of every sequence: its page numbers in order.
class PageTables {
 public:
  explicit PageTables(Index sequences);

  Index size(Index sequence) const;
  /// The pages of a sequence; valid until the next make_room.
  const Index* of(Index sequence) const;
  Index& at(Index sequence, Index i);
  Index last(Index sequence) const;

  /// Reserves room for `count` pages in every sequence, so that pushing that many cannot fail.
  void make_room(Index count);
  /// Requires room.
  void push(Index sequence, Index page);
  void pop(Index sequence);
  void clear(Index sequence);
  /// Copies the list of `from` in `tables`, which must not be wider than this one, to the list of
  /// `to`.
  void copy(const PageTables& tables, Index from, Index to);

 private:
  void widen(Index wider);

  Tensor<Index, 1> sizes_;
  Tensor<Index, 2> pages_;  // rows as wide as the longest list so far, unused at the end
};

}  // namespace heed::detail

#if HEED_DEFINITIONS
// NOLINTBEGIN(misc-definitions-in-headers)

namespace heed::detail {

HEED_INLINE PagePool::PagePool(Index pages) : holders_({pages}), free_({pages}), available_(pages) {
  for (Index i = 0; i < pages; ++i) free_[i] = pages - 1 - i;
}
HEED_INLINE Index PagePool::holders(Index page) const { return holders_[page]; }
HEED_INLINE Index PagePool::take() {
  HEED_EXPECTS(available_ > 0);
  const Index page = free_[--available_];
  holders_[page] = 1;
  return page;
}
HEED_INLINE void PagePool::retain(Index page) { ++holders_[page]; }
HEED_INLINE void PagePool::release(Index page) {
  if (--holders_[page] == 0) free_[available_++] = page;
}

HEED_INLINE PageTables::PageTables(Index sequences) : sizes_({sequences}), pages_({sequences, 0}) {}
HEED_INLINE Index PageTables::size(Index sequence) const { return sizes_[sequence]; }
HEED_INLINE const Index* PageTables::of(Index sequence) const {
  return pages_.data() + sequence * pages_.extent(1);
}
HEED_INLINE Index& PageTables::at(Index sequence, Index i) {
  return pages_.data()[sequence * pages_.extent(1) + i];
}
HEED_INLINE Index PageTables::last(Index sequence) const {
  return of(sequence)[size(sequence) - 1];
}
HEED_INLINE void PageTables::make_room(Index count) {
  if (count > pages_.extent(1)) widen(larger(count, larger(2 * pages_.extent(1), 8)));
}
HEED_INLINE void PageTables::push(Index sequence, Index page) {
  HEED_EXPECTS(size(sequence) < pages_.extent(1));
  at(sequence, sizes_[sequence]++) = page;
}
HEED_INLINE void PageTables::pop(Index sequence) { --sizes_[sequence]; }
HEED_INLINE void PageTables::clear(Index sequence) { sizes_[sequence] = 0; }
HEED_INLINE void PageTables::copy(const PageTables& tables, Index from, Index to) {
  sizes_[to] = 0;
  for (Index i = 0; i < tables.size(from); ++i) push(to, tables.of(from)[i]);
}
HEED_INLINE void PageTables::widen(Index wider) {
  Tensor<Index, 2> pages({pages_.extent(0), wider});
  for (Index sequence = 0; sequence < pages_.extent(0); ++sequence) {
    const Index count = sizes_[sequence];
    if (count == 0) continue;
    std::memcpy(pages.data() + sequence * wider, of(sequence),
                static_cast<std::size_t>(count) * sizeof(Index));
  }
  pages_ = std::move(pages);
}

}  // namespace heed::detail
// NOLINTEND(misc-definitions-in-headers)
#endif
