// SPDX-License-Identifier: MIT
#pragma once

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// No mask: every query sees every key.
struct Full {
  static constexpr bool depends_on_head = false;

  bool allows(Position) const { return true; }
  Coverage coverage(Tile) const { return Coverage::full; }
};

}  // namespace heed::masks
