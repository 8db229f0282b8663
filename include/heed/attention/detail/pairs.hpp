// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/tensor/tensor.hpp>

// bfloat16 calls in the forms that products read, block by block: of keys that several blocks of
// queries share, and of pairs and tiles, forward and backward.

namespace heed::detail {

/// Something made of the blocks of some key heads, of each once: by the first block of queries that
/// meets it, on any thread.
class SharedBlocks {
 public:
  bool empty() const { return made_.count() == 0; }
  /// Forgets all blocks: from here on, those of the key heads from `head` on are wanted.
  void begin(Index head) {
    first_head_ = head;
    made_.forget();
  }

 protected:
  /// For `heads` key heads, counted over all batch items.
  template <class T>
  SharedBlocks(const AttentionArgs<T>& args, Index heads)
      : kv_heads_(args.kv_heads()),
        blocks_(parts_of(args.key_count(), simd::key_block)),
        made_(heads * blocks_) {}

  /// The number of the block that holds a key.
  Index index_of(Index item, Index key_head, Index key) const {
    return (item * kv_heads_ + key_head - first_head_) * blocks_ + key / simd::key_block;
  }

 private:
  Index kv_heads_;
  Index blocks_;  // of a head
  Index first_head_ = 0;

 protected:
  MadeOnce made_;
};

/// Values laid out by PairKernels::turn. Memory of the thread that makes the object.
template <class T>
class TurnedValues : public SharedBlocks {
 public:
  TurnedValues(const AttentionArgs<T>& args, const simd::PairKernels<T>* kernels, Index heads)
      : SharedBlocks(args, heads), args_(args) {
    if (empty()) return;
    size_ = simd::key_block * rounded_up(args.value_dim(), kernels->rows_at_once);
    divide_scratch<TurnedValues>([&](Carver& carver) {
      made_.take_states(carver);
      values_ = carver.take<std::uint16_t>(made_.count() * size_);
    });
  }

  /// Points `keys`, which begin at `first`, at the values of their block. The first caller makes
  /// them by turn(begin, count, to), which is true if all are finite. False if there are none yet,
  /// or if a value that may be masked is not finite.
  template <class Turn>
  bool lend(Index item, Index key_head, Index first, simd::PairKeys& keys, const Turn& turn) const {
    const Index index = index_of(item, key_head, first), before = first % simd::key_block;
    const Index begin = first - before;
    const Index count = smaller(simd::key_block, args_.key_count_of(item) - begin);
    std::uint16_t* values = values_ + index * size_;
    bool finite = false;
    if (!made_.has(index, finite, [&] { return turn(begin, count, values); })) return false;
    const bool all_seen = keys.words == nullptr && keys.count == count;
    if (!finite && !all_seen) return false;
    keys.values = values;
    keys.before = before;
    keys.arranged = count;
    keys.values_step = size_;
    return true;
  }

 private:
  const AttentionArgs<T>& args_;
  Index size_ = 0;  // of the values of a block
  std::uint16_t* values_ = nullptr;
};

/// Keys and values that are stored as bfloat16, in T; rows one after the other, since kernels
/// prefetch beyond the end of a block. Memory of the thread that makes the object.
template <class T>
class WidenedKeys : public SharedBlocks {
 public:
  WidenedKeys(const AttentionArgs<T>& args, Index heads) : SharedBlocks(args, heads), args_(args) {
    if (empty()) return;
    const Index rows = made_.count() * simd::key_block;
    divide_scratch<WidenedKeys>([&](Carver& carver) {
      made_.take_states(carver);
      keys_ = carver.take<T>(rows * args.head_dim());
      values_ = carver.take<T>(rows * args.value_dim());
    });
  }

  /// Points `block` at the keys and values from `first` on; false if there are none yet.
  bool lend(Index item, Index key_head, Index first, simd::KeyBlock<T>& block) const {
    const Index index = index_of(item, key_head, first), before = first % simd::key_block;
    const Index count = smaller(simd::key_block, args_.key_count_of(item) - first + before);
    const Index head_dim = args_.head_dim(), value_dim = args_.value_dim();
    T* keys = keys_ + index * simd::key_block * head_dim;
    T* values = values_ + index * simd::key_block * value_dim;
    bool done = false;
    const auto widen = [&] {
      args_.keys.rows(item, key_head, first - before, count, keys);
      args_.values.rows(item, key_head, first - before, count, values);
      return true;
    };
    if (!made_.has(index, done, widen)) return false;
    block.keys = {keys + before * head_dim, head_dim, 1};
    block.values = {values + before * value_dim, value_dim, 1};
    return true;
  }

 private:
  const AttentionArgs<T>& args_;
  T* keys_ = nullptr;
  T* values_ = nullptr;
};

/// A bfloat16 call in the form that the pair kernels take. Groups decide bits, so a key is always
/// in the same one, at the same place: keys 2i and 2i + 1 are a pair, 32 keys a tile. Memory of
/// the thread.
template <class T>
class PairBlocks {
 public:
  /// Room for `rows` decoded rows of queries. With `kernels` null, nothing else may be called.
  /// `turned`: null, or values that are shared with other blocks of queries.
  PairBlocks(const AttentionArgs<T>& args, const simd::PairKernels<T>* kernels, Index rows,
             const TurnedValues<T>* turned = nullptr)
      : args_(args), kernels_(kernels), turned_(turned), row_count_(rows) {
    if (kernels_ == nullptr) return;
    const Index depth = whole(args.head_dim()), columns = args.value_dim();
    const Index step = kernels->rows_at_once;
    divide_scratch<PairBlocks>([&](Carver& carver) {
      keys_ = carver.take<std::uint16_t>(simd::key_block * depth);
      values_ = carver.take<std::uint16_t>(simd::key_block * columns);
      pairs_ = carver.take<std::uint16_t>(simd::key_block * (columns + step));
      packed_ = carver.take<std::uint16_t>(simd::row_keys * depth);
      rows_ = carver.take<std::uint16_t>(rows * depth);
      probabilities_ = carver.take<std::uint16_t>(rounded_up(rows, step) * simd::row_keys);
      words_ = carver.take<std::uint64_t>(simd::key_block);
      kept_ = carver.take<Index>(simd::key_block);
    });
  }

  /// Whether products are computed in pairs, or in tiles of pairs.
  explicit operator bool() const { return kernels_ != nullptr; }

  /// Packs `count` queries of a head from `first` on, `step` apart, for `attend`.
  void pack(Index item, Index head, Index first, Index count, Index step) {
    kernels_->pack(args_.queries.spaced_bits(item, head, first, count, step, keys_), count,
                   args_.head_dim(), packed_);
  }
  /// Adds the visible keys of a key head to the softmax of the packed queries: those of a block, or
  /// of whole blocks that all queries see. `queries` gives their shape and scratch.
  void attend(Index item, Index key_head, VisibleKeys seen, const simd::QueryBlock<T>& queries,
              const simd::SoftmaxState<T>& state, bool first) const {
    const simd::PairQueries<T> block{packed_,       queries.probabilities, query_factor(args_),
                                     queries.count, queries.head_dim,      queries.value_dim,
                                     queries.coming};
    for (Index left = seen.count; left > 0; first = false) {
      seen.count = smaller(left, simd::key_block);
      auto keys = bring(item, key_head, seen, kernels_->turn);
      while (keys.blocks * simd::key_block < left && follows(item, key_head, seen.first, keys)) {
        ++keys.blocks;
      }
      kernels_->attend(keys, block, state, first);
      const Index taken = smaller(left, keys.blocks * simd::key_block);
      seen.first += taken;
      left -= taken;
    }
  }

  /// Copies one query to a row for `score_rows`.
  void copy_query(Index item, Index head, Index query, Index row) const {
    const Index depth = whole(args_.head_dim());
    args_.queries.copy_bits(item, head, query, 1, depth, rows_ + row * depth);
  }
  /// PairKernels::turn or zip.
  using Arrange = void (*)(simd::MatrixRef<std::uint16_t> rows, Index count, Index columns,
                           std::uint16_t* arranged);
  /// The keys that some query sees, with their values, in whole groups.
  simd::PairKeys bring(Index item, Index key_head, const VisibleKeys& seen, Arrange arrange) const {
    return arranged(item, key_head, whole(seen), arrange);
  }
  /// The same for the copied rows.
  simd::PairKeys bring(Index item, Index key_head, const VisibleKeys& seen) const {
    const Run run = whole(seen);
    if (run.words != nullptr || !reads_lying()) {
      return arranged(item, key_head, run, kernels_->zip);
    }
    simd::PairKeys block = keys_of(item, key_head, run);
    block.lying = values_of(item, key_head, run);
    return block;
  }
  /// Whether keys that all rows see are read in place, so that the keys and the values of a block
  /// can be brought one without the other.
  bool reads_lying() const { return row_count_ <= kernels_->most_lying; }
  simd::PairKeys bring_keys(Index item, Index key_head, Index first, Index count) const {
    return keys_of(item, key_head, {first, count});
  }
  simd::PairKeys bring_values(Index item, Index key_head, Index first, Index count) const {
    simd::PairKeys block;
    block.count = count;
    block.lying = values_of(item, key_head, {first, count});
    return block;
  }

  /// Before the first and after the last `score_rows` of some blocks.
  void begin_scores() const {
    if (kernels_->begin_scores != nullptr) kernels_->begin_scores();
  }
  void end_scores() const {
    if (kernels_->end_scores != nullptr) kernels_->end_scores();
  }
  /// Computes the scores of the copied rows. `rows` gives their shape, states and scratch.
  void score_rows(const simd::PairKeys& keys, const simd::QueryRows<T>& rows) const {
    kernels_->score_rows(keys, pair_rows(rows));
  }
  /// Adds the keys, whose scores are in rows.scores, to the softmax of the copied rows.
  void attend_rows(const simd::PairKeys& keys, const simd::QueryRows<T>& rows) const {
    kernels_->attend_rows(keys, pair_rows(rows));
  }

 private:
  simd::PairRows<T> pair_rows(const simd::QueryRows<T>& rows) const {
    simd::PairRows<T> pairs;
    static_cast<simd::DecodedRows<T>&>(pairs) = rows;
    pairs.rows = rows_;
    pairs.packed = packed_;
    pairs.probabilities = probabilities_;
    pairs.factor = query_factor(args_);
    pairs.depth = whole(rows.head_dim) / 2;
    pairs.next = rows.next_bits[0];
    return pairs;
  }

  /// Rounded up to whole groups.
  Index whole(Index count) const { return rounded_up(count, kernels_->group); }

  /// A range of keys in whole groups: the visible keys and their companions.
  struct Run {
    Index first = 0;  // a multiple of the group
    Index count = 0;
    const std::uint64_t* words = nullptr;
    const Index* kept = nullptr;  // not null: only the keys first + kept[0], first + kept[1], …
  };
  Run whole(const VisibleKeys& seen) const {
    const Index before = seen.first & (kernels_->group - 1);
    Run run{seen.first - before, seen.count + before, seen.words, nullptr};
    if (before != 0 || seen.holes) {
      for (Index i = 0; i < before; ++i) words_[i] = 0;
      for (Index i = 0; i < seen.count; ++i) {
        words_[before + i] = seen.words != nullptr ? seen.words[i] : ~std::uint64_t{0};
      }
      run.words = words_;
    }
    if (seen.holes) keep_seen(run);
    return run;
  }
  simd::MatrixRef<std::uint16_t> values_of(Index item, Index key_head, const Run& run) const {
    return rows_of(args_.values, item, key_head, run, args_.value_dim(), run.count, values_);
  }
  /// The keys of a range, without values.
  simd::PairKeys keys_of(Index item, Index key_head, const Run& run) const {
    const Index read = rounded_up(run.count, kernels_->rows_at_once);
    simd::PairKeys block;
    block.count = run.count;
    block.words = run.words;
    block.keys = rows_of(args_.keys, item, key_head, run, whole(args_.head_dim()),
                         run.first + read <= args_.key_count_of(item) ? read : 0, keys_);
    return block;
  }
  void arrange_values(Index item, Index key_head, const Run& run, Arrange arrange,
                      std::uint16_t* to) const {
    const Index columns = args_.value_dim();
    arrange(rows_of(args_.values, item, key_head, run, columns, run.count, values_), run.count,
            columns, to);
  }
  /// Points `keys`, which begin at `first`, at turned values, if there are any to be shared.
  bool lend_turned(Index item, Index key_head, Index first, simd::PairKeys& keys) const {
    const auto turn = [&](Index begin, Index count, std::uint16_t* to) {
      arrange_values(item, key_head, {begin, count}, kernels_->turn, to);
      return kernels_->all_finite(to, whole(count) * args_.value_dim());
    };
    return turned_ != nullptr && turned_->lend(item, key_head, first, keys, turn);
  }
  /// Whether one more whole block of keys follows in memory on the keys.blocks blocks from `first`
  /// on, and its values on theirs.
  bool follows(Index item, Index key_head, Index first, const simd::PairKeys& keys) const {
    const Index count = keys.blocks * simd::key_block, end = count + simd::key_block;
    simd::PairKeys next;
    next.count = simd::key_block;
    return keys.values_step > 0 && first + end <= args_.key_count_of(item) &&
           in_place(args_.keys, {first, end}, whole(args_.head_dim()), end) &&
           lend_turned(item, key_head, first + count, next);
  }
  /// The keys of a range, with their values.
  simd::PairKeys arranged(Index item, Index key_head, const Run& run, Arrange arrange) const {
    const Index columns = args_.value_dim();
    simd::PairKeys block = keys_of(item, key_head, run);
    if (run.kept == nullptr && lend_turned(item, key_head, run.first, block)) return block;
    arrange_values(item, key_head, run, arrange, pairs_);
    block.values = pairs_;
    block.arranged = run.count;
    block.guard_values =
        run.words != nullptr && !kernels_->all_finite(pairs_, whole(run.count) * columns);
    return block;
  }
  /// Drops the groups that no query sees.
  void keep_seen(Run& run) const {
    const Index seen = drop_unseen(words_, run.count, kept_, kernels_->group);
    if (seen < run.count) run.kept = kept_;
    run.count = seen;
  }

  /// Whether a kernel can read `columns` columns of `read` of the range's rows as they lie.
  static bool in_place(const Operand<T>& operand, const Run& run, Index columns, Index read) {
    return operand.has_bits() && run.kept == nullptr && read > 0 && columns == operand.extent(3) &&
           operand.stride(3) == 1 && operand.is_contiguous(run.first, read);
  }
  /// The range's rows: in place if they can be, otherwise, or if `read` is 0, copied.
  static simd::MatrixRef<std::uint16_t> rows_of(const Operand<T>& operand, Index item, Index head,
                                                const Run& run, Index columns, Index read,
                                                std::uint16_t* to) {
    if (in_place(operand, run, columns, read)) {
      return {operand.bits(item, head, run.first), operand.stride(2), 1};
    }
    if (run.kept == nullptr) operand.copy_bits(item, head, run.first, run.count, columns, to);
    for (Index i = 0; run.kept != nullptr && i < run.count; ++i) {
      operand.copy_bits(item, head, run.first + run.kept[i], 1, columns, to + i * columns);
    }
    return {to, columns, 1};
  }

  const AttentionArgs<T>& args_;
  const simd::PairKernels<T>* kernels_;
  const TurnedValues<T>* turned_;
  Index row_count_;  // decoded rows
  std::uint16_t* keys_ = nullptr;
  std::uint16_t* values_ = nullptr;
  std::uint16_t* pairs_ = nullptr;  // [key / 2][value_dim][2]
  std::uint16_t* packed_ = nullptr;
  std::uint16_t* rows_ = nullptr;
  std::uint16_t* probabilities_ = nullptr;
  std::uint64_t* words_ = nullptr;
  Index* kept_ = nullptr;
};

/// A block of queries and a chunk of keys of a backward call in the forms that products of bfloat16
/// pairs and tiles read. Groups decide bits, so queries and keys keep their places, the visible and
/// the others, in blocks filled up with zeros. Memory of the thread.
///
/// A masked number may be NaN or Inf and must not meet a 0. Such numbers are therefore left out of
/// the three products that sum over queries or keys, and added where they are visible, one by one.
template <class T>
class PairGradients {
 public:
  /// `scratch`: the gradients of the chunk and of the queries.
  PairGradients(const BackwardArgs<T>& args, const BackwardScratch<T>& scratch)
      : args_(args), kernel_(args.pairs), arrange_(args.forward.pairs), scratch_(scratch) {
    if (kernel_ == nullptr) return;
    block_.factor = query_factor(args.forward);
    block_.head_row = scratch.head_row;
    block_.value_row = scratch.value_row;
    block_.head_depth = rounded_up(block_.head_row, arrange_->group);
    block_.value_depth = rounded_up(block_.value_row, arrange_->group);
    block_.grad_queries = scratch.grad_queries;
    divide_scratch<PairGradients>([&](Carver& carver) { take_arrays(carver); });
  }

  /// Whether the gradients are computed in pairs, or in tiles of pairs.
  explicit operator bool() const { return kernel_ != nullptr; }

  void announce(simd::ComingRows& coming) { block_.coming = &coming; }

  /// Brings the keys [first, end) of a chunk.
  void take_keys(Index item, Index key_head, Index first, Index end) {
    const auto& call = args_.forward;
    for (Index key = 0; first + key < end; key += simd::key_block) {
      const Index row = first + key - args_.key_offset;
      const Index count = smaller(end - first - key, simd::key_block);
      const Index read = rounded_up(count, simd::pair_key_rows);
      Keys& block = blocks_[key / simd::key_block];
      const auto rows = [&](const Operand<T>& from, Index depth, std::uint16_t* to) {
        return rows_of(from, item, key_head, row, count, read, depth, to + key * depth);
      };
      block.count = read;
      block.keys = rows(call.keys, block_.head_depth, keys_);
      block.given = given_rows(call.keys, item, key_head, row, block.keys);
      block.values = rows(call.values, block_.value_depth, values_);
      block.turned = turned_ + key * block_.head_row;
      arrange_->turn(block.keys, read, block_.head_row, block.turned);
      block.finite = made_finite(block.turned, read * block_.head_row);
    }
  }
  /// Brings the queries [row, row + count) of a head. Their gradient starts at 0.
  void take_queries(Index item, Index head, Index row, Index count, const T* log_sum_exp,
                    const T* delta) {
    count_ = count;
    block_.log_sum_exp = log_sum_exp;
    block_.delta = delta;
    const auto take = [&](const Operand<T>& from, Index columns, std::uint16_t* to,
                          std::uint16_t* packed, std::uint16_t* zipped, Rows& given) {
      const auto rows = rows_of(from, item, head, row, count, count, columns, to);
      given = given_rows(from, item, head, row, rows);
      arrange_->pack(rows, count, columns, packed);
      arrange_->zip(rows, count, columns, zipped);
      return made_finite(zipped, rounded_up(count, arrange_->group) * columns);
    };
    finite_queries_ = take(args_.forward.queries, block_.head_row, queries_, packed_queries_,
                           zipped_queries_, given_queries_);
    finite_gradient_ = take(args_.narrow_grad_output, block_.value_row, gradient_, packed_gradient_,
                            zipped_gradient_, given_gradient_);
    clear_numbers(block_.grad_queries, block_.head_row * simd::query_block);
  }

  /// Adds what the queries and the visible keys `seen` contribute to their gradients. The block of
  /// keys begins at `key` of the chunk, its first key is `first`.
  void add(Index key, Index first, const VisibleKeys& seen) {
    const Keys& keys = blocks_[key / simd::key_block];
    block_.words = words_of(first, seen);
    block_.key_count = keys.count;
    block_.keys = keys.keys;
    block_.values = keys.values;
    block_.turned_keys = keys.turned;
    block_.gradients = {scratch_.chunk.keys + key * block_.head_row,
                        scratch_.chunk.values + key * block_.value_row};
    kernel_(block_);
    if (keys.finite && finite_queries_ && finite_gradient_) return;
    const Index head_dim = args_.forward.head_dim(), value_dim = args_.forward.value_dim();
    for_visible(seen.first - first, seen.count, [&](Index each, Index query) {
      const Index at = each * simd::query_block + query;
      const T weight = float_of_bfloat16(block_.probabilities[at]),
              grad = float_of_bfloat16(block_.grad_scores[at]);
      add_others(keys.given, each, head_dim, grad, block_.grad_queries + query, simd::query_block);
      add_others(given_queries_, query, head_dim, grad,
                 block_.gradients.keys + each * block_.head_row, 1);
      add_others(given_gradient_, query, value_dim, weight,
                 block_.gradients.values + each * block_.value_row, 1);
    });
  }

 private:
  using Rows = simd::MatrixRef<std::uint16_t>;
  /// A block of keys of the chunk.
  struct Keys {
    Rows given;
    Rows keys;
    Rows values;
    std::uint16_t* turned = nullptr;
    Index count = 0;  // to be read
    bool finite = true;
  };

  void take_arrays(Carver& carver) {
    constexpr Index queries = simd::query_block, keys = simd::key_block;
    const auto take = [&](auto*& shown, Index count) {
      auto* array = carver.template take<std::uint16_t>(count);
      shown = array;
      return array;
    };
    const Index depth = block_.head_depth, value_depth = block_.value_depth;
    take(keys_, backward_chunk * depth);
    take(values_, backward_chunk * value_depth);
    take(turned_, backward_chunk * block_.head_row);
    take(queries_, queries * block_.head_row);
    take(gradient_, queries * block_.value_row);
    block_.packed_queries = take(packed_queries_, queries * depth);
    block_.packed_gradient = take(packed_gradient_, queries * value_depth);
    block_.zipped_queries = take(zipped_queries_, queries * block_.head_row);
    block_.zipped_gradient = take(zipped_gradient_, queries * block_.value_row);
    take(block_.probabilities, keys * queries);
    take(block_.grad_scores, keys * queries);
    take(block_.paired_grad_scores, keys * queries);
    block_.scores = carver.template take<T>(keys * queries);
    block_.grad_weights = carver.template take<T>(keys * queries);
    words_ = carver.template take<std::uint64_t>(keys);
  }

  /// The rows as they were given, where `brought` may be a copy that a kernel reads.
  static Rows given_rows(const Operand<T>& from, Index item, Index head, Index row,
                         const Rows& brought) {
    if (!from.has_bits()) return brought;
    return {from.bits(item, head, row), from.stride(2), from.stride(3)};
  }
  /// `count` rows of an operand, of which a kernel reads `rows` of `columns` numbers: in place if
  /// there are as many, or else copied and filled up with zeros.
  static Rows rows_of(const Operand<T>& from, Index item, Index head, Index row, Index count,
                      Index rows, Index columns, std::uint16_t* to) {
    if (from.has_bits() && count == rows && from.extent(3) == columns && from.stride(3) == 1) {
      return {from.bits(item, head, row), from.stride(2), 1};
    }
    from.copy_bits(item, head, row, count, columns, to);
    clear_numbers(to + count * columns, (rows - count) * columns);
    return {to, columns, 1};
  }

  static bool is_finite(std::uint16_t bits) { return (bits & 0x7f80) != 0x7f80; }
  /// Whether the numbers are finite; puts 0 where they are not.
  bool made_finite(std::uint16_t* numbers, Index count) const {
    if (arrange_->all_finite(numbers, count)) return true;
    for (Index i = 0; i < count; ++i) {
      if (!is_finite(numbers[i])) numbers[i] = 0;
    }
    return false;
  }
  /// Calls add(key, query) for the visible pairs among the keys [first, first + count) of a block.
  template <class Add>
  void for_visible(Index first, Index count, const Add& add) const {
    for (Index key = first; key < first + count; ++key) {
      for (Index query = 0; query < count_; ++query) {
        if (block_.words == nullptr || (block_.words[key] >> query & 1) != 0) add(key, query);
      }
    }
  }
  /// sums[column] += factor · row[column] for the NaN and Inf of a row.
  static void add_others(const Rows& rows, Index row, Index columns, T factor, T* sums,
                         Index stride) {
    const std::uint16_t* at = rows.data + row * rows.row_stride;
    for (Index column = 0; column < columns; ++column, at += rows.column_stride) {
      if (!is_finite(*at)) sums[column * stride] += factor * float_of_bfloat16(*at);
    }
  }

  /// A word for every key of a block that begins at key `first`; null where all queries of a whole
  /// block see all keys.
  const std::uint64_t* words_of(Index first, const VisibleKeys& seen) const {
    const bool whole = count_ == simd::query_block && seen.count == simd::key_block;
    if (whole && seen.words == nullptr) return nullptr;
    const std::uint64_t everyone = lanes_between(0, count_ - 1);
    std::uint64_t words[simd::key_block] = {};
    for (Index i = 0; i < seen.count; ++i) {
      words[seen.first - first + i] = seen.words == nullptr ? everyone : seen.words[i] & everyone;
    }
    for (Index i = 0; i < simd::key_block; ++i) words_[i] = words[i];
    return words_;
  }

  const BackwardArgs<T>& args_;
  simd::PairBackwardKernel<T> kernel_;
  const simd::PairKernels<T>* arrange_;
  const BackwardScratch<T>& scratch_;
  simd::PairGradientBlock<T> block_;
  Index count_ = 0;  // queries
  Keys blocks_[backward_chunk / simd::key_block];
  Rows given_queries_;
  Rows given_gradient_;  // of the output
  bool finite_queries_ = true;
  bool finite_gradient_ = true;
  std::uint16_t* keys_ = nullptr;     // [key of the chunk][head_depth], where copied
  std::uint16_t* values_ = nullptr;   // [key of the chunk][value_depth]
  std::uint16_t* turned_ = nullptr;   // the keys of each block, turned
  std::uint16_t* queries_ = nullptr;  // rows, where copied
  std::uint16_t* gradient_ = nullptr;
  std::uint16_t* packed_queries_ = nullptr;
  std::uint16_t* packed_gradient_ = nullptr;
  std::uint16_t* zipped_queries_ = nullptr;
  std::uint16_t* zipped_gradient_ = nullptr;
  std::uint64_t* words_ = nullptr;
};

}  // namespace heed::detail
