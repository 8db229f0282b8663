// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/mask.hpp>

namespace heed::masks {

/// A mask for each head, in order of heads.
class PerHead {
 public:
  static constexpr bool depends_on_head = true;

  explicit PerHead(std::vector<Mask> masks) : masks_(std::move(masks)) {}

  bool allows(Position at) const { return of(at.head).allows(at); }
  Coverage coverage(Tile tile) const { return of(tile.head).coverage(tile); }
  void lane_words(Tile tile, std::uint64_t* words) const { of(tile.head).lane_words(tile, words); }
  void check(MaskShape shape) const {
    if (static_cast<Index>(masks_.size()) != shape.heads) {
      throw_shape_error("PerHead: ", masks_.size(), " masks for ", shape.heads, " heads");
    }
    for (const Mask& mask : masks_) mask.check(shape);
  }

 private:
  const Mask& of(Index head) const { return masks_[static_cast<std::size_t>(head)]; }

  std::vector<Mask> masks_;
};

}  // namespace heed::masks
