// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/key_blocks.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

/// Of the keys that a block of queries sees, those that the queries of `tile` with a bit in
/// `seeing` see; the others' log-sum-exp says that they saw nothing. `words` has room for a key
/// block.
inline VisibleKeys keys_seen_by(VisibleKeys seen, const Tile& tile, std::uint64_t seeing,
                                std::uint64_t* words) {
  if (seeing == lanes_between(0, tile.queries() - 1)) return seen;
  std::uint64_t any = 0;
  for (Index i = 0; i < seen.count; ++i) {
    words[i] = seen.words == nullptr ? seeing : seen.words[i] & seeing;
    any |= words[i];
  }
  seen.words = words;
  if (any == 0) seen.count = 0;
  return seen;
}

}  // namespace heed::detail
