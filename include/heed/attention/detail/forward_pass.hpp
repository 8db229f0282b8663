// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

// From softmax states to results. -----------------------------------------------------------------

/// Adds a head's sink to the sums: e^sink, after the maximum moves to the larger of both. The
/// outputs have not made that move; the factors include it.
template <class T>
void add_sink(T sink, const simd::SoftmaxState<T>& state, T* factors) {
  const T score = static_cast<T>(static_cast<double>(sink) * bits_per_nat);
  T moves[simd::query_block], shares[simd::query_block];
  for (Index lane = 0; lane < simd::query_block; ++lane) {
    const T old = state.maximum[lane];
    if (score > old) state.maximum[lane] = score;
    moves[lane] = old - state.maximum[lane];
    shares[lane] = score - state.maximum[lane];
  }
  simd::kernels<T>().exp2(moves, moves, simd::query_block);
  simd::kernels<T>().exp2(shares, shares, simd::query_block);
  for (Index lane = 0; lane < simd::query_block; ++lane) {
    state.sum[lane] = product(state.sum[lane], moves[lane]) + shares[lane];
    factors[lane] *= moves[lane];
  }
}

/// The factors on the outputs of a block of queries: 1 / sum; +0 for a lane that saw no key; -0 for
/// a lane that saw keys, but to which the sink leaves nothing. Computed for the lanes of `rows`
/// queries and for those that share a vector with them. `sink`: null or the head's.
template <class T>
void find_output_factors(const T* sink, const simd::SoftmaxState<T>& state, Index rows,
                         T* factors) {
  const Index lanes = sink != nullptr ? simd::query_block : rounded_up(rows, most_lanes);
  bool saw_key[simd::query_block];
  for (Index lane = 0; lane < lanes; ++lane) {
    saw_key[lane] = state.sum[lane] != T{0};  // NaN too
    factors[lane] = saw_key[lane] ? T{1} : T{0};
  }
  if (sink != nullptr) add_sink(*sink, state, factors);
  for (Index lane = 0; lane < lanes; ++lane) {
    if (!saw_key[lane]) continue;
    factors[lane] /= state.sum[lane];
    if (factors[lane] == T{0}) factors[lane] = -T{0};
  }
}
/// Whether a lane saw a key.
template <class T>
bool saw_keys(T factor) {
  return factor != T{0} || __builtin_signbit(factor) != 0;
}

/// ln 2 · (maximum + log2(sum)): the log-sum-exp of a row, -inf for one that saw no key.
template <class T>
T log_sum_exp_of(T maximum, T sum) {
  if (sum == T{0}) return -std::numeric_limits<T>::infinity();
  return static_cast<T>((static_cast<double>(maximum) + __builtin_log2(static_cast<double>(sum))) *
                        nats_per_bit);
}

/// The fused forward pass of one block of queries of one head: which keys it meets, in which order.
/// Nothing here depends on the instruction set, and no result on which queries share a block.
template <class T>
class QueryBlockPass {
 public:
  /// `rows` rows of one head from `row` on, `step` apart, rows ≤ query_block. The grouping of rows
  /// decides no bit; steps above 1 are for masks that know them and scores without modification.
  /// `pairs`: null, or the kernels for bfloat16 pairs; `turned` as for PairBlocks; `widened`: null,
  /// or keys and values that are shared with other blocks of queries.
  QueryBlockPass(const AttentionArgs<T>& args, const MaskRef& mask,
                 const simd::PairKernels<T>* pairs, Index item, Index head, Index row, Index rows,
                 Index step = 1, const TurnedValues<T>* turned = nullptr,
                 const WidenedKeys<T>* widened = nullptr)
      : args_(args),
        mask_(mask),
        kernels_(simd::kernels<T>()),
        scratch_(divided_scratch<ForwardScratch<T>, void>(args.head_dim(), args.value_dim(),
                                                          args.score_mods.any())),
        score_mods_(args, scratch_, item, head, row, rows),
        pairs_(args, pairs, 0, turned),
        widened_(widened),
        item_(item),
        head_(head),
        row_(row),
        rows_(rows),
        step_(step) {}

  /// Uses `shared` instead of the mask to find the visible keys. Valid for one batch item and these
  /// rows, for any head.
  void share(SharedLaneWords& shared) { shared_ = &shared; }

  /// Prefetches these rows while blocks are computed.
  void announce(simd::ComingRows& coming) { coming_ = &coming; }

  // `begun`: whether the total holds any key.

  /// Merges the states of the rows over one chunk of keys into the total or, if it has not begun,
  /// makes them the total. Sets `begun`.
  void add(const RowStates<T>& states, bool& begun) {
    const Index columns = args_.value_dim();
    const auto& state = begun ? scratch_.chunk : scratch_.total;
    clear(state);
    for (Index row = 0; row < rows_; ++row) {
      state.maximum[row] = states.maximum[row];
      state.sum[row] = states.sum[row];
    }
    kernels_.pack({states.output, padded_value_dim(columns), 1}, rows_, columns, T{1},
                  state.output);
    if (begun) kernels_.merge(scratch_.total, state, rows_, columns);
    begun = true;
  }
  /// Stores the total.
  void store(const RowStates<T>& states, bool begun) {
    const Index columns = args_.value_dim(), padded = padded_value_dim(columns);
    if (!begun) clear(scratch_.total);
    for (Index row = 0; row < rows_; ++row) {
      states.maximum[row] = scratch_.total.maximum[row];
      states.sum[row] = scratch_.total.sum[row];
    }
    if (!begun) return clear_numbers(states.output, rows_ * padded);
    for (Index lane = 0; lane < simd::query_block; ++lane) scratch_.factors[lane] = T{1};
    kernels_.unpack(scratch_.total.output, rows_, columns, scratch_.factors, states.output, padded,
                    1);
  }
  /// Stores the states of the rows over the chunk of keys that begins at `first`.
  void run_chunk(Index first, const RowStates<T>& states) {
    store(states, take_keys(first, first + simd::key_chunk, false));
  }
  /// Writes output and log-sum-exp of the rows from the total.
  void write(bool begun) {
    if (!begun) clear(scratch_.total);
    write_out(begun);
    if (args_.log_sum_exp.given()) write_log_sum_exp();
  }

  /// Computes output and log-sum-exp of the rows. Masked values are not looked at first: should one
  /// be NaN or Inf, its product with a weight of 0 leaves a NaN in the total, and then all keys are
  /// taken again with guards.
  void run() {
    guards_ = false;
    bool begun = take_all_keys();
    guards_ = masked_ && !total_is_finite();
    if (guards_) begun = take_all_keys();
    write(begun);
  }

  /// Adds the keys [first, end) to a total that the caller keeps, and that holds all keys before;
  /// `first` is a multiple of key_chunk, and so is `end` unless it is behind the last key.
  void take(Index first, Index end, const simd::SoftmaxState<T>& total, bool& begun) {
    scratch_.total = total;
    begun = take_keys(first, end, begun);
  }
  /// Writes output and log-sum-exp of the rows from a total that holds all keys.
  void write(const simd::SoftmaxState<T>& total, bool begun) {
    scratch_.total = total;
    write(begun);
  }

  /// Computes the weights of the rows into `out` (rows, keys); writes every element.
  void run_weights(const TensorView<T, 2>& out) {
    take_all_keys();
    T maximum[simd::query_block];  // before a sink moves it: the factors include the move
    std::memcpy(maximum, scratch_.total.maximum, sizeof maximum);
    find_factors();
    for (Index row = 0; row < rows_; ++row) {
      for (Index key = 0; key < out.extent(1); ++key) out(row, key) = T{0};
    }
    for_each_visible(
        Coverage::partial, 0, args_.key_count_of(item_),  // partial: asks about every block
        [&](Index key, Index last) { return visible_keys(mask_, tile(key, last), scratch_.words); },
        [&](const VisibleKeys& seen, Index, Index) { write_weights(seen, maximum, out); });
  }

 private:
  /// Adds every visible key to the total; false if there was none.
  bool take_all_keys() { return take_keys(0, args_.key_count_of(item_), false); }

  /// Packs the queries and adds the visible keys of [begin, end) to the total, which is cleared
  /// first if it has not begun. Returns whether it has now.
  bool take_keys(Index begin, Index end, bool begun) {
    if (pairs_) {
      pairs_.pack(item_, head_, row_, rows_, step_);
    } else {
      kernels_.pack(args_.queries.spaced_rows(item_, head_, row_, rows_, step_, scratch_.keys),
                    rows_, args_.head_dim(), query_factor(args_), scratch_.packed);
    }
    if (!begun) clear(scratch_.total);
    end = smaller(end, args_.key_count_of(item_));
    for (Index first = begin; first < end; first += simd::key_chunk) {
      const auto& state = begun ? scratch_.chunk : scratch_.total;
      if (begun) clear(state);
      if (!take_chunk(first, state)) continue;
      if (begun) kernels_.merge(scratch_.total, state, rows_, args_.value_dim());
      begun = true;
    }
    return begun;
  }

  Tile tile(Index first_key, Index last_key) const {
    return tile_of(args_, item_, head_, row_, rows_, first_key, last_key);
  }

  /// The state before any key, but for the output, which the first block writes. Covers all lanes,
  /// also those past the last query: kernels compute whole strips.
  static void clear(const simd::SoftmaxState<T>& state) {
    for (Index lane = 0; lane < simd::query_block; ++lane) {
      state.maximum[lane] = std::numeric_limits<T>::lowest();
      state.sum[lane] = 0;
    }
  }

  /// Processes the chunk of keys that begins at `first`, into `state`; false if no key is visible.
  bool take_chunk(Index first, const simd::SoftmaxState<T>& state) {
    const Index end = smaller(first + simd::key_chunk, args_.key_count_of(item_));
    const Coverage coverage = mask_.coverage(tile(first, end - 1), step_);
    bool fresh = true;
    VisibleKeys together{};  // consecutive blocks that all queries see, for one call of pairs
    const auto take = [&](VisibleKeys& keys) {
      if (keys.count == 0) return;
      take_block(keys, state, fresh);
      fresh = false;
      keys.count = 0;
    };
    for_each_visible(
        coverage, first, end, [&](Index key, Index last) { return visible(tile(key, last)); },
        [&](VisibleKeys seen, Index, Index) {
          const bool whole = pairs_ && seen.words == nullptr && seen.count == simd::key_block;
          if (whole && together.count > 0 && together.first + together.count == seen.first) {
            together.count += seen.count;
            return;
          }
          take(together);
          if (whole) {
            together = seen;
          } else {
            take(seen);
          }
        });
    take(together);
    return !fresh;
  }

  VisibleKeys visible(const Tile& part) const {
    return shared_ != nullptr
               ? shared_->visible_keys(mask_, part, part.first_key / simd::key_block, step_)
               : visible_keys(mask_, part, scratch_.words, step_);
  }

  /// Adds the visible keys of a block or, for pairs, of consecutive blocks to the state.
  void take_block(const VisibleKeys& seen, const simd::SoftmaxState<T>& state, bool fresh) {
    const Index key_head = args_.key_head(head_);
    if (pairs_) return pairs_.attend(item_, key_head, seen, queries(), state, fresh);
    simd::KeyBlock<T> block{{}, {}, seen.count, seen.words, false};
    if (widened_ == nullptr || !widened_->lend(item_, key_head, seen.first, block)) {
      block.keys = args_.keys.rows(item_, key_head, seen.first, seen.count, scratch_.keys);
      block.values = args_.values.rows(item_, key_head, seen.first, seen.count, scratch_.values);
    }
    if (seen.holes) gather(block);
    if (args_.score_mods.any()) {
      score_mods_.attach(block, queries(), seen.first, seen.holes ? scratch_.kept : nullptr);
    }
    masked_ = masked_ || block.words != nullptr;
    block.guard_values = guards_ && block.words != nullptr &&
                         !kernels_.all_finite(block.values, block.count, args_.value_dim());
    kernels_.attend(block, queries(), state, fresh);
  }
  simd::QueryBlock<T> queries() const {
    return {scratch_.packed,  scratch_.probabilities, scratch_.scores, rows_,
            args_.head_dim(), args_.value_dim(),      coming_};
  }

  /// Gathers the keys that some query sees, and their values; in place if they are evenly spaced.
  void gather(simd::KeyBlock<T>& block) {
    drop_unseen(block, scratch_.words, scratch_.kept);
    bool full = true;
    for (Index i = 0; i < block.count; ++i) full = full && scratch_.words[i] == everyone();
    if (full) block.words = nullptr;
    const Index* kept = scratch_.kept;
    const Index spacing = block.count > 1 ? kept[1] - kept[0] : 1;
    bool regular = true;
    for (Index i = 1; i < block.count; ++i) regular = regular && kept[i] - kept[i - 1] == spacing;
    if (!regular) {
      return gather_kept(block, kept, args_.head_dim(), args_.value_dim(), scratch_.keys,
                         scratch_.values);
    }
    for (auto* rows : {&block.keys, &block.values}) {
      *rows = {rows->data + kept[0] * rows->row_stride, rows->row_stride * spacing,
               rows->column_stride};
    }
  }

  std::uint64_t everyone() const { return lanes_between(0, rows_ - 1); }

  bool total_is_finite() const {
    const Index lanes = kernels_.strip_lanes, columns = args_.value_dim();
    bool finite = true;  // the output is transposed: for each column, a row of a strip's lanes
    for (Index lane = 0; lane < rows_; lane += lanes) {
      finite = finite && kernels_.all_finite({scratch_.total.output + lane * columns, lanes, 1},
                                             columns, smaller(lanes, rows_ - lane));
    }
    return finite;
  }

  /// Null without sinks.
  const T* sink() const {
    const auto& sinks = args_.score_mods.sinks;
    return sinks.empty() ? nullptr : &sinks[static_cast<std::size_t>(head_ + args_.head_offset)];
  }
  void find_factors() { find_output_factors(sink(), scratch_.total, rows_, scratch_.factors); }

  void write_weights(const VisibleKeys& seen, T* maximum, const TensorView<T, 2>& out) {
    simd::KeyBlock<T> block{
        args_.keys.rows(item_, args_.key_head(head_), seen.first, seen.count, scratch_.keys),
        {},
        seen.count,
        seen.words,
        false};
    if (args_.score_mods.any()) score_mods_.attach(block, queries(), seen.first, nullptr);
    kernels_.probabilities(block, queries(), maximum);
    for (Index row = 0; row < rows_; ++row) {
      const Index lane = row % kernels_.strip_lanes;
      const T* from = scratch_.probabilities + (row - lane) * simd::key_block + lane;
      for (Index key = 0; key < seen.count; ++key) {
        // A row that sees a NaN has it as its factor. Adding 0 turns minus zero into plus zero.
        if (seen.words != nullptr && (seen.words[key] >> row & 1) == 0) continue;
        out(row, seen.first + key) =
            from[key * kernels_.strip_lanes] * scratch_.factors[row] + T{0};
      }
    }
  }

  /// out = output / sum.
  void write_out(bool begun) {
    find_factors();
    const auto& out = args_.out;
    const Index columns = args_.value_dim();
    const bool rounds = out.is_bfloat16();  // through scratch_.values
    const Index step = rounds ? columns : out.stride(2) * step_;
    const Index column_step = rounds ? 1 : out.stride(3);
    T* to = rounds ? scratch_.values : out.rows(item_, head_, row_);
    if (begun) {
      kernels_.unpack(scratch_.total.output, rows_, columns, scratch_.factors, to, step,
                      column_step);
    }
    for (Index i = 0; i < rows_; ++i) {
      if (begun && saw_keys(scratch_.factors[i])) continue;
      for (Index d = 0; d < columns; ++d) to[i * step + d * column_step] = T{0};
    }
    if (rounds) out.round(to, rows_, item_, head_, row_, step_);
  }
  void write_log_sum_exp() const {
    const auto& view = args_.log_sum_exp.view();
    for (Index i = 0; i < rows_; ++i) {
      view(item_, head_, row_ + i * step_) =
          sink() != nullptr && !saw_keys(scratch_.factors[i])
              ? *sink()  // not rounded to bits and back
              : log_sum_exp_of(scratch_.total.maximum[i], scratch_.total.sum[i]);
    }
  }

  const AttentionArgs<T>& args_;
  const MaskRef& mask_;
  const simd::Kernels<T>& kernels_;
  ForwardScratch<T> scratch_;
  LaneScoreMods<T> score_mods_;
  PairBlocks<T> pairs_;
  const WidenedKeys<T>* widened_;
  Index item_;
  Index head_;
  Index row_;
  Index rows_;
  Index step_;
  SharedLaneWords* shared_ = nullptr;
  bool guards_ = true;   // whether values are checked before a masked block is added: run() tries
                         // without and may begin anew, `take` cannot
  bool masked_ = false;  // whether some block was masked
  simd::ComingRows* coming_ = nullptr;
};

// Short sequences. --------------------------------------------------------------------------------

/// What a kernel for short sequences is given for one head and the keys that are seen: sizes,
/// factor and words, no matrices.
template <class T>
simd::ShortArgs<T> short_shape(const AttentionArgs<T>& args, const VisibleKeys& seen) {
  simd::ShortArgs<T> call;
  call.query_count = args.query_count();
  call.key_count = seen.count;
  call.head_dim = args.head_dim();
  call.value_dim = args.value_dim();
  call.query_factor = query_factor(args);
  call.words = seen.words;
  return call;
}
/// The same with views of T, which are read in place.
template <class T>
simd::ShortArgs<T> short_views(const AttentionArgs<T>& args, Index item, Index head,
                               const VisibleKeys& seen) {
  const Index key_head = args.key_head(head);
  auto call = short_shape(args, seen);
  call.queries = args.queries.rows(item, head, 0);
  call.keys = args.keys.rows(item, key_head, seen.first);
  call.values = args.values.rows(item, key_head, seen.first);
  return call;
}

/// The forward pass of calls with short sequences, at most one block of queries and one of keys.
/// Here the per-block work of the other passes would cost more than the attention itself, so the
/// mask is asked once for all heads of a batch item, and one kernel call takes many heads. Where it
/// cannot read or write them as they lie, it takes one, whose copies stay in the first-level cache.
/// The bits are those of QueryBlockPass.
template <class T>
class ShortForward {
 public:
  /// `group` heads go into one kernel call or, if they must be copied, into one each.
  ShortForward(const AttentionArgs<T>& args, const MaskRef& mask, Index group)
      : args_(args), mask_(mask), group_(group), numbers_(numbers_of(args)) {}

  /// Whether ShortForward can compute a call, or copies of its rounded numbers.
  static bool fits(const AttentionArgs<T>& args) {
    // Keys in the lanes take a kernel call for each head, or group of heads that share keys. They
    // are faster for one to three queries of more than 16 keys, and for one of more than 8 where
    // heads share keys and some numbers are not read in place.
    const bool alone = args.query_count() == 1 && args.sharing() > 1 && !in_views(args);
    const Index few_keys = alone ? 8 : 16;
    const bool pays = args.query_count() >= 4 || args.key_count() <= few_keys;
    return pays && args.query_count() <= simd::query_block && args.key_count() > 0 &&
           args.key_count() <= simd::key_block && !args.score_mods.any() &&
           args.score_mods.sinks.empty() && !multiplies_pairs(args) &&
           simd::short_forward_kernel<T>();
  }

  void run(Index index) const {
    const Index item = index / groups(), head = index % groups() * group_;
    const Index heads = smaller(args_.heads() - head, group_);
    Arrays arrays;
    auto call = call_with(arrays);
    const Index keys = args_.key_count_of(item);
    const Tile tile = tile_of(args_, item, head, 0, args_.query_count(), 0, keys - 1);
    const VisibleKeys seen = keys == 0 ? VisibleKeys{} : visible_keys(mask_, tile, arrays.words);
    if (seen.count == 0 || seen.holes) {
      for (Index each = head; each < head + heads; ++each) {
        QueryBlockPass<T>(args_, mask_, nullptr, item, each, 0, args_.query_count()).run();
      }
      return;
    }
    if (numbers_ == Numbers::copied) return attend_each(call, arrays, item, head, heads, seen);
    simd::ComingRows coming;
    if (args_.exceeds_caches()) call.coming = &coming;
    if (numbers_ == Numbers::bits) return attend_bits(call, arrays, item, head, heads, seen);
    static_cast<simd::ShortArgs<T>&>(call) = short_views(args_, item, head, seen);
    choose_heads(call, arrays, item, head, heads);
    attend(call, item);
  }

 private:
  /// Where a kernel reads and writes numbers: in views of T, in views of bfloat16, or in copies.
  enum class Numbers { views, bits, copied };

  /// A thread's memory for the mask's answers and, but for views of T, for one head.
  struct Arrays {
    std::uint64_t* words;
    T *queries, *keys, *values, *out;
  };

  static bool in_views(const AttentionArgs<T>& args) {
    return args.queries.is_view() && args.keys.is_view() && args.values.is_view() &&
           !args.out.is_bfloat16();
  }
  static Numbers numbers_of(const AttentionArgs<T>& args) {
    if (in_views(args)) return Numbers::views;
    const bool bits = args.queries.has_rows_of_bits() && args.keys.has_rows_of_bits() &&
                      args.values.has_rows_of_bits() && args.out.is_bfloat16() &&
                      args.out.stride(3) == 1 && args.out.kernels()->attend_short != nullptr;
    return bits ? Numbers::bits : Numbers::copied;
  }
  Index groups() const { return parts_of(args_.heads(), group_); }

  /// A kernel call with this thread's arrays. Lanes past the last query fill up whole vectors.
  simd::ShortForwardArgs<T> call_with(Arrays& arrays) const {
    const bool views = numbers_ == Numbers::views;
    const Index rows = views ? 0 : simd::query_block, keys = views ? 0 : simd::key_block;
    simd::ShortForwardArgs<T> call;
    divide_scratch<ShortForward>([&](Carver& carver) {
      call.packed = carver.take<T>(most_lanes * args_.head_dim());
      call.probabilities = carver.take<T>(most_lanes * simd::key_block);
      call.output = carver.take<T>(most_lanes * args_.value_dim());
      call.tail = carver.take<T>(most_lanes * simd::key_block);
      call.maximum = carver.take<T>(group_ * simd::query_block);
      call.sum = carver.take<T>(group_ * simd::query_block);
      arrays.words = carver.take<std::uint64_t>(simd::key_block);
      arrays.queries = carver.take<T>(rows * args_.head_dim());
      arrays.keys = carver.take<T>(keys * args_.head_dim());
      arrays.values = carver.take<T>(keys * args_.value_dim());
      arrays.out = carver.take<T>(rows * args_.value_dim());
    });
    return call;
  }

  /// Some heads one by one, with copies in T of what is not a view of T.
  void attend_each(simd::ShortForwardArgs<T>& call, const Arrays& arrays, Index item, Index head,
                   Index heads, const VisibleKeys& seen) const {
    const auto& p = args_;
    static_cast<simd::ShortArgs<T>&>(call) = short_shape(p, seen);
    for (Index each = head; each < head + heads; ++each) {
      const Index key_head = p.key_head(each);
      call.queries = p.queries.rows(item, each, 0, p.query_count(), arrays.queries);
      if (each == head || key_head != p.key_head(each - 1)) {
        call.keys = p.keys.rows(item, key_head, seen.first, seen.count, arrays.keys);
        call.values = p.values.rows(item, key_head, seen.first, seen.count, arrays.values);
      }
      choose_heads(call, arrays, item, each, 1);
      attend(call, item);
      if (p.out.is_bfloat16()) p.out.round(arrays.out, p.query_count(), item, each, 0);
    }
  }

  /// Some heads in one call that widens them itself.
  void attend_bits(simd::ShortForwardArgs<T>& call, const Arrays& arrays, Index item, Index head,
                   Index heads, const VisibleKeys& seen) const {
    const auto& p = args_;
    const Index key_head = p.key_head(head);
    const simd::ShortBits<T> bits{p.queries.bit_rows(item, head, 0, 1),
                                  p.keys.bit_rows(item, key_head, seen.first, 1),
                                  p.values.bit_rows(item, key_head, seen.first, 1),
                                  p.out.bits(item, head, 0),
                                  p.out.stride(2),
                                  arrays.keys,
                                  arrays.values};
    static_cast<simd::ShortArgs<T>&>(call) = short_shape(p, seen);
    choose_heads(call, arrays, item, head, heads);
    p.out.kernels()->attend_short(call, bits);
    if (p.log_sum_exp.given()) write_log_sum_exp(item, call);
  }

  void attend(const simd::ShortForwardArgs<T>& call, Index item) const {
    simd::short_forward_kernel<T>()(call);
    if (args_.log_sum_exp.given()) write_log_sum_exp(item, call);
  }
  /// Numbers in bfloat16 are written to `arrays` first.
  void choose_heads(simd::ShortForwardArgs<T>& call, const Arrays& arrays, Index item, Index head,
                    Index heads) const {
    const auto& p = args_;
    const bool rounds = p.out.is_bfloat16();
    call.out = rounds ? arrays.out : p.out.rows(item, head, 0);
    call.query_head = p.queries.stride(1);
    call.key_head = p.keys.stride(1);
    call.value_head = p.values.stride(1);
    call.out_head = p.out.stride(1);
    call.out_row = rounds ? p.value_dim() : p.out.stride(2);
    call.out_column = rounds ? 1 : p.out.stride(3);
    call.heads = heads;
    call.first_head = head;
    call.sharing = p.sharing();
  }

  void write_log_sum_exp(Index item, const simd::ShortForwardArgs<T>& call) const {
    const auto& view = args_.log_sum_exp.view();
    for (Index i = 0; i < call.heads; ++i) {
      for (Index row = 0; row < args_.query_count(); ++row) {
        const Index at = i * simd::query_block + row;
        view(item, call.first_head + i, row) = log_sum_exp_of(call.maximum[at], call.sum[at]);
      }
    }
  }

  const AttentionArgs<T>& args_;
  const MaskRef& mask_;
  Index group_;
  Numbers numbers_;
};

}  // namespace heed::detail
