// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/key_blocks.hpp>
#include <heed/masks/mask_ref.hpp>
#include <heed/masks/policy.hpp>

namespace heed::detail {

/// The part of a key block that the queries of `tile` with a bit in `seeing` see; the others' log-
/// sum-exp says that they saw nothing. `full`: the mask shows every query every key. `words` has
/// room for a key block.
inline VisibleKeys keys_seen_by(const MaskRef& mask, const Tile& tile, bool full,
                                std::uint64_t seeing, std::uint64_t* words) {
  VisibleKeys seen = full ? VisibleKeys{tile.first_key, tile.keys(), nullptr, false}
                          : visible_keys(mask, tile, words);
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
