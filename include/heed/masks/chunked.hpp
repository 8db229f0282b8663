// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/masks/detail/floor_division.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Blocks of `size` consecutive positions that see only themselves (block-local attention).
struct Chunked {
  static constexpr bool depends_on_head = false;
  Index size = 1;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const {
    const Index begin = detail::floor_divide(at.query, size) * size;
    return {begin, begin + size};
  }
  void check(MaskShape) const {
    if (size < 1) throw_shape_error("Chunked: size ", size, "; expected at least 1");
  }
};

}  // namespace heed::masks
