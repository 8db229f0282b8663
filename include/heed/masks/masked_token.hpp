// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/error.hpp>
#include <heed/masks/detail/fit.hpp>
#include <heed/masks/detail/position_set.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Masked language modeling: a token that was replaced by [MASK] does not see itself, everyone else
/// sees everyone. Devlin et al. 2019 (BERT). `masked` lists the replaced positions.
class MaskedToken {
 public:
  static constexpr bool depends_on_head = false;

  explicit MaskedToken(const detail::SharedArray<Index>& masked) : masked_(masked) {
    if (masked_.size() > 0 && masked_[0] < 0) {
      throw_shape_error("MaskedToken: position ", masked_[0], " must not be negative");
    }
  }

  bool allows(Position at) const { return at.key != at.query || !masked_.has(at.query); }
  Coverage coverage(Tile tile) const {
    const Index first = tile.first_query > tile.first_key ? tile.first_query : tile.first_key;
    const Index last = tile.last_query < tile.last_key ? tile.last_query : tile.last_key;
    if (masked_.count(first, last) == 0) return Coverage::full;
    return tile.queries() == 1 && tile.keys() == 1 ? Coverage::none : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index i = 0; i < tile.keys(); ++i) words[i] = ~std::uint64_t{0};
    const Index first = tile.first_query > tile.first_key ? tile.first_query : tile.first_key;
    for (Index i = masked_.rank(first); i < masked_.size(); ++i) {
      if (masked_[i] > tile.last_query || masked_[i] > tile.last_key) return;
      words[masked_[i] - tile.first_key] ^= std::uint64_t{1} << (masked_[i] - tile.first_query);
    }
  }
  void check(MaskShape shape) const {
    if (masked_.size() > 0) detail::check_names("MaskedToken", masked_[masked_.size() - 1], shape);
  }

 private:
  detail::PositionSet masked_;
};

}  // namespace heed::masks
