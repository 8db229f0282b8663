// SPDX-License-Identifier: MIT
#pragma once

#include <heed/layers/block_options.hpp>

namespace heed {

/// How a model knows where its tokens stand. Learned and sinusoidal positions are added to the
/// embeddings; the others act inside attention, by distance: rotary ones turn queries and keys,
/// relative ones (learned, T5's kind) and ALiBi's are added to the scores.
enum class PositionKind { none, learned, sinusoidal, rotary, relative, alibi };

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
