// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/decode_pass.hpp>
#include <heed/attention/detail/forward_pass.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/config.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

/// The kernels for bfloat16 pairs, or tiles of them, in a call with this plan; null: none.
template <class T>
const simd::PairKernels<T>* pairs_of(const AttentionArgs<T>& args, const AttentionPlan& plan) {
  return plan.arithmetic != AttentionPlan::Arithmetic::scalar ? args.pairs : nullptr;
}

/// Calls run(i) for 0 ≤ i < count, on all threads or on this one.
template <class Run>
void share_out(bool all_threads, Index count, const Run& run) {
  if (all_threads) return parallel_for(count, run);
  for (Index i = 0; i < count; ++i) run(i);
}

/// The schedule with queries in the lanes: a task is a batch item, a group of heads and a block of
/// queries.
template <class T>
class ForwardTasks {
 public:
  ForwardTasks(const AttentionArgs<T>& args, const MaskRef& mask, const AttentionPlan& plan)
      : args_(args),
        mask_(mask),
        pairs_(pairs_of(args, plan)),
        step_(plan.row_step),
        blocks_(step_ * blocks_per_residue(args, step_)),
        group_(plan.heads),
        groups_(parts_of(args.heads(), group_)),
        threads_(plan.threads),
        together_(groups_together()),
        turned_(args, pairs_, turns() ? key_heads_of(together_) : 0),
        widened_(args, widens() ? key_heads_of(together_) : 0),
        announces_(args.exceeds_caches() || (pairs_ == nullptr && exceeds_near_caches())) {}

  /// The number of blocks that the queries r, r + step, r + 2 · step, … make, for an r below the
  /// step.
  static Index blocks_per_residue(const AttentionArgs<T>& args, Index step) {
    return parts_of(parts_of(args.query_count(), step), simd::query_block);
  }

  /// Calls run(task) for the tasks of the plan, together_ groups of heads at a time, so that what
  /// blocks of queries share (TurnedValues, WidenedKeys) stays within shared_bytes.
  template <class Run>
  void share_all(bool all_threads, Index tasks, const Run& run) {
    const Index wave = together_ * blocks_;
    for (Index first = 0; first < tasks; first += wave) {
      const Place place = place_of(first);
      const Index key_head = place.item * args_.kv_heads() + args_.key_head(place.head);
      turned_.begin(key_head);
      widened_.begin(key_head);
      share_out(all_threads, smaller(wave, tasks - first), [&](Index i) { run(first + i); });
    }
  }

  void run(Index task) const {
    for_each_block(task, [&](QueryBlockPass<T>& block, Index item, Index head, Index row) {
      if (!announces_) return block.run();
      auto coming = coming_rows(task, {item, head, row});
      block.announce(coming);
      block.run();
    });
  }

  /// Calls use(pass, item, head, row) for the block of a task, once for each of its heads.
  template <class Use>
  void for_each_block(Index task, const Use& use) const {
    const auto [item, head, row] = place_of(task);
    if (row >= args_.query_count()) return;  // the queries r, r + step, … of some r are fewer
    const Index end = smaller(head + group_, args_.heads());
    const bool share = end - head > 1;
    SharedLaneWords shared(share ? parts_of(args_.key_count(), simd::key_block) : 0);
    for (Index each = head; each < end; ++each) {
      auto one = pass(item, each, row);
      if (share) one.share(shared);
      use(one, item, each, row);
    }
  }

 private:
  static constexpr Index shared_bytes = Index{32} << 20;
  static constexpr Index near_bytes = Index{1} << 20;  // written and read by each thread
  static constexpr Index most_coming = 512;  // keys of a head that are prefetched during another

  struct Place {
    Index item;
    Index head;
    Index row;
  };
  /// The first row of a task, in the first of its heads. A head's last blocks come first: under
  /// causal masks they cost most.
  Place place_of(Index task) const {
    const Index block = blocks_ - 1 - task % blocks_;
    return {task / blocks_ / groups_, task / blocks_ % groups_ * group_,
            block / step_ * simd::query_block * step_ + block % step_};
  }
  /// What the pass of a task at `here` prefetches: the rows of its output, and what its thread
  /// takes next, if the threads take turns: queries, and in pairs the keys and values of another
  /// head.
  simd::ComingRows coming_rows(Index task, const Place& here) const {
    Place next = here;
    ++next.head;
    if (next.head % group_ == 0 || next.head == args_.heads()) next = place_of(task + threads_);
    simd::ComingRows coming;
    coming.far = true;
    coming.at_once = 6;  // all 64 rows in 11 micro tiles; a block of keys has 12 or more of these
    if (next.item < args_.batch() && next.row < args_.query_count()) {
      const Index rows = rows_from(next.row), keys = args_.key_count_of(next.item);
      args_.queries.announce(next.item, next.head, next.row, rows, step_, coming);
      const Index key_head = args_.key_head(next.head);
      const bool other = next.item != here.item || key_head != args_.key_head(here.head);
      if (pairs_ != nullptr && other && keys <= most_coming) {
        coming.at_once = larger(6, parts_of(keys, 10));  // all rows in 10 micro tiles
        args_.keys.announce(next.item, key_head, 0, keys, 1, coming);
        args_.values.announce(next.item, key_head, 0, keys, 1, coming);
      }
    }
    if (!args_.out.is_bfloat16()) {
      coming.add(simd::MatrixRef<T>{args_.out.rows(here.item, here.head, here.row),
                                    args_.out.stride(2) * step_, args_.out.stride(3)},
                 args_.value_dim(), rows_from(here.row));
    }
    return coming;
  }
  /// Whether the tensors are larger than the caches that a processor reads fast, if it reads the
  /// others late: 4 to 8 MB then take 0.95 to 0.97 of the time on an Emerald Rapids, but up to 1.04
  /// on a Zen 5.
  bool exceeds_near_caches() const {
    return simd::detail::prefetches_soon() && args_.bytes() > 2 << 20;
  }
  /// How many blocks of queries meet the same keys and values.
  Index meetings() const { return blocks_ * args_.sharing(); }
  /// Whether they share values that are laid out for bfloat16 pairs or tiles.
  bool turns() const { return pairs_ != nullptr && meetings() > 1; }
  /// Whether they share what bfloat16 is widened to: if so many do that it pays to write it to
  /// memory instead of to a block that stays in a cache (with half a megabyte for each, 0.86 to
  /// 0.97 of the time; with one, up to 1.13), and unless that of one group of heads takes too much.
  bool widens() const {
    return pairs_ == nullptr && args_.keys.has_bits() && args_.values.has_bits() &&
           meetings() >= 4 && widened_bytes() <= meetings() << 19 &&
           key_heads_of(1) * widened_bytes() <= shared_bytes;
  }
  Index widened_bytes() const {
    return Index{sizeof(T)} * args_.key_count() * (args_.head_dim() + args_.value_dim());
  }
  Index groups_together() const {
    const Index all = args_.batch() * groups_;
    const Index bytes = widens() ? widened_bytes() : 2 * args_.key_count() * args_.value_dim();
    if (!(turns() || widens()) || bytes == 0) return larger(1, all);
    const Index most = widens() ? near_bytes * threads_ : shared_bytes;
    return larger(1, smaller(all, most / bytes * args_.sharing() / group_));
  }
  /// How many key heads some groups of heads can meet.
  Index key_heads_of(Index groups) const {
    return smaller(args_.batch() * args_.kv_heads(),
                   parts_of(groups * group_, args_.sharing()) + 1);
  }

  QueryBlockPass<T> pass(Index item, Index head, Index row) const {
    return QueryBlockPass<T>(args_, mask_, pairs_, item, head, row, rows_from(row), step_,
                             turned_.empty() ? nullptr : &turned_,
                             widened_.empty() ? nullptr : &widened_);
  }
  Index rows_from(Index row) const {
    return smaller(simd::query_block, parts_of(args_.query_count() - row, step_));
  }

  const AttentionArgs<T>& args_;
  const MaskRef& mask_;
  const simd::PairKernels<T>* pairs_;
  Index step_;
  Index blocks_;
  Index group_;
  Index groups_;
  Index threads_;
  Index together_;  // groups of heads that share at a time
  TurnedValues<T> turned_;
  WidenedKeys<T> widened_;
  bool announces_;  // whether each pass prefetches for the one that follows
};

// How a plan is made. -----------------------------------------------------------------------------

/// From this many bytes of keys and values on, other threads help a decoding call to read them.
inline constexpr double parallel_bytes = 1 << 20;
/// As many last queries take less time with keys in their lanes than as a vector with gaps.
inline constexpr Index most_last_queries = 4;
/// Calls with more queries never have keys in their lanes.
inline constexpr Index most_decoded_queries = 40;

template <class T>
double work_of(const AttentionArgs<T>& args) {
  return static_cast<double>(args.batch() * args.heads()) *
         static_cast<double>(args.query_count()) * static_cast<double>(args.key_count()) *
         static_cast<double>(args.head_dim() + args.value_dim());
}

/// Decides about bfloat16 pairs and tiles.
template <class T>
void plan_arithmetic(const AttentionArgs<T>& args, AttentionPlan& plan) {
  if (!args.keys.is_bfloat16()) return;
  if (!args.queries.is_bfloat16()) {
    plan.why_arithmetic = "bfloat16 keys and values are widened to the scalar type of the queries";
  } else if (args.pairs == nullptr) {
    plan.why_arithmetic =
        "this instruction set has no bfloat16 products: bfloat16 numbers are multiplied in float";
  } else if (!fits_pairs(args)) {
    plan.why_arithmetic =
        "scores are modified, or scaled by less than 1e-6: bfloat16 numbers are multiplied in "
        "float";
  } else if (plan.isa == simd::Isa::avx512_bf16) {
    plan.arithmetic = AttentionPlan::Arithmetic::bfloat16_pairs;
    plan.why_arithmetic = "all numbers are bfloat16, and the CPU multiplies bfloat16 pairs";
  } else {
    plan.arithmetic = AttentionPlan::Arithmetic::bfloat16_tiles;
    plan.why_arithmetic = plan.isa == simd::Isa::amx
                              ? "all numbers are bfloat16, and the CPU multiplies bfloat16 tiles"
                              : "all numbers are bfloat16, and its tiles are imitated, for tests";
  }
}

/// Whether a task may take several heads that share a key head.
template <class T>
bool shares_keys(const AttentionArgs<T>& args, const MaskRef& mask) {
  return args.heads() > args.kv_heads() && !mask.depends_on_head();
}

/// Whether vector lanes hold keys. With queries in the lanes, 1 to 16 queries cost the same. With
/// keys there, each query costs 4/3 of a sixteenth of that, or less where heads share keys (Zen 5).
/// So up to 12 queries have keys in the lanes, and 17 to 24, and 33 to 36, but not 16 or 30.
template <class T>
bool decodes(const AttentionArgs<T>& args, const MaskRef& mask) {
  const Index queries = args.query_count();
  if (simd::decode_kernels<T>().attend == nullptr || queries > most_decoded_queries) return false;
  if (queries > 2 && args.key_count() < 4 * queries) return false;  // few lanes would have keys
  return shares_keys(args, mask) || 4 * queries <= 3 * rounded_up(queries, most_lanes);
}

/// Keys in the lanes, chunk by chunk.
template <class T>
void plan_decoding(const AttentionArgs<T>& args, const MaskRef& mask, AttentionPlan& plan) {
  plan.lanes = AttentionPlan::Lanes::keys;
  plan.why = "few queries: vector lanes hold keys";
  if (shares_keys(args, mask)) {
    plan.grouping = AttentionPlan::Grouping::shared_keys;
    plan.heads = smaller(args.sharing(), decode_rows / args.query_count());
  }
  const double tokens =
      static_cast<double>(args.batch() * args.kv_heads()) * static_cast<double>(args.key_count());
  const double bytes = tokens * static_cast<double>(args.head_dim() + args.value_dim()) * sizeof(T);
  if (bytes >= parallel_bytes || work_of(args) >= parallel_threshold) plan.threads = thread_count();
}

/// Queries in the lanes. One head at a time keeps its keys in the caches; heads are grouped where
/// sharing the mask's answers is worth it, in groups that leave every thread about four tasks.
template <class T>
void plan_blocks(const AttentionArgs<T>& args, const MaskRef& mask, AttentionPlan& plan) {
  constexpr Index fewest_rows = 32;  // of a block, before its empty lanes cost more than its keys
  const Index heads = args.heads(), step = mask.query_step();
  plan.why = "blocks of queries meet blocks of keys";
  if (mask.shares_lane_words() && heads > 1) {
    const Index each = args.batch() * parts_of(args.query_count(), simd::query_block);
    const Index groups = each == 0 ? 1 : smaller(heads, parts_of(4 * thread_count(), each));
    plan.grouping = AttentionPlan::Grouping::shared_mask;
    plan.heads = parts_of(heads, groups);
    plan.why = "blocks of queries meet blocks of keys; the mask is asked once for several heads";
  }
  if (step > 1 && step <= args.query_count() / fewest_rows && !args.score_mods.any()) {
    plan.row_step = step;
    plan.why = "blocks of queries a step of the mask apart leave out keys that none of them sees";
  }
}

/// How many of the last queries, which would fill a part of a vector, have keys in their lanes
/// instead. A second pass over keys and values must not read memory again.
template <class T>
Index last_queries_of(const AttentionArgs<T>& args, const AttentionPlan& plan) {
  const Index queries = args.query_count(), last = queries % most_lanes;
  const bool in_two = queries > most_lanes && last <= most_last_queries && plan.row_step == 1 &&
                      plan.arithmetic != AttentionPlan::Arithmetic::bfloat16_tiles &&
                      !args.score_mods.any() && !args.exceeds_caches() &&
                      simd::decode_kernels<T>().attend != nullptr;
  return in_two ? last : 0;
}

/// Calls use(args, plan) for the blocks of queries of such a plan, and then for its last queries.
template <class T, class Use>
void in_two(const AttentionArgs<T>& args, const MaskRef& mask, const AttentionPlan& plan,
            const Use& use) {
  const Index count = args.query_count(), first = count - plan.last_queries;
  AttentionPlan blocks = plan;
  blocks.last_queries = blocks.tasks = 0;
  use(queries_of(args, 0, first), blocks);
  AttentionPlan last;
  last.isa = plan.isa;
  last.arithmetic = plan.arithmetic;
  const auto last_args = queries_of(args, first, count);
  plan_decoding(last_args, mask, last);
  last.threads = plan.threads;
  use(last_args, last);
}

/// Number of tasks in a planned call; with keys in the lanes, those of Decode.
template <class T>
Index tasks_of(const AttentionArgs<T>& args, const MaskRef& mask, const AttentionPlan& plan) {
  if (plan.last_queries > 0) {
    Index tasks = 0;
    in_two(args, mask, plan, [&](const AttentionArgs<T>& some, const AttentionPlan& own) {
      tasks += tasks_of(some, mask, own);
    });
    return tasks;
  }
  if (plan.lanes == AttentionPlan::Lanes::keys) {
    return args.batch() * args.kv_heads() * parts_of(args.sharing(), plan.heads) *
           parts_of(args.key_count(), simd::key_chunk);
  }
  const bool whole = plan.grouping == AttentionPlan::Grouping::one_kernel_call;
  return args.batch() * parts_of(args.heads(), plan.heads) *
         (whole ? 1 : plan.row_step * ForwardTasks<T>::blocks_per_residue(args, plan.row_step));
}

template <class T>
AttentionPlan plan_of(const AttentionArgs<T>& args, const MaskRef& mask) {
  AttentionPlan plan;
  plan.isa = simd::active();
  if (args.empty()) return plan;
  plan_arithmetic(args, plan);
  if (work_of(args) >= parallel_threshold) plan.threads = thread_count();
  if (ShortForward<T>::fits(args)) {
    plan.grouping = AttentionPlan::Grouping::one_kernel_call;
    plan.heads = heads_together(args.batch(), args.heads(), mask);
    plan.why =
        "short sequences: the mask is asked once for several heads, and kernels take all keys of a "
        "head, or of several heads, at a time";
  } else if (decodes(args, mask)) {
    plan_decoding(args, mask, plan);
  } else {
    plan_blocks(args, mask, plan);
    plan.last_queries = last_queries_of(args, plan);
  }
  plan.tasks = tasks_of(args, mask, plan);
  return plan;
}

// How a plan is followed. -------------------------------------------------------------------------

template <class T>
void run_planned(const AttentionArgs<T>& args, const MaskRef& mask, const AttentionPlan& plan) {
  // Blocks meet keys many times, so these are rounded once; decoding reads them once.
  if (args.rounds() && plan.lanes == AttentionPlan::Lanes::queries) {
    const RoundedCall<T> copies(args, pairs_of(args, plan) != nullptr);
    return run_planned(copies.args(), mask, plan);
  }
  if (plan.last_queries > 0) {
    return in_two(args, mask, plan, [&](const AttentionArgs<T>& some, const AttentionPlan& own) {
      run_planned(some, mask, own);
    });
  }
  const bool shared = plan.threads > 1;
  const Index tasks = plan.tasks > 0 ? plan.tasks : tasks_of(args, mask, plan);
  if (plan.grouping == AttentionPlan::Grouping::one_kernel_call) {
    const ShortForward<T> heads(args, mask, plan.heads);
    return share_out(shared, tasks, [&](Index task) { heads.run(task); });
  }
  if (plan.lanes == AttentionPlan::Lanes::keys) {
    HEED_EXPECTS(plan.heads * args.query_count() <= decode_rows);
    const Decode<T> decode(args, mask, pairs_of(args, plan), plan.heads);
    share_out(shared, tasks, [&](Index task) { decode.take_chunk(task); });
    return share_out(work_of(args) >= parallel_threshold, args.batch() * args.heads(),
                     [&](Index head) { decode.finish(head); });
  }
  ForwardTasks<T> blocks(args, mask, plan);
  blocks.share_all(shared, tasks, [&](Index task) { blocks.run(task); });
}

template <class T>
void run_attention(const AttentionArgs<T>& args, const MaskRef& mask) {
  run_planned(args, mask, plan_of(args, mask));
}

template <class T>
void attend(const std::type_identity_t<Operand<T>>& queries,
            const std::type_identity_t<Operand<T>>& keys,
            const std::type_identity_t<Operand<T>>& values,
            const std::type_identity_t<Result<T>>& out, const AttentionOptions<T>& options,
            const MaskRef& mask) {
  const auto args = checked_args<T>(queries, keys, values, out, options);
  check_mask_fits(mask, args);
  run_attention(args, mask);
}

// A call whose keys arrive one after another. -----------------------------------------------------

/// The plan of such a call: queries in the lanes, blocks of consecutive rows.
template <class T>
AttentionPlan plan_of_paused(const AttentionArgs<T>& args, const MaskRef& mask) {
  AttentionPlan plan;
  plan_arithmetic(args, plan);
  plan_blocks(args, mask, plan);
  plan.row_step = 1;
  plan.tasks = tasks_of(args, mask, plan);
  return plan;
}

template <class T>
void take_keys(const AttentionArgs<T>& args, const MaskRef& mask, Index first, Index end,
               PausedRows<T>& rows, FunctionRef<void()> between) {
  if (args.empty()) return;
  const AttentionPlan plan = plan_of_paused(args, mask);
  ForwardTasks<T> blocks(args, mask, plan);
  const pthread_t caller = pthread_self();
  blocks.share_all(true, plan.tasks, [&](Index task) {
    blocks.for_each_block(task, [&](QueryBlockPass<T>& pass, Index item, Index head, Index row) {
      const Index index = rows.index_of(args, item, head, row);
      pass.take(first, end, rows.state(index), rows.begun(index));
    });
    if (pthread_equal(caller, pthread_self()) != 0) between();
  });
}

template <class T>
void write_rows(const AttentionArgs<T>& args, const MaskRef& mask, PausedRows<T>& rows) {
  if (args.empty()) return;
  const AttentionPlan plan = plan_of_paused(args, mask);
  const ForwardTasks<T> blocks(args, mask, plan);
  parallel_for(plan.tasks, [&](Index task) {
    blocks.for_each_block(task, [&](QueryBlockPass<T>& pass, Index item, Index head, Index row) {
      const Index index = rows.index_of(args, item, head, row);
      pass.write(rows.state(index), rows.begun(index));
    });
  });
}

// A call whose chunks of keys lie in several processes. -------------------------------------------

/// Calls use(pass, item, row) for every head of the batch, with all its queries, of which the first
/// is row `row` of ChunkRows.
template <class T, class Use>
void for_each_head(const AttentionArgs<T>& args, const MaskRef& mask,
                   const simd::PairKernels<T>* pairs, const Use& use) {
  HEED_EXPECTS(args.query_count() <= simd::query_block);
  if (args.empty()) return;
  parallel_for(args.batch() * args.heads(), [&](Index i) {
    const Index item = i / args.heads(), head = i % args.heads();
    QueryBlockPass<T> pass(args, mask, pairs, item, head, 0, args.query_count());
    use(pass, item, i * args.query_count());
  });
}

template <class T>
void take_chunks(const AttentionArgs<T>& args, const MaskRef& mask, ChunkRows<T>& rows) {
  if (args.empty()) return;
  AttentionPlan plan;
  plan.isa = simd::active();
  plan_arithmetic(args, plan);
  if (decodes(args, mask)) {
    plan_decoding(args, mask, plan);
    const Decode<T> decode(args, mask, pairs_of(args, plan), plan.heads, &rows);
    return share_out(plan.threads > 1, decode.tasks(),
                     [&](Index task) { decode.take_chunk(task); });
  }
  for_each_head(args, mask, pairs_of(args, plan),
                [&](QueryBlockPass<T>& pass, Index item, Index row) {
                  for (Index i = 0; i < rows.count(); ++i) {
                    const Index first = rows.chunk(i) * simd::key_chunk;
                    if (first < args.key_count_of(item)) pass.run_chunk(first, rows.states(i, row));
                  }
                });
}

template <class T>
void add_chunks(const AttentionArgs<T>& args, const MaskRef& mask, Index first, Index end,
                bool begun, ChunkRows<T>& rows) {
  for_each_head<T>(args, mask, nullptr, [&](QueryBlockPass<T>& pass, Index item, Index row) {
    bool pass_begun = false;
    if (begun) pass.add(rows.total(row), pass_begun);
    for (Index i = first; i < end; ++i) {
      if (rows.chunk(i) * simd::key_chunk >= args.key_count_of(item)) break;
      pass.add(rows.states(i, row), pass_begun);
    }
    pass.store(rows.total(row), pass_begun);
  });
}

template <class T>
void write_total(const AttentionArgs<T>& args, const MaskRef& mask, ChunkRows<T>& rows) {
  for_each_head<T>(args, mask, nullptr, [&](QueryBlockPass<T>& pass, Index, Index row) {
    bool begun = false;
    pass.add(rows.total(row), begun);
    pass.write(begun);
  });
}

template <class T>
bool may_see(const AttentionArgs<T>& args, const MaskRef& mask, Index first, Index end) {
  const Index heads = mask.depends_on_head() ? args.heads() : smaller(args.heads(), 1);
  for (Index item = 0; item < args.batch(); ++item) {
    const Index last = smaller(end, args.key_count_of(item)) - 1;
    for (Index head = 0; last >= first && head < heads; ++head) {
      for (Index row = 0; row < args.query_count(); row += simd::query_block) {
        const Index count = smaller(simd::query_block, args.query_count() - row);
        const Tile tile = tile_of(args, item, head, row, count, first, last);
        if (mask.coverage(tile) != Coverage::none) return true;
      }
    }
  }
  return false;
}

template <class T>
void run_weights(const AttentionArgs<T>& args, const MaskRef& mask, Index item, Index head,
                 Index row, const TensorView<T, 2>& out) {
  const Index rows = out.extent(0);
  parallel_for(parts_of(rows, simd::query_block), [&](Index block) {
    const Index first = block * simd::query_block, end = smaller(first + simd::query_block, rows);
    QueryBlockPass<T>(args, mask, nullptr, item, head, row + first, end - first)
        .run_weights(out.slice(0, first, end));
  });
}

#if defined(HEED_COMPILED_SOURCE)
#define HEED_CODE_OF_ATTENTION(T)                                                                 \
  template AttentionPlan plan_of(const AttentionArgs<T>&, const MaskRef&);                        \
  template void run_planned(const AttentionArgs<T>&, const MaskRef&, const AttentionPlan&);       \
  template void run_attention(const AttentionArgs<T>&, const MaskRef&);                           \
  template void attend(const Operand<T>&, const Operand<T>&, const Operand<T>&, const Result<T>&, \
                       const AttentionOptions<T>&, const MaskRef&);                               \
  template void take_keys(const AttentionArgs<T>&, const MaskRef&, Index, Index, PausedRows<T>&,  \
                          FunctionRef<void()>);                                                   \
  template void write_rows(const AttentionArgs<T>&, const MaskRef&, PausedRows<T>&);              \
  template void take_chunks(const AttentionArgs<T>&, const MaskRef&, ChunkRows<T>&);              \
  template void add_chunks(const AttentionArgs<T>&, const MaskRef&, Index, Index, bool,           \
                           ChunkRows<T>&);                                                        \
  template void write_total(const AttentionArgs<T>&, const MaskRef&, ChunkRows<T>&);              \
  template bool may_see(const AttentionArgs<T>&, const MaskRef&, Index, Index);                   \
  template void run_weights(const AttentionArgs<T>&, const MaskRef&, Index, Index, Index,         \
                            const TensorView<T, 2>&);
HEED_CODE_OF_ATTENTION(float)
HEED_CODE_OF_ATTENTION(double)
#undef HEED_CODE_OF_ATTENTION
#endif

}  // namespace heed::detail
