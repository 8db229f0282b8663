// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/workspace.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/kernels/attention_kernels.hpp>

namespace heed::detail {

/// Builds the ScoreModArrays of key blocks for one block of queries: gathers biases into a tile or
/// a line, turns dropout's decisions into bits, runs the score function. No number depends on which
/// keys or queries are processed together.
template <class T>
class ScoreModBlock {
 public:
  /// Rows [row, row + rows) of one head.
  ScoreModBlock(const AttentionArgs<T>& args, const ForwardScratch<T>& scratch, Index item,
                Index head, Index row, Index rows)
      : args_(args),
        score_mods_(args.score_mods),
        kernels_(simd::kernels<T>()),
        scratch_(scratch),
        first_{item + args.item_offset, head + args.head_offset, args.query_position(item, row), 0},
        row_(row),
        rows_(rows),
        unit_(score_mods_.function.given() ? T{1} : static_cast<T>(bits_per_nat)) {}

  /// Attaches the arrays to the block. Key i of the block is key `first_key + (kept ? kept[i] :
  /// i)`.
  void attach(simd::KeyBlock<T>& block, const simd::QueryBlock<T>& queries, Index first_key,
              const Index* kept) {
    arrays_ = {};
    arrays_.cap = product(score_mods_.softcap, unit_);
    for (Index i = 0; i < block.count; ++i) keys_[i] = first_key + (kept ? kept[i] : i);
    if (score_mods_.bias.given() || (score_mods_.any_bias() && kept)) {
      make_tile(block.count, kept == nullptr);
    } else if (score_mods_.any_bias()) {
      make_line(block.count);
    }
    if (score_mods_.drops()) drop(block.count);
    block.score_mod = &arrays_;
    if (score_mods_.function.given()) run_function(block, queries);
  }

 private:
  T on_diagonal(Index key, Index query) const {
    return product(score_mods_.at_distance(first_.head, key - first_.query - query), unit_);
  }

  /// Biases that depend only on key − query: one line, of which every key takes a window, shifted
  /// by one from key to key.
  void make_line(Index count) {
    const Index length = count - 1 + simd::query_block;
    for (Index i = 0; i < length; ++i) {
      scratch_.bias[i] = on_diagonal(keys_[0], i - (count - 1));
    }
    arrays_.bias = scratch_.bias + count - 1;
    arrays_.bias_row = -1;
    arrays_.bias_tile = kernels_.tile_lanes;
  }

  /// All biases, [tile][key][lane].
  void make_tile(Index count, bool contiguous) {
    const Index lanes = kernels_.tile_lanes;
    const auto& view = score_mods_.bias.view();
    if (score_mods_.bias.given() && contiguous) {
      const T* from = view.data_handle() + first_.batch * view.stride(0) +
                      first_.head * view.stride(1) + row_ * view.stride(2) +
                      keys_[0] * view.stride(3);
      kernels_.pack({from, view.stride(2), view.stride(3)}, rows_, count, unit_, scratch_.bias);
    }
    for (Index query = 0; query < rows_; ++query) {
      T* to = scratch_.bias + query / lanes * lanes * count + query % lanes;
      for (Index key = 0; key < count; ++key) {
        T& bias = to[key * lanes];
        if (!contiguous) {
          bias = !score_mods_.bias.given()
                     ? T{0}
                     : product(view(first_.batch, first_.head, row_ + query, keys_[key]), unit_);
        }
        if (score_mods_.along_diagonals()) bias += on_diagonal(keys_[key], query);
      }
      if (contiguous && !score_mods_.along_diagonals()) break;
    }
    arrays_.bias = scratch_.bias;
    arrays_.bias_row = lanes;
    arrays_.bias_tile = lanes * count;
  }

  void drop(Index count) {
    const DropoutDraws draws(score_mods_.dropout);
    const auto& kernels = simd::dropout_kernels<>();
    std::uint64_t words[8] = {};  // of the eight keys of a group, one bit per query
    Index group = -1;
    for (Index key = 0; key < count; ++key) {
      if (keys_[key] >> 3 != group) {
        group = keys_[key] >> 3;
        kernels.draw(draws.lanes(first_, group, 0, 1, rows_), words);
      }
      scratch_.keep[key] = words[keys_[key] & 7];
    }
    arrays_.keep = scratch_.keep;
    arrays_.keep_factor = static_cast<T>(draws.factor());
  }

  void run_function(const simd::KeyBlock<T>& block, const simd::QueryBlock<T>& queries) {
    kernels_.scores(block, queries);
    const Index lanes = kernels_.tile_lanes;
    const Index step = lanes * simd::key_block;
    score_mods_.function.to_values(
        {queries.scores, step, lanes, keys_, block.count, block.words, first_, rows_});
    for (Index lane = 0; lane < rows_; lane += lanes) {
      T* tile = queries.scores + lane / lanes * step;
      for (Index i = 0; i < block.count * lanes; ++i) {
        tile[i] = product(tile[i], static_cast<T>(bits_per_nat));
      }
    }
    arrays_.given = true;
  }

  const AttentionArgs<T>& args_;
  const ScoreMods<T>& score_mods_;
  const simd::Kernels<T>& kernels_;
  const ForwardScratch<T>& scratch_;
  Position first_;  // of the block's first query
  Index row_;
  Index rows_;
  T unit_;  // scores are in powers of 2, or of e for a score function
  Index keys_[simd::key_block];
  simd::ScoreModArrays<T> arrays_;
};

/// Builds the ScoreModArrays of key blocks for rows of queries; the same numbers as ScoreModBlock
/// computes for lanes of queries.
template <class T>
class RowScoreMod {
 public:
  /// Rows: the queries of head `head`, then those of the next head, and so on.
  RowScoreMod(const AttentionArgs<T>& args, const DecodeScratch<T>& scratch, Index item, Index head)
      : args_(args),
        score_mods_(args.score_mods),
        scratch_(scratch),
        first_{item + args.item_offset, head + args.head_offset, args.query_position(item, 0), 0},
        unit_(score_mods_.function.given() ? T{1} : static_cast<T>(bits_per_nat)) {}

  /// Attaches the arrays to the block; `keys` are the positions of its keys.
  void attach(simd::KeyBlock<T>& block, const Index* keys, Index rows) {
    arrays_ = {};
    arrays_.cap = product(score_mods_.softcap, unit_);
    if (score_mods_.any_bias()) {
      for (Index row = 0; row < rows; ++row) make_biases(keys, block.count, row);
      arrays_.bias = scratch_.bias;
      arrays_.bias_row = simd::row_keys;
    }
    if (score_mods_.drops()) {
      const DropoutDraws draws(score_mods_.dropout);
      for (Index row = 0; row < rows; ++row) drop(draws, keys, block.count, row);
      arrays_.keep = scratch_.keep;
      arrays_.keep_factor = static_cast<T>(draws.factor());
    }
    block.score_mod = &arrays_;
  }

  /// Runs the score function, if there is one, on the scores of the block.
  void run_function(const simd::QueryRows<T>& rows, const Index* keys, Index count,
                    const std::uint64_t* visible) const {
    if (!score_mods_.function.given()) return;
    const Index lanes = simd::kernels<T>().tile_lanes;
    for (Index row = 0; row < rows.count; ++row) {
      const Position at = position(row);
      for (Index key = 0; key < count; ++key) {
        T& score = rows.scores[(key / lanes * rows.count + row) * lanes + key % lanes];
        if (visible == nullptr || (visible[2 * row + (key >> 6)] >> (key & 63) & 1) != 0) {
          score = score_mods_.function.value(score, {at.batch, at.head, at.query, keys[key]});
        }
        score = product(score, static_cast<T>(bits_per_nat));
      }
    }
  }

 private:
  Position position(Index row) const {
    const Index queries = args_.query_count();
    return {first_.batch, first_.head + row / queries, first_.query + row % queries, 0};
  }

  void make_biases(const Index* keys, Index count, Index row) const {
    const Position at = position(row);
    const Index query = row % args_.query_count();
    const auto& view = score_mods_.bias.view();
    for (Index key = 0; key < count; ++key) {
      T bias = 0;
      if (score_mods_.bias.given())
        bias = product(view(at.batch, at.head, query, keys[key]), unit_);
      if (score_mods_.along_diagonals()) {
        bias += product(score_mods_.at_distance(at.head, keys[key] - at.query), unit_);
      }
      scratch_.bias[row * simd::row_keys + key] = bias;
    }
  }

  void drop(const DropoutDraws& draws, const Index* keys, Index count, Index row) const {
    std::uint64_t* keep = scratch_.keep + 2 * row;
    keep[0] = keep[1] = 0;
    if (count == 0) return;
    const Index first = keys[0] >> 3, groups = (keys[count - 1] >> 3) - first + 1;
    std::uint64_t words[8];  // of draw i of a group's eight, one bit per group
    simd::dropout_kernels<>().draw(draws.lanes(position(row), first, 1, 0, groups), words);
    for (Index key = 0; key < count; ++key) {
      const std::uint64_t bit = words[keys[key] & 7] >> ((keys[key] >> 3) - first) & 1;
      keep[key >> 6] |= bit << (key & 63);
    }
  }

  const AttentionArgs<T>& args_;
  const ScoreMods<T>& score_mods_;
  const DecodeScratch<T>& scratch_;
  Position first_;
  T unit_;
  simd::ScoreModArrays<T> arrays_;
};

}  // namespace heed::detail
