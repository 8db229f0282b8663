// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/decode_scratch.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/score_change_block.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/dropout_kernels.hpp>

namespace heed::detail {

/// Makes the ScoreChange of blocks of keys for rows of queries: what ScoreChangeBlock does for
/// lanes of queries, number by number the same.
template <class T>
class RowChanges {
 public:
  /// Rows: the queries of head `head`, then those of the next one, and so on.
  RowChanges(const AttentionProblem<T>& problem, const DecodeScratch<T>& scratch, Index item,
             Index head)
      : problem_(problem),
        changes_(problem.changes),
        scratch_(scratch),
        first_{item + problem.item_offset, head, problem.first_query_of(item), 0},
        unit_(changes_.function.given() ? T{1} : static_cast<T>(bits_per_nat)) {}

  /// Gives the block its change; `keys` are the positions of its keys.
  void change(simd::KeyBlock<T>& block, const Index* keys, Index rows) {
    change_ = {};
    change_.cap = product(changes_.softcap, unit_);
    if (changes_.any_bias()) {
      for (Index row = 0; row < rows; ++row) make_biases(keys, block.count, row);
      change_.bias = scratch_.bias;
      change_.bias_row = simd::row_keys;
    }
    if (changes_.drops()) {
      const DropoutDraws draws(changes_.dropout);
      for (Index row = 0; row < rows; ++row) drop(draws, keys, block.count, row);
      change_.keep = scratch_.keep;
      change_.keep_factor = static_cast<T>(draws.factor());
    }
    block.change = &change_;
  }

  /// Runs the user's function, if there is one, on the scores of the block.
  void run_function(const simd::QueryRows<T>& rows, const Index* keys, Index count,
                    const std::uint64_t* visible) const {
    if (!changes_.function.given()) return;
    const Index lanes = simd::kernels<T>().tile_lanes;
    for (Index row = 0; row < rows.count; ++row) {
      const Position at = position(row);
      for (Index key = 0; key < count; ++key) {
        T& score = rows.scores[(key / lanes * rows.count + row) * lanes + key % lanes];
        if (visible == nullptr || (visible[2 * row + (key >> 6)] >> (key & 63) & 1) != 0) {
          score = changes_.function.value(score, {at.batch, at.head, at.query, keys[key]});
        }
        score = product(score, static_cast<T>(bits_per_nat));
      }
    }
  }

 private:
  Position position(Index row) const {
    const Index queries = problem_.query_count();
    return {first_.batch, first_.head + row / queries, first_.query + row % queries, 0};
  }

  void make_biases(const Index* keys, Index count, Index row) const {
    const Position at = position(row);
    const Index query = row % problem_.query_count();
    const auto& view = changes_.bias.view();
    for (Index key = 0; key < count; ++key) {
      T bias = 0;
      if (changes_.bias.given()) bias = product(view(at.batch, at.head, query, keys[key]), unit_);
      if (changes_.along_diagonals()) {
        bias += product(changes_.at_distance(at.head, keys[key] - at.query), unit_);
      }
      scratch_.bias[row * simd::row_keys + key] = bias;
    }
  }

  void drop(const DropoutDraws& draws, const Index* keys, Index count, Index row) const {
    std::uint64_t* keep = scratch_.keep + 2 * row;
    keep[0] = keep[1] = 0;
    if (count == 0) return;
    const Index first = keys[0] >> 3, groups = (keys[count - 1] >> 3) - first + 1;
    std::uint64_t words[8];  // of draw i of a group's eight, a bit for each group
    simd::dropout_kernels<>().draw(draws.lanes(position(row), first, 1, 0, groups), words);
    for (Index key = 0; key < count; ++key) {
      const std::uint64_t bit = words[keys[key] & 7] >> ((keys[key] >> 3) - first) & 1;
      keep[key >> 6] |= bit << (key & 63);
    }
  }

  const AttentionProblem<T>& problem_;
  const ScoreChanges<T>& changes_;
  const DecodeScratch<T>& scratch_;
  Position first_;
  T unit_;
  simd::ScoreChange<T> change_;
};

}  // namespace heed::detail
