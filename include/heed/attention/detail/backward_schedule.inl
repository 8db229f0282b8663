// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/backward_pass.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

// Gradients of score modifications: biases, relative biases, ALiBi slopes, sinks. Each is a sum
// over scores that several heads, items or queries share, in double and in an order that no number
// of threads changes.

/// The gradient of a bias whose elements are added to several scores. The scores are computed a
/// second time: a task computes one tile of the gradient, at most query_block by backward_chunk,
/// from all scores the tile applies to.
template <class T>
class BiasGradient {
 public:
  BiasGradient(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardRows<T>& rows)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        rows_(rows),
        kernels_(simd::backward_kernels<T>()),
        out_(args.more.grad_bias.view()),
        blocks_(out_.extent(2) == 1 ? 1 : rows.blocks()),
        chunks_(out_.extent(3) == 1 ? 1 : parts_of(call_.key_count(), backward_chunk)) {}

  Index tasks() const { return out_.extent(0) * out_.extent(1) * blocks_ * chunks_; }

  void run(Index task) const {
    const Place place = place_of(task);
    constexpr Index size = simd::query_block * backward_chunk;
    double* sums = nullptr;
    divide_scratch<BiasGradient>([&](Carver& carver) { sums = carver.take<double>(size); });
    clear_numbers(sums, size);
    const auto scratch = backward_scratch(call_, kernels_.row_lanes);
    PreparedQueries<T> queries(args_, rows_);
    for (Index item = place.items.first; item < place.items.end; ++item) {
      for (Index head = place.heads.first; head < place.heads.end; ++head) {
        for (Index block = place.blocks.first; block < place.blocks.end; ++block) {
          add(item, head, block * simd::query_block, place.keys, scratch, queries, sums);
        }
      }
    }
    write(place, sums);
  }

 private:
  struct Range {
    Index first = 0;
    Index end = 0;
  };
  struct Place {
    Range items, heads, blocks, keys;
  };

  /// One index of an axis, or all of them if the bias is broadcast along it.
  static Range along(Index extent, Index index, Index all) {
    return extent == 1 ? Range{0, all} : Range{index, index + 1};
  }
  Place place_of(Index task) const {
    const Index chunk = task % chunks_, block = task / chunks_ % blocks_;
    const Index head = task / chunks_ / blocks_ % out_.extent(1);
    const Index item = task / chunks_ / blocks_ / out_.extent(1);
    const Index first = chunk * backward_chunk;
    const Index end = out_.extent(3) == 1 ? call_.key_count() : first + backward_chunk;
    return {along(out_.extent(0), item, call_.batch()), along(out_.extent(1), head, call_.heads()),
            along(out_.extent(2), block, rows_.blocks()),
            Range{first, smaller(end, call_.key_count())}};
  }

  /// Adds the score gradients of one block of queries and some keys to `sums`, [key][lane], or, if
  /// the bias is broadcast along the keys, [lane].
  void add(Index item, Index head, Index row, const Range& keys, const BackwardScratch<T>& scratch,
           PreparedQueries<T>& queries, double* sums) const {
    const Index count = smaller(call_.query_count() - row, simd::query_block);
    const std::uint64_t seeing = rows_.seeing(rows_.index_of(item, head, row));
    const Index step = out_.extent(3) == 1 ? 0 : simd::query_block;
    bool met = false;
    const auto ask = [&](Index key, Index last) {
      const Tile tile = tile_of(call_, item, head, row, count, key, last);
      return keys_seen_by(visible_keys(mask_, tile, scratch.words), count, seeing, scratch.words);
    };
    const auto use = [&](const VisibleKeys& seen, Index, Index) {
      if (!met) queries.prepare(scratch, item, head, row, count);
      met = true;
      const Index key_head = call_.key_head(head);
      simd::KeyBlock<T> block{call_.keys.rows(item, key_head, seen.first),
                              call_.values.rows(item, key_head, seen.first), seen.count, seen.words,
                              false};
      queries.attach(block, seen.first, nullptr);
      kernels_.grad_scores(block, queries.block(false));
      kernels_.add_in_double(queries.bias_grads(), seen.count, count,
                             sums + (seen.first - keys.first) * step, step);
    };
    for_each_visible(Coverage::partial, keys.first, smaller(keys.end, call_.key_count_of(item)),
                     ask, use);
  }

  void write(const Place& place, double* sums) const {
    const Index item = out_.extent(0) == 1 ? 0 : place.items.first;
    const Index head = out_.extent(1) == 1 ? 0 : place.heads.first;
    const Index row = out_.extent(2) == 1 ? 0 : place.blocks.first * simd::query_block;
    const Index key = out_.extent(3) == 1 ? 0 : place.keys.first;
    const Index keys = out_.extent(3) == 1 ? 1 : place.keys.end - place.keys.first;
    for (Index j = 0; out_.extent(2) == 1 && j < keys; ++j) {
      double* const lanes = sums + j * simd::query_block;
      for (Index i = 1; i < simd::query_block; ++i) lanes[0] += lanes[i];
    }
    const Index rows = smaller(out_.extent(2) - row, simd::query_block);
    put_bias(args_, item, head, row, rows, key, keys, sums);
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T>& rows_;
  const simd::BackwardKernels<T>& kernels_;
  const TensorView<T, 4>& out_;
  Index blocks_;
  Index chunks_;
};

/// The gradient of the sinks. A sink is a key without a value, so its dP is 0 and every query
/// contributes −P · delta, in the order of the queries.
template <class T>
void run_sink_gradients(const BackwardArgs<T>& args, const BackwardRows<T>& rows) {
  const auto& call = args.forward;
  const auto& given = args.more.grad_log_sum_exp;
  for (Index head = 0; head < call.heads(); ++head) {
    const auto index = static_cast<std::size_t>(head);
    const T given_sink = call.score_mods.sinks[index + static_cast<std::size_t>(call.head_offset)];
    const T sink = static_cast<T>(static_cast<double>(given_sink) * bits_per_nat);
    double total = 0;
    for (Index item = 0; item < call.batch(); ++item) {
      for (Index row = 0; row < call.query_count(); ++row) {
        const Index block = rows.index_of(item, head, row), lane = row % simd::query_block;
        if ((rows.seeing(block) >> lane & 1) == 0) continue;
        T weight = sink - rows.log_sum_exp(block)[lane], delta = rows.delta(block)[lane];
        simd::kernels<T>().exp2(&weight, &weight, 1);
        const bool silent = (rows.silent(block) >> lane & 1) != 0;
        if (silent) delta = given.given() ? -given.view()(item, head, row) : T{0};
        total -= static_cast<double>(weight) * static_cast<double>(delta);
      }
    }
    args.more.grad_sinks[index] = static_cast<T>(total);
  }
}

// The schedule. -----------------------------------------------------------------------------------

/// The schedule of a backward call over threads. Where key heads are plenty, each is one task, so
/// that its chunks of keys add to grad_queries in order. The last heads are split: every chunk is a
/// task with its own share of grad_queries, and the shares are added in the order of the chunks.
/// Both ways add the same numbers in the same order.
template <class T>
class BackwardTasks {
 public:
  BackwardTasks(const BackwardArgs<T>& args, const MaskRef& mask)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        rows_(args),
        chunks_(parts_of(call_.key_count(), backward_chunk)),
        kv_heads_(call_.batch() * args.kv_heads()),
        last_member_(args.sharing()) {}
  /// One part of a call: adds to the gradients that are there.
  BackwardTasks(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardPart& part,
                const FunctionRef<void()>* between = nullptr)
      : BackwardTasks(args, mask) {
    adds_ = true;
    between_ = between;
    chunks_ = parts_of(part.end_key - part.first_key, backward_chunk);
    first_chunk_ = part.first_key / backward_chunk;
    first_member_ = part.member;
    last_member_ = part.member + 1;
  }

  /// On the calling thread alone, or on all.
  void run(bool alone) {
    if (args_.sums_distances()) distances_.emplace(args_);
    const Index threads = alone ? 1 : thread_count();
    const bool by_heads = adds_bias_of_items(threads);
    if (by_heads) {
      make_groups(kv_heads_, threads);
      for (Index i = 0; alone && i < args_.kv_heads(); ++i) run_items(i);
      if (!alone) parallel_for(args_.kv_heads(), [&](Index i) { run_items(i); });
    } else if (alone) {
      make_groups(kv_heads_, 1);
      for (Index i = 0; i < groups_; ++i) run_group(i);
    } else {
      run_heads();
    }
    run_score_mods(by_heads);
  }
  /// Computes one key head, as the fallback of ShortBackward.
  void run_one(Index key_head) {
    whole_ = kv_heads_;
    group_size_ = 1;
    groups_of_item_ = args_.kv_heads();
    run_group(key_head);
  }

  /// Computes a part of a call.
  void run_part() {
    parallel_for(rows_.count(), [&](Index i) {
      if (i / rows_.blocks() % args_.sharing() == first_member_) rows_.fill(i);
    });
    run_heads();
  }
  /// Scales the gradients of keys that `pause` has written.
  void finish_keys() const {
    parallel_for(kv_heads_ * chunks_, [&](Index i) {
      const auto one = pass(i / chunks_, i % chunks_);
      one.resume();
      one.finish();
    });
  }

 private:
  /// parallel_for; in a part, the calling thread calls `between` after each of its tasks.
  void for_each_task(Index count, FunctionRef<void(Index)> body) const {
    const pthread_t caller = pthread_self();
    parallel_for(count, [&](Index i) {
      body(i);
      if (adds_ && pthread_equal(caller, pthread_self()) != 0) (*between_)();
    });
  }

  /// Whether a task for all items of a key head adds the gradient of a bias that they share, as
  /// there are enough key heads for `threads`. Without such tasks it has the same bits.
  bool adds_bias_of_items(Index threads) const {
    const Index heads = args_.kv_heads();
    return args_.bias_of_items() && chunks_ > 0 && args_.sharing() > 0 &&
           2 * parts_of(heads, threads) * threads <= 3 * heads;
  }
  /// A key head of all items, chunk by chunk, for the gradient of a bias that these share.
  void run_items(Index head) const {
    const Index blocks = rows_.blocks(), members = args_.sharing();
    constexpr Index size = simd::query_block * backward_chunk;
    double* sums = nullptr;
    divide_scratch<BiasGradient<T>>(
        [&](Carver& carver) { sums = carver.take<double>(blocks * size); });
    for (Index i = 0; i < chunks_ * members; ++i) {
      const Index chunk = i / members, member = i % members;
      clear_numbers(sums, blocks * size);
      for (Index item = 0; item < call_.batch(); ++item) {
        const Index key_head = item * args_.kv_heads() + head;
        if (i == 0) begin_head(key_head);
        auto one = pass(key_head, chunk);
        simd::ComingRows coming;
        announce(one, item + 1 < call_.batch() ? key_head + args_.kv_heads() : whole_, coming);
        member == 0 ? one.begin() : one.resume();
        take_head(one, key_head, chunk, member, sums);
        member + 1 == members ? one.finish() : one.pause();
      }
      const Index key = chunk * backward_chunk;
      for (Index block = 0; block < blocks; ++block) {
        const Index row = block * simd::query_block;
        put_bias(args_, 0, head_of(head, member), row,
                 smaller(call_.query_count() - row, simd::query_block), key,
                 smaller(call_.key_count() - key, backward_chunk), sums + block * size);
      }
    }
  }

  /// Computes the gradients of score modifications that the passes have not.
  void run_score_mods(bool has_bias) const {
    const auto& more = args_.more;
    if (more.grad_bias.given() && !has_bias && !args_.bias_of_each_score()) {
      const BiasGradient<T> bias(args_, mask_, rows_);
      parallel_for(bias.tasks(), [&](Index i) { bias.run(i); });
    }
    if (distances_) distances_->finish();
    if (!more.grad_sinks.empty()) run_sink_gradients(args_, rows_);
  }

  void run_heads() {
    const Index threads = thread_count();
    const Index split = chunks_ < 2 || threads == 1 ? 0 : kv_heads_ % threads + threads;
    make_groups(kv_heads_ > split ? kv_heads_ - split : 0, threads);
    const Index tasks = (kv_heads_ - whole_) * chunks_;
    if (!adds_) {
      const Index first = whole_ * rows_of_head();
      parallel_for(rows_.count() - first, [&](Index i) { rows_.fill(first + i); });
    }
    if (tasks == 0) {
      for_each_task(groups_, [&](Index i) { run_group(i); });
      return;
    }
    const Index wave = smaller(4 * threads, tasks);
    take_shares(wave);
    for (Index member = first_member_; member < last_member_; ++member) {
      for (Index first = 0; first < tasks; first += wave) {
        const Index end = smaller(first + wave, tasks);
        const Index before = member == first_member_ && first == 0 ? groups_ : 0;
        for (Index i = 0; i < (end - first) * rows_.blocks(); ++i) written_[i] = 0;
        for_each_task(before + end - first, [&](Index i) {
          i < before ? run_group(i) : run_task(member, first + i - before, i - before);
        });
        add_shares(member, first, end);
      }
    }
  }

  KeyChunkPass<T> pass(Index key_head, Index chunk) const {
    const Index first = (first_chunk_ + chunk) * backward_chunk;
    const Index left = call_.key_count() - first;
    return KeyChunkPass<T>(args_, mask_, rows_, item_of(key_head), key_head % args_.kv_heads(),
                           first, first + smaller(left, backward_chunk));
  }
  /// The query head number `member` among those that share a key head.
  Index head_of(Index key_head, Index member) const {
    return key_head % args_.kv_heads() * args_.sharing() + member;
  }

  /// Groups the first `whole` key heads, which are not split. One head at a time keeps its queries
  /// in the caches; heads of an item are grouped where sharing the mask's answers is worth it.
  void make_groups(Index whole, Index threads) {
    const Index heads = args_.kv_heads();
    whole_ = whole;
    threads_ = threads;
    announces_ = can_announce();
    group_size_ = 1;
    if (mask_.shares_lane_words() && heads > 0) {
      const Index wanted = threads == 1 ? 1 : 2 * threads;
      const Index each = parts_of(whole, wanted);
      group_size_ = each < 1 ? 1 : each < heads ? each : heads;
    }
    groups_of_item_ = parts_of(heads, group_size_);
    groups_ =
        heads == 0 ? 0 : whole / heads * groups_of_item_ + parts_of(whole % heads, group_size_);
  }

  /// A group of whole key heads, chunk by chunk: the cached mask answers are those of one chunk.
  void run_group(Index group) const {
    const Index item_end = (group / groups_of_item_ + 1) * args_.kv_heads();
    const Index first = first_of(group);
    const Index end = smaller(smaller(first + group_size_, item_end), whole_);
    const bool share = mask_.shares_lane_words() && (end - first) * args_.sharing() > 1;
    SharedLaneWords shared(share ? rows_.blocks() * (backward_chunk / simd::key_block) : 0);
    // Without keys nothing else clears the gradients of queries.
    for (Index key_head = first; key_head < end && chunks_ == 0; ++key_head) begin_head(key_head);
    for (Index chunk = 0; chunk < chunks_; ++chunk) {
      shared.forget();
      for (Index key_head = first; key_head < end; ++key_head) {
        if (chunk == 0 && !adds_) begin_head(key_head);
        auto one = pass(key_head, chunk);
        if (share) one.share(shared);
        simd::ComingRows coming;
        announce(one, key_head + 1 < end ? key_head + 1 : first_of(group + threads_), coming);
        adds_ ? one.resume() : one.begin();
        for (Index member = first_member_; member < last_member_; ++member) {
          take_head(one, key_head, chunk, member, nullptr);
        }
        adds_ ? one.pause() : one.finish();
      }
    }
  }

  /// Prefetches the key head `next`, if there is one, during a pass.
  void announce(KeyChunkPass<T>& one, Index next, simd::ComingRows& coming) const {
    if (!announces_ || next >= whole_) return;
    coming = coming_head(args_, item_of(next), next % args_.kv_heads(), steps());
    one.announce(coming);
  }
  /// Adds the queries of one head to a chunk of a whole key head.
  void take_head(KeyChunkPass<T>& one, Index key_head, Index chunk, Index member,
                 double* bias) const {
    double* const row = distances_ ? distances_->own_row() : nullptr;
    one.take_head(head_of(key_head, member), {nullptr, nullptr, row, bias});
    if (row != nullptr) add_distances(key_head, chunk, member, row);
  }
  void add_distances(Index key_head, Index chunk, Index member, const double* row) const {
    distances_->add(item_of(key_head), head_of(key_head, member), chunk * backward_chunk, row);
  }

  /// The first key head of a group.
  Index first_of(Index group) const {
    return group / groups_of_item_ * args_.kv_heads() + group % groups_of_item_ * group_size_;
  }
  /// Whether the pass of one whole head prefetches the next head, which then fills at most half of
  /// the second-level cache.
  bool can_announce() const {
    constexpr Index half = Index{512} << 10;
    const Index rows = 4 * (call_.query_count() + call_.key_count());
    return chunks_ == 1 && steps() > 0 && args_.sharing() == 1 && !adds_ &&
           exceeds_near_caches(args_) &&
           rows * larger(call_.head_dim(), call_.value_dim()) * Index{sizeof(T)} <= half;
  }
  /// The number of steps of a head: of scores, then of the gradients of keys and of values. In
  /// pairs, steps of PairBackwardKernel, at the least.
  Index steps() const {
    const Index blocks = parts_of(call_.query_count(), simd::query_block) *
                         parts_of(call_.key_count(), simd::key_block);
    return blocks * (args_.pairs != nullptr ? 4 : 3 * parts_of(simd::key_block, 6));
  }

  /// Number of blocks of queries that meet one key head.
  Index rows_of_head() const { return args_.sharing() * rows_.blocks(); }
  /// What comes before the first chunk of a whole key head, whose queries stay in the caches.
  void begin_head(Index key_head) const {
    for (Index i = 0; i < rows_of_head(); ++i) {
      rows_.fill(key_head * rows_of_head() + i);
      clear(key_head, i / rows_.blocks(), i % rows_.blocks());
    }
    for (Index member = 0; distances_ && member < args_.sharing(); ++member) {
      distances_->begin(item_of(key_head), head_of(key_head, member));
    }
  }

  /// One chunk of one split key head and one of its query heads, with the share `slot`.
  void run_task(Index member, Index task, Index slot) const {
    auto one = pass(whole_ + task / chunks_, task % chunks_);
    member == 0 && !adds_ ? one.begin() : one.resume();
    double* const row = distances_ ? distances_->cleared(rows_of_tasks_, slot) : nullptr;
    one.take_head(head_of(whole_ + task / chunks_, member),
                  {shares_ + slot * share_size(), written_ + slot * rows_.blocks(), row});
    member + 1 == args_.sharing() && !adds_ ? one.finish() : one.pause();
  }

  Index share_size() const { return call_.query_count() * call_.head_dim(); }
  void take_shares(Index wave) {
    divide_scratch<BackwardTasks>([&](Carver& carver) {
      shares_ = carver.take<T>(wave * share_size());
      written_ = carver.take<unsigned char>(wave * rows_.blocks());
      rows_of_tasks_ = carver.take<double>(distances_ ? wave * distances_->row() : 0);
    });
  }

  /// grad_queries += the shares of the tasks [first, end), in order; starts from 0 where a head's
  /// first chunk is among them.
  void add_shares(Index member, Index first, Index end) const {
    const Index first_head = first / chunks_, last_head = (end - 1) / chunks_;
    parallel_for((last_head - first_head + 1) * rows_.blocks(), [&](Index i) {
      const Index head = first_head + i / rows_.blocks(), block = i % rows_.blocks();
      const Index from = larger(head * chunks_, first), to = smaller((head + 1) * chunks_, end);
      if (from == head * chunks_ && !adds_) clear(whole_ + head, member, block);
      if (distances_ && block == 0) add_rows(whole_ + head, member, first, from, to);
      for (Index task = from; task < to; ++task) {
        if (written_[(task - first) * rows_.blocks() + block] == 0) continue;
        put_block(whole_ + head, member, block, shares_ + (task - first) * share_size());
      }
    });
  }

  /// The same for the sums over distances, from the rows of the tasks [from, to) of one head.
  void add_rows(Index key_head, Index member, Index first, Index from, Index to) const {
    if (from % chunks_ == 0) distances_->begin(item_of(key_head), head_of(key_head, member));
    for (Index task = from; task < to; ++task) {
      add_distances(key_head, task % chunks_, member,
                    rows_of_tasks_ + (task - first) * distances_->row());
    }
  }

  Index item_of(Index key_head) const { return key_head / args_.kv_heads(); }
  void put_block(Index key_head, Index member, Index block, const T* share) const {
    const Index row = block * simd::query_block, left = call_.query_count() - row;
    put_rows(args_.grad_queries, item_of(key_head), head_of(key_head, member), row,
             share + row * call_.head_dim(), call_.head_dim(), smaller(left, simd::query_block),
             T{1}, true);
  }
  void clear(Index key_head, Index member, Index block) const {
    const Index row = block * simd::query_block;
    clear_rows(args_.grad_queries, item_of(key_head), head_of(key_head, member), row,
               smaller(row + simd::query_block, call_.query_count()));
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T> rows_;
  Index chunks_;
  Index kv_heads_;   // over the whole batch
  Index whole_ = 0;  // key heads that are not split
  Index groups_ = 0;
  Index groups_of_item_ = 0;
  Index group_size_ = 1;  // key heads
  Index threads_ = 1;
  bool announces_ = false;  // whether heads are prefetched
  bool adds_ = false;       // to gradients that are there: a part of a call
  const FunctionRef<void()>* between_ = nullptr;
  Index first_chunk_ = 0;
  Index first_member_ = 0;
  Index last_member_;
  T* shares_ = nullptr;
  unsigned char* written_ = nullptr;
  double* rows_of_tasks_ = nullptr;
  std::optional<DistanceGradients<T>> distances_;  // where wanted
};

/// A call of bfloat16 numbers, stored or rounded, as the forward call took them.
template <class T>
void run_bfloat16_backward(const BackwardArgs<T>& args, const MaskRef& mask) {
  BackwardArgs<T> other = args;
  if (args.forward.rounds() && multiplies_pairs(args.forward)) {
    const RoundingKernels<T>& kernels = *args.forward.rounding;
    other.pairs = kernels.pair_gradients();
    other.narrow_grad_output =
        Operand<T>(args.grad_output).rounded(kernels.conversions(), args.forward.pairs);
    return run_backward(other, mask);
  }
  const RoundedCall<T> copies(args.forward, false);
  other.forward = copies.args();
  run_backward(other, mask);
}

template <class T>
void run_backward(const BackwardArgs<T>& args, const MaskRef& mask) {
  if (args.forward.keys.is_bfloat16() && args.pairs == nullptr) {
    return run_bfloat16_backward(args, mask);
  }
  const auto& call = args.forward;
  const double work = static_cast<double>(call.batch() * call.heads()) *
                      static_cast<double>(call.query_count()) *
                      static_cast<double>(call.key_count()) *
                      static_cast<double>(3 * call.head_dim() + 2 * call.value_dim());
  const bool alone = work < parallel_threshold;
#if HEED_SIMD_ALL_KERNELS
  if (ShortBackward<T>::fits(args)) {
    auto fallback = [&](Index head) { BackwardTasks<T>(args, mask).run_one(head); };
    const ShortBackward<T> heads(args, mask, alone ? 1 : thread_count(), fallback);
    for (Index i = 0; alone && i < heads.count(); ++i) heads.run(i);
    if (!alone) parallel_for(heads.count(), [&](Index i) { heads.run(i); });
    return;
  }
#endif
  BackwardTasks<T>(args, mask).run(alone);
}

template <class T>
void add_backward_part(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardPart& part,
                       FunctionRef<void()> between) {
  if (args.forward.batch() == 0 || part.end_key <= part.first_key) return;
  BackwardTasks<T>(args, mask, part, &between).run_part();
}

template <class T>
void finish_key_gradients(const BackwardArgs<T>& args, const MaskRef& mask,
                          const BackwardPart& part) {
  if (part.end_key <= part.first_key) return;
  BackwardTasks<T>(args, mask, part).finish_keys();
}

#ifdef HEED_COMPILED_SOURCE
#define HEED_CODE_OF_BACKWARD(T)                                                               \
  template void run_backward(const BackwardArgs<T>&, const MaskRef&);                          \
  template void add_backward_part(const BackwardArgs<T>&, const MaskRef&, const BackwardPart&, \
                                  FunctionRef<void()>);                                        \
  template void finish_key_gradients(const BackwardArgs<T>&, const MaskRef&, const BackwardPart&);
HEED_CODE_OF_BACKWARD(float)
HEED_CODE_OF_BACKWARD(double)
#undef HEED_CODE_OF_BACKWARD
#endif

}  // namespace heed::detail
