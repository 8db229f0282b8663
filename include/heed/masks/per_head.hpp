// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/mask.hpp>

namespace heed::masks {

/// A mask for each head, in order of heads; a head without one sees nothing.
class PerHead {
 public:
  static constexpr bool depends_on_head = true;

  explicit PerHead(detail::SharedArray<Mask> masks) : masks_(std::move(masks)) {}

  bool allows(Position at) const { return masks_.has(at.head) && masks_[at.head].allows(at); }
  Coverage coverage(Tile tile) const {
    return masks_.has(tile.head) ? masks_[tile.head].coverage(tile) : Coverage::none;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    if (masks_.has(tile.head)) return masks_[tile.head].lane_words(tile, words);
    for (Index i = 0; i < tile.keys(); ++i) words[i] = 0;
  }
  void check(MaskShape shape) const {
    if (!shape.has_heads(masks_.size())) {
      throw_shape_error("PerHead: ", masks_.size(), " masks for ", shape.heads, " heads");
    }
    for (const Mask& mask : masks_) mask.check(shape);
  }

 private:
  detail::SharedArray<Mask> masks_;
};

}  // namespace heed::masks
