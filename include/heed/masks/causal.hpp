// SPDX-License-Identifier: MIT
#pragma once

#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Look-ahead mask of a decoder: a query sees its own position and those before it.
struct Causal {
  static constexpr bool depends_on_head = false;

  bool allows(Position at) const { return keys(at).has(at.key); }
  KeyRange keys(Position at) const { return {0, at.query + 1}; }
};

}  // namespace heed::masks
