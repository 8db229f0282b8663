// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// No mask: every query sees every key.
struct Full {
  static constexpr bool depends_on_head = false;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position) const { return {0, std::numeric_limits<Index>::max()}; }
};

}  // namespace heed::masks
