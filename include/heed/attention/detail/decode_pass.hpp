// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/forward_pass.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

/// Attention of a few queries of the heads [head, head + heads), which share one key head, over one
/// chunk of keys: keys and values are read once for all of them. Row h · queries + q is query q of
/// head h.
template <class T>
class DecodePass {
 public:
  /// heads · queries is at most decode_rows; heads = 1 with a mask that depends on the head.
  /// `pairs`: null, or the kernels for bfloat16 pairs.
  DecodePass(const AttentionArgs<T>& args, const MaskRef& mask, const simd::PairKernels<T>* pairs,
             Index item, Index head, Index heads)
      : args_(args),
        mask_(mask),
        kernels_(simd::decode_kernels<T>()),
        rows_(heads * args.query_count()),
        scratch_(divided_scratch<DecodeScratch<T>, void>(rows_, args.head_dim(), args.value_dim(),
                                                         args.score_mods.any())),
        score_mods_(args, scratch_, item, head),
        pairs_(args, pairs, rows_),
        bits_(pairs == nullptr && !args.score_mods.any() &&
                      args.values.widening_kernels() != nullptr
                  ? args.keys.widening_kernels()
                  : nullptr),
        item_(item),
        head_(head) {}

  /// Processes the chunk of keys that begins at `first`, into fresh states.
  void run(Index first, const RowStates<T>& states) {
    clear(states);
    const Index end = smaller(first + simd::key_chunk, args_.key_count_of(item_));
    const Coverage coverage = mask_.coverage(tile(first, end - 1));
    if (coverage == Coverage::none) return;
    copy_queries();
    if (coverage == Coverage::full && scores_first()) return take_chunk(first, end, states);
    for_each_visible(
        coverage, first, end,
        [&](Index key, Index last) { return visible_keys(mask_, tile(key, last), scratch_.words); },
        [&](const VisibleKeys& seen, Index, Index) { take_block(seen, states); });
  }

 private:
  /// Scores and output of more rows leave a first-level cache no room for what is read next.
  static constexpr Index most_soon_rows = 8;

  Tile tile(Index first_key, Index last_key) const {
    return tile_of(args_, item_, head_, 0, args_.query_count(), first_key, last_key);
  }

  void clear(const RowStates<T>& states) const {
    for (Index row = 0; row < rows_; ++row) {
      states.maximum[row] = std::numeric_limits<T>::lowest();
      states.sum[row] = 0;
    }
    const Index size = rows_ * padded_value_dim(args_.value_dim());
    for (Index i = 0; i < size; ++i) states.output[i] = 0;
  }

  /// Copies the queries: scaled, as packed queries are, or, for pairs, as they are.
  void copy_queries() const {
    const T factor = query_factor(args_);
    const Index columns = args_.head_dim(), queries = args_.query_count();
    for (Index row = 0; row < rows_; ++row) {
      const Index head = head_ + row / queries, query = row % queries;
      if (pairs_) {
        pairs_.copy_query(item_, head, query, row);
        continue;
      }
      const auto from = args_.queries.rows(item_, head, query, 1, scratch_.keys);
      for (Index d = 0; d < columns; ++d) {
        scratch_.rows[row * columns + d] = product(from.data[d * from.column_stride], factor);
      }
    }
  }

  /// Whether a chunk of which all rows see all keys gets its scores before its values are read.
  bool scores_first() const {
    if (args_.score_mods.any() || DecodeScratch<T>::scored_blocks(rows_) == 1) return false;
    if (pairs_) return pairs_.reads_lying();
    return bits_ != nullptr || (!args_.keys.has_bits() && !args_.values.has_bits());
  }

  /// The keys [first, end), which all rows see: first their scores, then their values.
  void take_chunk(Index first, Index end, const RowStates<T>& states) const {
    simd::QueryRows<T> rows = query_rows(states, nullptr, 0);
    const auto for_each_block = [&](auto take) {
      rows.scores = scratch_.scores;
      for (Index key = first; key < end; key += simd::key_block) {
        const Index count = smaller(end - key, simd::key_block);
        take(key, count, key + count < end);
        rows.scores += rows_ * simd::row_keys;
      }
    };
    if (pairs_) pairs_.begin_scores();
    for_each_block([&](Index key, Index count, bool more) {
      announce(more ? args_.keys : args_.values, more ? key + count : first, rows);
      score(key, count, rows);
    });
    if (pairs_) pairs_.end_scores();
    for_each_block([&](Index key, Index count, bool more) {
      announce(more ? args_.values : args_.keys, key + count, rows);
      attend(key, count, rows);
    });
  }
  void score(Index key, Index count, const simd::QueryRows<T>& rows) const {
    const Index head = args_.key_head(head_);
    if (pairs_) return pairs_.score_rows(pairs_.bring_keys(item_, head, key, count), rows);
    if (bits_) return bits_->scores(bits_of(key, count), rows);
    kernels_.scores({args_.keys.rows(item_, head, key, count, scratch_.keys), {}, count}, rows);
  }
  void attend(Index key, Index count, const simd::QueryRows<T>& rows) const {
    const Index head = args_.key_head(head_);
    if (pairs_) return pairs_.attend_rows(pairs_.bring_values(item_, head, key, count), rows);
    if (bits_) return bits_->attend(bits_of(key, count), rows);
    const auto values = args_.values.rows(item_, head, key, count, scratch_.values);
    kernels_.attend({{}, whole_rows(values, count), count}, rows);
  }

  simd::KeyBlock<std::uint16_t> bits_of(Index key, Index count) const {
    const auto rows = [&](const Operand<T>& operand) {
      return simd::MatrixRef<std::uint16_t>{operand.bits(item_, args_.key_head(head_), key),
                                            operand.stride(2), 1};
    };
    return {rows(args_.keys), rows(args_.values), count};
  }

  /// Tells the kernels that the rows of an operand from `row` on are read next.
  void announce(const Operand<T>& operand, Index row, simd::QueryRows<T>& rows) const {
    rows.next = {};
    rows.next_bits[0] = {};
    if (row >= args_.key_count_of(item_)) return;
    const Index head = args_.key_head(head_);
    if (!operand.is_bfloat16()) rows.next = operand.rows(item_, head, row);
    if ((pairs_ || bits_) && operand.has_bits()) {
      rows.next_bits[0] = {operand.bits(item_, head, row), operand.stride(2), 1};
    }
    rows.next_columns = operand.extent(3);
  }

  void take_block(const VisibleKeys& seen, const RowStates<T>& states) {
    if (pairs_) {
      const simd::PairKeys pairs = pairs_.bring(item_, args_.key_head(head_), seen);
      simd::QueryRows<T> rows = query_rows(states, pairs.words, pairs.count);
      announce(args_.values, seen.first, rows);
      pairs_.begin_scores();
      pairs_.score_rows(pairs, rows);
      pairs_.end_scores();
      announce(args_.keys, next_block(seen), rows);
      return pairs_.attend_rows(pairs, rows);
    }
    if (bits_ && seen.words == nullptr) {
      simd::QueryRows<T> rows = query_rows(states, nullptr, 0);
      announce(args_.values, seen.first, rows);
      score(seen.first, seen.count, rows);
      announce(args_.keys, next_block(seen), rows);
      return attend(seen.first, seen.count, rows);
    }
    simd::KeyBlock<T> block = bring(seen);
    simd::QueryRows<T> rows =
        query_rows(states, seen.words != nullptr ? scratch_.words : nullptr, block.count);
    rows.next = block.values;
    rows.next_columns = args_.value_dim();
    announce_bits(next_block(seen), rows);
    if (args_.score_mods.any()) {
      for (Index i = 0; i < block.count; ++i) {
        positions_[i] = seen.first + (seen.holes ? scratch_.kept[i] : i);
      }
      score_mods_.attach(block, positions_, rows_);
    }
    kernels_.scores(block, rows);
    if (args_.score_mods.any()) {
      score_mods_.run_function(rows, positions_, block.count, rows.visible);
    }
    block.guard_values = seen.words != nullptr && !simd::kernels<T>().all_finite(
                                                      block.values, block.count, args_.value_dim());
    announce(args_.keys, next_block(seen), rows);
    kernels_.attend(block, rows);
  }

  static Index next_block(const VisibleKeys& seen) {
    return (seen.first / simd::key_block + 1) * simd::key_block;
  }

  /// The rows, with the lane words of `count` keys, if any.
  simd::QueryRows<T> query_rows(const RowStates<T>& states, const std::uint64_t* words,
                                Index count) const {
    // A lane word holds the queries of a key; rows of scores need the keys of a query.
    if (words != nullptr) transpose_words(words, count);
    const bool soon = simd::detail::prefetches_soon() && rows_ <= most_soon_rows;
    return {{scratch_.scores, states.maximum, states.sum, states.output,
             padded_value_dim(args_.value_dim()), words != nullptr ? scratch_.visible : nullptr,
             rows_, args_.head_dim(), args_.value_dim(), simd::detail::prefetches_near(), soon,
             !soon || args_.exceeds_caches()},
            scratch_.rows,
            scratch_.packed,
            scratch_.probabilities,
            scratch_.tail};
  }

  /// The visible keys and their values: in place, or gathered where only some are visible or values
  /// are not contiguous.
  simd::KeyBlock<T> bring(const VisibleKeys& seen) {
    const Index key_head = args_.key_head(head_);
    simd::KeyBlock<T> block{
        args_.keys.rows(item_, key_head, seen.first, seen.count, scratch_.keys),
        args_.values.rows(item_, key_head, seen.first, seen.count, scratch_.values), seen.count};
    if (seen.words != nullptr && seen.words != scratch_.words) {
      for (Index i = 0; i < seen.count; ++i) scratch_.words[i] = seen.words[i];
    }
    if (seen.holes) {
      block.count = drop_unseen(scratch_.words, block.count, scratch_.kept);
      gather_kept(block, scratch_.kept, args_.head_dim(), args_.value_dim(), scratch_.keys,
                  scratch_.values);
    } else {
      block.values = whole_rows(block.values, block.count);
    }
    return block;
  }

  /// Rows of values without gaps between columns: in place, or copied.
  simd::MatrixRef<T> whole_rows(const simd::MatrixRef<T>& values, Index count) const {
    const Index columns = args_.value_dim();
    if (values.data == scratch_.values) return values;
    return detail::whole_rows(values, count, columns, scratch_.values, columns);
  }

  /// Tells the kernels where the next block's keys and values are, if stored as bfloat16.
  void announce_bits(Index next, simd::QueryRows<T>& rows) const {
    if (next >= args_.key_count_of(item_)) return;
    const Operand<T>* both[] = {&args_.keys, &args_.values};
    for (int i = 0; i < 2; ++i) {
      if (!both[i]->has_bits()) continue;
      rows.next_bits[i] = {both[i]->bits(item_, args_.key_head(head_), next), both[i]->stride(2),
                           1};
    }
  }

  void transpose_words(const std::uint64_t* words, Index count) const {
    const Index queries = args_.query_count();
    for (Index row = 0; row < rows_; ++row) {
      std::uint64_t* bits = scratch_.visible + 2 * row;
      bits[0] = bits[1] = 0;
      for (Index key = 0; key < count; ++key) {
        bits[key >> 6] |= (words[key] >> (row % queries) & 1) << (key & 63);
      }
    }
  }

  const AttentionArgs<T>& args_;
  const MaskRef& mask_;
  const simd::DecodeKernels<T>& kernels_;
  Index rows_;
  DecodeScratch<T> scratch_;
  RowScoreMods<T> score_mods_;
  PairBlocks<T> pairs_;
  /// Null unless keys and values are widened as they are read.
  const simd::Bfloat16Kernels<T>* bits_;
  Index item_;
  Index head_;
  Index positions_[simd::key_block];
};

/// A call with few queries, in two steps: first every (batch item, group of heads, chunk of keys)
/// by itself, then a merge of every head's chunks in key order. The states of all chunks are stored
/// in between: keys / key_chunk times the size of the output.
template <class T>
class Decode {
 public:
  /// `group` heads that share one key head are processed together. With `some`: its chunks alone,
  /// and the first step alone.
  Decode(const AttentionArgs<T>& args, const MaskRef& mask, const simd::PairKernels<T>* pairs,
         Index group, ChunkRows<T>* some = nullptr)
      : args_(args),
        mask_(mask),
        pairs_(pairs),
        sharing_(args.sharing()),
        group_(group),
        groups_(parts_of(sharing_, group_)),
        chunks_(some != nullptr ? some->count() : parts_of(args.key_count(), simd::key_chunk)),
        rows_(args.batch() * args.heads() * args.query_count()),
        some_(some) {
    if (some_ != nullptr) return;
    divide_scratch<Decode>([&](Carver& carver) {
      states_ = carver.take<T>(chunks_ * RowStates<T>::size(rows_, args.value_dim()));
    });
  }

  /// Number of tasks of the first step.
  Index tasks() const { return args_.batch() * args_.kv_heads() * groups_ * chunks_; }
  /// The first step: one task per batch item, key head, group of heads and chunk.
  void take_chunk(Index index) const {
    const Index chunk = index % chunks_, group = index / chunks_ % groups_;
    const Index key_head = index / chunks_ / groups_;  // over all batch items
    const Index item = key_head / args_.kv_heads();
    const Index head = key_head % args_.kv_heads() * sharing_ + group * group_;
    const Index left = sharing_ - group * group_;
    const Index first = (some_ != nullptr ? some_->chunk(chunk) : chunk) * simd::key_chunk;
    if (first >= args_.key_count_of(item)) return;
    DecodePass<T>(args_, mask_, pairs_, item, head, smaller(left, group_))
        .run(first, states(item, head, chunk));
  }

  /// The second step: one task per head of the batch.
  void finish(Index head_of_batch) const {
    const Index item = head_of_batch / args_.heads(), head = head_of_batch % args_.heads();
    QueryBlockPass<T> pass(args_, mask_, nullptr, item, head, 0, args_.query_count());
    bool begun = false;
    for (Index chunk = 0; chunk * simd::key_chunk < args_.key_count_of(item); ++chunk) {
      pass.add(states(item, head, chunk), begun);
    }
    pass.write(begun);
  }

 private:
  RowStates<T> states(Index item, Index head, Index chunk) const {
    const Index row = (item * args_.heads() + head) * args_.query_count();
    if (some_ != nullptr) return some_->states(chunk, row);
    const Index columns = args_.value_dim();
    T* const memory = states_ + chunk * RowStates<T>::size(rows_, columns);
    return RowStates<T>::in(memory, rows_, columns).from(row, columns);
  }

  const AttentionArgs<T>& args_;
  const MaskRef& mask_;
  const simd::PairKernels<T>* pairs_;
  Index sharing_;  // query heads per key head
  Index group_;
  Index groups_;
  Index chunks_;
  Index rows_;  // over all heads and batch items
  ChunkRows<T>* some_;
  T* states_ = nullptr;  // of each chunk
};

}  // namespace heed::detail
