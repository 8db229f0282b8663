// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/decode_scratch.hpp>
#include <heed/attention/detail/forward_scratch.hpp>
#include <heed/attention/detail/key_blocks.hpp>
#include <heed/attention/detail/output_factors.hpp>
#include <heed/attention/detail/pair_blocks.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/score_change_block.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/simd/kernels.hpp>

// The fused forward pass around the instruction-set kernels of simd/: which keys a block of
// queries meets, and in which order. Nothing here depends on the instruction set, and no result
// depends on which queries share a block.

namespace heed::detail {

/// The fused forward pass of one block of queries of one head.
template <class T>
class QueryBlockPass {
 public:
  /// Rows [row, row + rows) of one head, rows ≤ query_block. Which rows go together decides no bit.
  /// `pairs`: null, or what multiplies the call's bfloat16 in pairs.
  QueryBlockPass(const AttentionProblem<T>& problem, const MaskRef& mask,
                 const simd::PairKernels<T>* pairs, Index item, Index head, Index row, Index rows)
      : problem_(problem),
        mask_(mask),
        kernels_(simd::kernels<T>()),
        scratch_(ForwardScratch<T>::of_this_thread(problem.head_dim(), problem.value_dim(),
                                                   problem.changes.any())),
        changes_(problem, scratch_, item, head, row, rows),
        pairs_(problem, pairs, 0),
        item_(item),
        head_(head),
        row_(row),
        rows_(rows) {}

  /// Takes what the rows see of the keys from `shared` rather than from the mask; of one batch item
  /// and these rows, for any head.
  void share(SharedLaneWords& shared) { shared_ = &shared; }

  /// Output and log-sum-exp of the rows from the states that decoding left of every chunk of keys,
  /// `step` rows from one chunk to the next.
  void finish(RowStates<T> states, Index step) {
    const Index columns = problem_.value_dim(), padded = padded_value_dim(columns);
    clear(scratch_.total);
    bool fresh = true;
    for (Index first = 0; first < problem_.key_count_of(item_); first += simd::key_chunk) {
      const auto& state = fresh ? scratch_.total : scratch_.chunk;
      if (!fresh) clear(state);
      for (Index row = 0; row < rows_; ++row) {
        state.maximum[row] = states.maximum[row];
        state.sum[row] = states.sum[row];
      }
      kernels_.pack({states.output, padded, 1}, rows_, columns, T{1}, state.output);
      if (!fresh) kernels_.merge(scratch_.total, state, rows_, columns);
      fresh = false;
      states = states.from(step, columns);
    }
    write(!fresh);
  }

  /// Output and log-sum-exp of the rows.
  void run() {
    const bool seen = take_all_keys();
    write(seen);
  }

  /// Weights of the rows: `to(row, key)` in `out`, every element written.
  void run_weights(const TensorView<T, 2>& out) {
    take_all_keys();
    find_factors();
    for (Index row = 0; row < rows_; ++row) {
      for (Index key = 0; key < out.extent(1); ++key) out(row, key) = T{0};
    }
    for (Index key = 0; key < problem_.key_count_of(item_); key += simd::key_block) {
      const Index last = smaller(key + simd::key_block, problem_.key_count_of(item_)) - 1;
      const VisibleKeys seen = visible_keys(mask_, tile(key, last), scratch_.words);
      if (seen.count > 0) write_weights(seen, out);
    }
  }

 private:
  /// Packs the queries and takes every visible key into the total; false if there was none.
  bool take_all_keys() {
    if (pairs_) {
      pairs_.pack(item_, head_, row_, rows_);
    } else {
      kernels_.pack(problem_.queries.rows(item_, head_, row_, rows_, scratch_.keys), rows_,
                    problem_.head_dim(), query_factor(problem_), scratch_.packed);
    }
    clear(scratch_.total);
    bool fresh = true;
    for (Index first = 0; first < problem_.key_count_of(item_); first += simd::key_chunk) {
      const auto& state = fresh ? scratch_.total : scratch_.chunk;
      if (!fresh) clear(state);
      if (!take_chunk(first, state)) continue;
      if (!fresh) kernels_.merge(scratch_.total, state, rows_, problem_.value_dim());
      fresh = false;
    }
    return !fresh;
  }

  Tile tile(Index first_key, Index last_key) const {
    return tile_of(problem_, item_, head_, row_, rows_, first_key, last_key);
  }

  /// No key seen yet. All lanes, also those past the last query: kernels compute whole tiles.
  static void clear(const simd::SoftmaxState<T>& state) {
    for (Index lane = 0; lane < simd::query_block; ++lane) {
      state.maximum[lane] = std::numeric_limits<T>::lowest();
      state.sum[lane] = 0;
    }
  }

  /// Takes the keys of the chunk that begins at `first` into `state`; false if none is seen.
  bool take_chunk(Index first, const simd::SoftmaxState<T>& state) {
    const Index end = smaller(first + simd::key_chunk, problem_.key_count_of(item_));
    const Coverage coverage = mask_.coverage(tile(first, end - 1));
    if (coverage == Coverage::none) return false;
    bool fresh = true;
    for (Index key = first; key < end; key += simd::key_block) {
      const Index last = smaller(key + simd::key_block, end) - 1;
      const VisibleKeys seen = coverage == Coverage::full
                                   ? VisibleKeys{key, last - key + 1, nullptr, false}
                                   : visible(tile(key, last));
      if (seen.count == 0) continue;
      take_block(seen, state, fresh);
      fresh = false;
    }
    return !fresh;
  }

  VisibleKeys visible(const Tile& part) const {
    return shared_ != nullptr ? shared_->visible_keys(mask_, part, part.first_key / simd::key_block)
                              : visible_keys(mask_, part, scratch_.words);
  }

  void take_block(const VisibleKeys& seen, const simd::SoftmaxState<T>& state, bool first) {
    const Index key_head = problem_.key_head(head_);
    if (pairs_) return pairs_.attend(item_, key_head, seen, queries(), state, first);
    simd::KeyBlock<T> block{
        problem_.keys.rows(item_, key_head, seen.first, seen.count, scratch_.keys),
        problem_.values.rows(item_, key_head, seen.first, seen.count, scratch_.values), seen.count,
        seen.words, false};
    if (seen.holes) gather(block);
    if (problem_.changes.any()) {
      changes_.change(block, queries(), seen.first, seen.holes ? scratch_.kept : nullptr);
    }
    block.guard_values = block.words != nullptr &&
                         !kernels_.all_finite(block.values, block.count, problem_.value_dim());
    kernels_.attend(block, queries(), state, first);
  }
  simd::QueryBlock<T> queries() const {
    return {scratch_.packed, scratch_.probabilities, scratch_.scores,
            rows_,           problem_.head_dim(),    problem_.value_dim()};
  }

  /// Copies the keys that some query sees, and their values, next to each other.
  void gather(simd::KeyBlock<T>& block) {
    // The words move forward in the thread's own array, which they may stand in already.
    for (Index i = 0; i < block.count; ++i) scratch_.words[i] = block.words[i];
    block.words = scratch_.words;
    block.count = drop_unseen(scratch_.words, block.count, scratch_.kept);
    const auto together = [&](simd::MatrixRef<T>& rows, Index columns, T* to) {
      gather_rows(rows, scratch_.kept, block.count, columns, to, columns);
      rows = {to, columns, 1};
    };
    together(block.keys, problem_.head_dim(), scratch_.keys);
    together(block.values, problem_.value_dim(), scratch_.values);
  }

  void find_factors() {
    const auto& sinks = problem_.changes.sinks;
    const T* sink = sinks.empty() ? nullptr : &sinks[static_cast<std::size_t>(head_)];
    find_output_factors(sink, scratch_.total, rows_, scratch_.factors);
  }

  void write_weights(const VisibleKeys& seen, const TensorView<T, 2>& out) {
    simd::KeyBlock<T> block{
        problem_.keys.rows(item_, problem_.key_head(head_), seen.first, seen.count, scratch_.keys),
        {},
        seen.count,
        seen.words,
        false};
    if (problem_.changes.any()) changes_.change(block, queries(), seen.first, nullptr);
    kernels_.probabilities(block, queries(), scratch_.total.maximum);
    for (Index row = 0; row < rows_; ++row) {
      const Index lane = row % kernels_.tile_lanes;
      const T* from = scratch_.probabilities + (row - lane) * simd::key_block + lane;
      for (Index key = 0; key < seen.count; ++key) {
        // A sum with 0 has no minus zero.
        out(row, seen.first + key) = from[key * kernels_.tile_lanes] * scratch_.factors[row] + T{0};
      }
    }
  }

  /// out = output / sum, lse = ln 2 · (maximum + log2(sum)); unless `seen`, no key was seen at all.
  void write(bool seen) {
    find_factors();
    const auto& out = problem_.out;
    const Index columns = problem_.value_dim();
    const bool rounds = out.is_bfloat16();  // out of an array that is no longer in use
    const Index step = rounds ? columns : out.stride(2), column_step = rounds ? 1 : out.stride(3);
    T* to = rounds ? scratch_.values : out.rows(item_, head_, row_);
    if (seen) {
      kernels_.unpack(scratch_.total.output, rows_, columns, scratch_.factors, to, step,
                      column_step);
    }
    for (Index i = 0; i < rows_; ++i) {
      if (seen && saw_keys(scratch_.factors[i])) continue;
      for (Index d = 0; d < columns; ++d) to[i * step + d * column_step] = T{0};
    }
    if (rounds) out.round(to, rows_, item_, head_, row_);
    if (problem_.log_sum_exp.given()) write_log_sum_exp();
  }
  void write_log_sum_exp() const {
    const auto& view = problem_.log_sum_exp.view();
    for (Index i = 0; i < rows_; ++i) {
      view(item_, head_, row_ + i) =
          log_sum_exp_of(scratch_.total.maximum[i], scratch_.total.sum[i]);
    }
  }

  const AttentionProblem<T>& problem_;
  const MaskRef& mask_;
  const simd::Kernels<T>& kernels_;
  ForwardScratch<T> scratch_;
  ScoreChangeBlock<T> changes_;
  PairBlocks<T> pairs_;
  Index item_;
  Index head_;
  Index row_;
  Index rows_;
  SharedLaneWords* shared_ = nullptr;
};

}  // namespace heed::detail
