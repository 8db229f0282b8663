// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// A few tokens that see everyone and are seen by everyone (such as [CLS]); combine with a window
/// by |. Beltagy et al. 2020 (Longformer).
class GlobalTokens {
 public:
  static constexpr bool depends_on_head = false;

  explicit GlobalTokens(const std::vector<Index>& positions) {
    Index last = -1;
    for (const Index position : positions) {
      if (position < 0) throw_shape_error("GlobalTokens: position ", position);
      if (position > last) last = position;
    }
    std::vector<bool> global(static_cast<std::size_t>(last + 1));
    for (const Index position : positions) global[static_cast<std::size_t>(position)] = true;
    counts_.push_back(0);
    for (const bool is_global : global) counts_.push_back(counts_.back() + (is_global ? 1 : 0));
  }

  bool allows(Position at) const { return count(at.query, at.query) + count(at.key, at.key) > 0; }
  Coverage coverage(Tile tile) const {
    const Index queries = count(tile.first_query, tile.last_query);
    const Index keys = count(tile.first_key, tile.last_key);
    if (queries == 0 && keys == 0) return Coverage::none;
    return queries == tile.queries() || keys == tile.keys() ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    std::uint64_t global_queries = 0;
    for (Index query = tile.first_query; query <= tile.last_query; ++query) {
      global_queries |= static_cast<std::uint64_t>(count(query, query))
                        << (query - tile.first_query);
    }
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = count(key, key) == 1 ? ~std::uint64_t{0} : global_queries;
    }
  }

 private:
  /// Global tokens before `position`.
  Index before(Index position) const {
    const auto end = static_cast<Index>(counts_.size()) - 1;
    return counts_[static_cast<std::size_t>(position < 0 ? 0 : position < end ? position : end)];
  }
  Index count(Index first, Index last) const { return before(last + 1) - before(first); }

  std::vector<Index> counts_;
};

}  // namespace heed::masks
