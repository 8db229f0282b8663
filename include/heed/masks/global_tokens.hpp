// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/position_set.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// A few tokens that see everyone and are seen by everyone (such as [CLS]); combine with a window
/// by |. Beltagy et al. 2020 (Longformer).
class GlobalTokens {
 public:
  static constexpr bool depends_on_head = false;

  explicit GlobalTokens(const detail::SharedArray<Index>& positions) : positions_(positions) {
    if (positions_.size() > 0 && positions_[0] < 0) {
      throw_shape_error("GlobalTokens: position ", positions_[0], " must not be negative");
    }
  }

  bool allows(Position at) const { return positions_.has(at.query) || positions_.has(at.key); }
  Coverage coverage(Tile tile) const {
    const Index queries = positions_.count(tile.first_query, tile.last_query);
    const Index keys = positions_.count(tile.first_key, tile.last_key);
    if (queries == 0 && keys == 0) return Coverage::none;
    return queries == tile.queries() || keys == tile.keys() ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    std::uint64_t global_queries = 0;
    for (Index i = positions_.rank(tile.first_query); i < positions_.size(); ++i) {
      if (positions_[i] > tile.last_query) break;
      global_queries |= std::uint64_t{1} << (positions_[i] - tile.first_query);
    }
    Index next = positions_.rank(tile.first_key);
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      const bool global = next < positions_.size() && positions_[next] == key;
      *words++ = global ? ~std::uint64_t{0} : global_queries;
      next += global ? 1 : 0;
    }
  }
  void check(MaskShape shape) const {
    if (positions_.size() > 0)
      detail::check_names("GlobalTokens", positions_[positions_.size() - 1], shape);
  }

 private:
  detail::PositionSet positions_;
};

}  // namespace heed::masks
