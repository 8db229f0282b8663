// SPDX-License-Identifier: MIT
#pragma once

#include <heed/layers/blocks.hpp>
#include <heed/layers/positions.hpp>

namespace heed {

namespace detail {

/// Those that act inside the blocks. `reach`: of relative ones.
inline void set_positions(BlockOptions& block, PositionKind positions, const RotaryOptions& rotary,
                          Index reach) {
  if (positions == PositionKind::rotary) block.rotary = rotary;
  if (positions == PositionKind::relative) block.relative_reach = reach;
  block.alibi = positions == PositionKind::alibi;
}

}  // namespace detail

}  // namespace heed
