// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Speculative decoding over a tree of drafts: the first `cached` positions are the accepted text,
/// causal among themselves and seen by every node; node i stands at position cached + i and sees
/// itself and its ancestors. `parents[i]` < i is the node before it, -1 the end of the text.
/// Miao et al. 2024 (SpecInfer).
class Tree {
 public:
  static constexpr bool depends_on_head = false;

  Tree(Index cached, std::vector<Index> parents) : cached_(cached), parents_(std::move(parents)) {
    if (cached < 0) throw_shape_error("Tree: ", cached, " cached tokens");
    for (std::size_t node = 0; node < parents_.size(); ++node) {
      if (parents_[node] < -1 || parents_[node] >= static_cast<Index>(node)) {
        throw_shape_error("Tree: node ", node, " has parent ", parents_[node],
                          "; expected -1 or an earlier node");
      }
    }
  }

  bool allows(Position at) const {
    if (at.query < cached_ || at.key < cached_) return at.key <= at.query && at.query < end();
    const Index key = at.key - cached_;
    Index node = at.query < end() ? at.query - cached_ : -1;
    while (node > key) node = parents_[static_cast<std::size_t>(node)];
    return node == key;
  }
  Coverage coverage(Tile tile) const {
    if (tile.first_key > tile.last_query) return Coverage::none;
    const bool all_cached = tile.last_key < cached_ && tile.last_key <= tile.first_query;
    return all_cached && tile.last_query < end() ? Coverage::full : Coverage::partial;
  }

 private:
  Index end() const { return cached_ + static_cast<Index>(parents_.size()); }

  Index cached_;
  std::vector<Index> parents_;
};

}  // namespace heed::masks
