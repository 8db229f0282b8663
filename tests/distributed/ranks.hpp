// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <heed/distributed/agreement.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/reshard.hpp>
#include <heed/distributed/sharded_attention.hpp>
#include <heed/distributed/sharded_backward.hpp>
#include <heed/distributed/token_shards.hpp>

#include "support/attention_cases.hpp"
#include "support/mask_catalogue.hpp"
#include "support/score_mods.hpp"

namespace heed::test {

/// All ranks of the program, for its tests.
inline const Communicator*& world() {
  static const Communicator* all = nullptr;
  return all;
}

/// The rows of a tensor's axis 2 that a rank holds.
template <class T, std::size_t Rank>
Tensor<T, Rank> shard_of(const Tensor<T, Rank>& whole, const TokenShards& shards, Index rank,
                         std::size_t axis = 2) {
  Extents<Rank> extents = whole.extents();
  extents[axis] = shards.count(rank);
  Tensor<T, Rank> part(extents);
  Index at = 0;
  for (const TokenRange& range : shards.ranges(rank)) {
    copy(whole.view().slice(axis, range.first, range.end),
         part.view().slice(axis, at, at + range.count()));
    at += range.count();
  }
  return part;
}

/// The shape of what a rank holds.
inline Shape shard_of(Shape shape, const AttentionShards& shards, Index rank) {
  shape.queries = shards.queries.count(rank);
  shape.keys = shards.keys.count(rank);
  return shape;
}

/// The gradients that a rank has are its shards of those of one process, in every bit.
template <class Gradients>
void expect_shard_of(const Gradients& whole, const AttentionShards& shards, Index rank,
                     const Gradients& part) {
  EXPECT_TRUE(same_bits(part.queries, shard_of(whole.queries, shards.queries, rank)));
  EXPECT_TRUE(same_bits(part.keys, shard_of(whole.keys, shards.keys, rank)));
  EXPECT_TRUE(same_bits(part.values, shard_of(whole.values, shards.keys, rank)));
}

/// Shards of many kinds; `kind` ≥ 0: even, zigzag, cut in uneven places, with empty ones, in turns
/// of a few tokens, all on the last rank.
inline TokenShards shards_of_kind(Index tokens, Index ranks, Index kind) {
  std::vector<std::vector<TokenRange>> of_ranks(static_cast<std::size_t>(ranks));
  const auto give = [&](Index rank, Index first, Index end) {
    of_ranks[static_cast<std::size_t>(rank)].push_back({first, end});
  };
  switch (kind % 6) {
    case 0:
      return TokenShards::even(tokens, ranks);
    case 1:
      return TokenShards::zigzag(tokens, ranks);
    case 2: {
      Index first = 0;
      for (Index rank = 0; rank < ranks; ++rank) {
        const Index end = rank + 1 == ranks ? tokens : std::min(tokens, first + 37 + 600 * rank);
        give(rank, first, end);
        first = end;
      }
      break;
    }
    case 3: {  // only every other rank has tokens
      const Index holders = (ranks + 1) / 2;
      for (Index i = 0; i < holders; ++i) {
        give(2 * i, tokens * i / holders, tokens * (i + 1) / holders);
      }
      break;
    }
    case 4: {
      Index first = 0;
      for (Index turn = 0; first < tokens; ++turn) {
        const Index end = std::min(tokens, first + 211);
        give((turn * 3 + 1) % ranks, first, end);
        first = end;
      }
      break;
    }
    default:
      give(ranks - 1, 0, tokens);
  }
  return TokenShards(std::move(of_ranks));
}

/// Calls use(mask, shards) for every mask of the catalogue, with shards of changing kinds, on one
/// thread and on two.
template <class Use>
void for_each_mask_and_shards(Index tokens, const Use& use, Index ranks = world()->size()) {
  const RestoreSettings restore;
  Index kind = 0;
  for_each_mask(tokens, [&](const auto& named) {
    SCOPED_TRACE(named.name + " kind " + std::to_string(kind % 6));
    set_thread_count(1 + kind / 6 % 2);
    use(named.mask, shards_of_kind(tokens, ranks, kind));
    ++kind;
  });
}

/// Calls use(options, shards) for each of the changes of scores and for all of them, likewise.
template <class T, class Use>
void for_each_change_and_shards(const Changes<T>& changes, Index queries, Index keys,
                                const Use& use) {
  const RestoreSettings restore;
  const Index size = world()->size();
  Index kind = 0;
  for (unsigned which = 1; which <= Changes<T>::all; which = 2 * which + which / 64) {
    SCOPED_TRACE(which);
    set_thread_count(1 + kind % 2);
    use(changes.options(which), AttentionShards(shards_of_kind(queries, size, kind),
                                                shards_of_kind(keys, size, kind / 2 + 1)));
    ++kind;
  }
}

/// The message with which a call is refused; "computed" if it is not.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "computed";
}

}  // namespace heed::test
