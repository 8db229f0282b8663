// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Masked language modeling: a token that was replaced by [MASK] does not see itself, everyone else
/// sees everyone. Devlin et al. 2019 (BERT). `masked` lists the replaced positions.
class MaskedToken {
 public:
  static constexpr bool depends_on_head = false;

  explicit MaskedToken(const std::vector<Index>& masked) {
    for (const Index position : masked) {
      if (position < 0) throw_shape_error("MaskedToken: position ", position);
      const auto at = static_cast<std::size_t>(position);
      if (at >= masked_.size()) masked_.resize(at + 1);
      masked_[at] = true;
    }
  }

  bool allows(Position at) const { return at.key != at.query || !is_masked(at.query); }
  Coverage coverage(Tile tile) const {
    const Index first = tile.first_query > tile.first_key ? tile.first_query : tile.first_key;
    const Index last = tile.last_query < tile.last_key ? tile.last_query : tile.last_key;
    for (Index position = first; position <= last; ++position) {
      if (!is_masked(position)) continue;
      return tile.queries() == 1 && tile.keys() == 1 ? Coverage::none : Coverage::partial;
    }
    return Coverage::full;
  }

 private:
  bool is_masked(Index position) const {
    return position >= 0 && position < static_cast<Index>(masked_.size()) &&
           masked_[static_cast<std::size_t>(position)];
  }

  std::vector<bool> masked_;
};

}  // namespace heed::masks
