// SPDX-License-Identifier: MIT
#pragma once

namespace heed {

/// How a model knows where its tokens stand. Rotary positions act inside attention
/// (BlockOptions::rotary), the others are added to the embeddings.
enum class PositionKind { none, learned, sinusoidal, rotary };

}  // namespace heed
