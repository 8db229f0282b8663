// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/detail/scratch.hpp>
#include <heed/core/index.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

/// A range of keys that some query of a block sees, ready for a kernel.
struct VisibleKeys {
  Index first = 0;
  Index count = 0;
  const std::uint64_t* words = nullptr;  // one lane word per key; null: every query sees every key
  bool holes = false;                    // some keys in the range are seen by no query
};

/// The range of keys in the tile's key block that its queries see; count 0 if none. `words` has
/// room for a key block. The keys cut off add nothing to any row, so the cut changes no bit. The
/// queries are `step` apart: those from the tile's first one on, as many as it has.
inline VisibleKeys visible_keys(const MaskRef& mask, const Tile& tile, std::uint64_t* words,
                                Index step = 1) {
  const Coverage coverage = mask.coverage(tile, step);
  if (coverage == Coverage::none) return {};
  if (coverage == Coverage::full) return {tile.first_key, tile.keys(), nullptr, false};
  mask.lane_words(tile, step, words);
  const std::uint64_t everyone = lanes_between(0, tile.queries() - 1);
  Index first = tile.keys();
  Index last = -1;
  Index seen = 0;
  bool full = true;
  for (Index i = 0; i < tile.keys(); ++i) {
    words[i] &= everyone;
    full = full && words[i] == everyone;
    if (words[i] == 0) continue;
    if (first > i) first = i;
    last = i;
    ++seen;
  }
  if (seen == 0) return {};
  const Index count = last - first + 1;
  return {tile.first_key + first, count, full ? nullptr : words + first, seen < count};
}

/// The visible keys of query blocks and key blocks, computed for one head and cached for the
/// others: for masks that are asked about every score (MaskRef::shares_lane_words). Memory of the
/// thread, one key block of words per tile.
class SharedLaneWords {
 public:
  /// Room for `tiles` tiles, none computed yet.
  explicit SharedLaneWords(Index tiles) : tiles_(tiles) {
    divide_scratch<SharedLaneWords>([&](Carver& carver) {
      seen_ = carver.take<Entry>(tiles);
      words_ = carver.take<std::uint64_t>(tiles * simd::key_block);
    });
    forget();
  }

  void forget() {
    for (Index i = 0; i < tiles_; ++i) seen_[i].known = false;
  }

  /// The visible range of the tile's key block; the mask is asked on the first call for `index`.
  VisibleKeys visible_keys(const MaskRef& mask, const Tile& tile, Index index, Index step = 1) {
    Entry& entry = seen_[index];
    if (!entry.known) {
      entry = {detail::visible_keys(mask, tile, words_ + index * simd::key_block, step), true};
    }
    return entry.keys;
  }

 private:
  struct Entry {
    VisibleKeys keys;
    bool known;
  };
  Index tiles_;
  Entry* seen_ = nullptr;
  std::uint64_t* words_ = nullptr;
};

/// Compacts the visible keys of a range with holes: their indices to `kept`, their words to the
/// front. Returns their number.
inline Index drop_unseen(std::uint64_t* words, Index count, Index* kept) {
  Index seen = 0;
  for (Index i = 0; i < count; ++i) {
    if (words[i] == 0) continue;
    kept[seen] = i;
    words[seen++] = words[i];
  }
  return seen;
}

/// Narrows the keys that a block of queries sees to those seen by the queries with a bit in
/// `seeing`; the log-sum-exp of the other queries says that they saw no key. `words` has room for a
/// key block.
inline VisibleKeys keys_seen_by(VisibleKeys seen, const Tile& tile, std::uint64_t seeing,
                                std::uint64_t* words) {
  if (seeing == lanes_between(0, tile.queries() - 1)) return seen;
  std::uint64_t any = 0;
  for (Index i = 0; i < seen.count; ++i) {
    words[i] = seen.words == nullptr ? seeing : seen.words[i] & seeing;
    any |= words[i];
  }
  seen.words = words;
  if (any == 0) seen.count = 0;
  return seen;
}

}  // namespace heed::detail
