// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Speculative decoding over a tree of drafts: the first `cached` positions are the accepted text,
/// causal among themselves and seen by every node; node i stands at position cached + i and sees
/// itself and its ancestors. `parents[i]` < i is the node before it, -1 the end of the text.
/// Miao et al. 2024 (SpecInfer).
class Tree {
 public:
  static constexpr bool depends_on_head = false;

  Tree(Index cached, detail::SharedArray<Index> parents)
      : cached_(cached), parents_(std::move(parents)) {
    if (cached < 0) throw_shape_error("Tree: ", cached, " cached tokens");
    for (Index node = 0; node < parents_.size(); ++node) {
      if (parents_[node] < -1 || parents_[node] >= node) {
        throw_shape_error("Tree: node ", node, " has parent ", parents_[node],
                          "; expected -1 or an earlier node");
      }
    }
  }

  bool allows(Position at) const {
    if (at.query < cached_ || at.key < cached_) return at.key <= at.query && at.query < end();
    const Index key = at.key - cached_;
    Index node = at.query < end() ? at.query - cached_ : -1;
    while (node > key) node = parents_[node];
    return node == key;
  }
  Coverage coverage(Tile tile) const {
    if (tile.first_key > tile.last_query || tile.first_query >= end()) return Coverage::none;
    const bool all_cached = tile.last_key < cached_ && tile.last_key <= tile.first_query;
    return all_cached && tile.last_query < end() ? Coverage::full : Coverage::partial;
  }
  /// The cached text by its diagonal, then every query's ancestors once.
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      words[key - tile.first_key] =
          key < cached_ ? lanes_between(key - tile.first_query, end() - 1 - tile.first_query) : 0;
    }
    for (Index query = tile.first_query; query <= tile.last_query && query < end(); ++query) {
      for (Index node = query - cached_; node >= 0 && node + cached_ >= tile.first_key;
           node = parents_[node]) {
        if (node + cached_ > tile.last_key) continue;
        words[node + cached_ - tile.first_key] |= std::uint64_t{1} << (query - tile.first_query);
      }
    }
  }
  void check(MaskShape shape) const { detail::check_describes("Tree", end(), shape); }

 private:
  Index end() const { return cached_ + parents_.size(); }

  Index cached_;
  detail::SharedArray<Index> parents_;
};

}  // namespace heed::masks
