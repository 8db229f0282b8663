// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstdint>
#include <limits>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/backward_pass.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/attention/detail/score_gradients.hpp>
#include <heed/attention/detail/short_sequences.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

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
        last_member_(args.group()) {}
  /// One part of a call: adds to the gradients that are there.
  BackwardTasks(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardPart& part,
                const FunctionRef<void()>& between)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        rows_(args),
        chunks_(parts_of(part.end_key - part.first_key, backward_chunk)),
        kv_heads_(call_.batch() * args.kv_heads()),
        adds_(true),
        between_(&between),
        first_chunk_(part.first_key / backward_chunk),
        first_member_(part.member),
        last_member_(part.member + 1) {}

  void run_alone() {
    make_groups(kv_heads_, 1);
    for (Index i = 0; i < groups_; ++i) run_group(i);
    run_score_mods();
  }

  /// Computes one key head on its own, as the fallback of ShortBackward.
  void run_one(Index key_head) {
    whole_ = kv_heads_;
    group_size_ = 1;
    groups_of_item_ = args_.kv_heads();
    run_group(key_head);
  }

  void run() {
    run_heads();
    run_score_mods();
  }

  /// The same for a part of a call.
  void run_part() {
    parallel_for(rows_.count(), [&](Index i) {
      const Index head = i / rows_.blocks() % call_.heads();
      if (head % args_.group() == first_member_) rows_.fill(i);
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
  /// parallel_for with what runs between the tasks of a part.
  void share_out(Index count, FunctionRef<void(Index)> body) const {
    const pthread_t caller = pthread_self();
    parallel_for(count, [&](Index i) {
      body(i);
      if (adds_ && pthread_equal(caller, pthread_self()) != 0) (*between_)();
    });
  }

  /// Computes the gradients of score modifications, where wanted.
  void run_score_mods() const {
    const auto& more = args_.more;
    if (more.grad_bias.given()) {
      const BiasGradient<T> bias(args_, mask_, rows_);
      parallel_for(bias.tasks(), [&](Index i) { bias.run(i); });
    }
    if (more.grad_relative_bias.extent(1) > 0 || !more.grad_alibi_slopes.empty()) {
      const DistanceGradients<T> distances(args_, mask_, rows_);
      parallel_for(distances.tasks(), [&](Index i) { distances.run(i); });
      distances.finish();
    }
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
      share_out(groups_, [&](Index i) { run_group(i); });
      return;
    }
    const Index wave = smaller(4 * threads, tasks);
    take_shares(wave);
    for (Index member = first_member_; member < last_member_; ++member) {
      for (Index first = 0; first < tasks; first += wave) {
        const Index end = smaller(first + wave, tasks);
        const Index before = member == first_member_ && first == 0 ? groups_ : 0;
        clear_written(end - first);
        share_out(before + end - first, [&](Index i) {
          i < before ? run_group(i) : run_task(member, first + i - before, i - before);
        });
        add_shares(member, first, end);
      }
    }
  }

  KeyChunkPass<T> pass(Index key_head, Index chunk) const {
    const Index first = (first_chunk_ + chunk) * backward_chunk;
    const Index left = call_.key_count() - first;
    return KeyChunkPass<T>(args_, mask_, rows_, key_head / args_.kv_heads(),
                           key_head % args_.kv_heads(), first,
                           first + smaller(left, backward_chunk));
  }
  /// The query head number `member` among those that share a key head.
  Index head_of(Index key_head, Index member) const {
    return key_head % args_.kv_heads() * args_.group() + member;
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
    const bool share = mask_.shares_lane_words() && (end - first) * args_.group() > 1;
    SharedLaneWords shared(share ? rows_.blocks() * (backward_chunk / simd::key_block) : 0);
    // Without keys nothing else clears the gradients of queries.
    for (Index key_head = first; key_head < end && chunks_ == 0; ++key_head) begin_head(key_head);
    for (Index chunk = 0; chunk < chunks_; ++chunk) {
      shared.forget();
      for (Index key_head = first; key_head < end; ++key_head) {
        if (chunk == 0 && !adds_) begin_head(key_head);
        auto one = pass(key_head, chunk);
        if (share) one.share(shared);
        const Index next = key_head + 1 < end ? key_head + 1 : first_of(group + threads_);
        simd::ComingRows<T> coming;
        if (announces_ && next < whole_) {
          coming = coming_head(args_, next / args_.kv_heads(), next % args_.kv_heads(), tiles());
          one.announce(coming);
        }
        adds_ ? one.resume() : one.begin();
        for (Index member = first_member_; member < last_member_; ++member) {
          one.take_head(head_of(key_head, member), {});
        }
        adds_ ? one.pause() : one.finish();
      }
    }
  }

  /// The first key head of a group.
  Index first_of(Index group) const {
    return group / groups_of_item_ * args_.kv_heads() + group % groups_of_item_ * group_size_;
  }
  /// Whether the pass of one whole head prefetches the next head, which nears the second-level
  /// cache at most halfway.
  bool can_announce() const {
    constexpr Index half = Index{512} << 10;
    const Index rows = 4 * (call_.query_count() + call_.key_count());
    return chunks_ == 1 && args_.group() == 1 && !adds_ && args_.pairs == nullptr &&
           call_.queries.is_view() && call_.keys.is_view() && call_.values.is_view() &&
           rows * larger(call_.head_dim(), call_.value_dim()) * Index{sizeof(T)} <= half &&
           call_.exceeds_caches();
  }
  /// The number of tiles of a head: of scores, then of the gradients of keys and of values.
  Index tiles() const {
    return 3 * parts_of(simd::key_block, 6) * parts_of(call_.query_count(), simd::query_block) *
           parts_of(call_.key_count(), simd::key_block);
  }

  /// Number of blocks of queries that meet one key head.
  Index rows_of_head() const { return args_.group() * rows_.blocks(); }
  /// What comes before the first chunk of a whole key head, whose queries stay in the caches.
  void begin_head(Index key_head) const {
    for (Index i = 0; i < rows_of_head(); ++i) {
      rows_.fill(key_head * rows_of_head() + i);
      clear(key_head, i / rows_.blocks(), i % rows_.blocks());
    }
  }

  /// One chunk of one split key head and one of its query heads, with the share `slot`.
  void run_task(Index member, Index task, Index slot) const {
    auto one = pass(whole_ + task / chunks_, task % chunks_);
    member == 0 && !adds_ ? one.begin() : one.resume();
    one.take_head(head_of(whole_ + task / chunks_, member),
                  {shares_ + slot * share_size(), written_ + slot * rows_.blocks()});
    member + 1 == args_.group() && !adds_ ? one.finish() : one.pause();
  }

  Index share_size() const { return call_.query_count() * call_.head_dim(); }
  void take_shares(Index wave) {
    divide_scratch<BackwardTasks>([&](Carver& carver) {
      shares_ = carver.take<T>(wave * share_size());
      written_ = carver.take<unsigned char>(wave * rows_.blocks());
    });
  }
  void clear_written(Index count) const {
    for (Index i = 0; i < count * rows_.blocks(); ++i) written_[i] = 0;
  }

  /// grad_queries += the shares of the tasks [first, end), in order; starts from 0 where a head's
  /// first chunk is among them.
  void add_shares(Index member, Index first, Index end) const {
    const Index first_head = first / chunks_, last_head = (end - 1) / chunks_;
    parallel_for((last_head - first_head + 1) * rows_.blocks(), [&](Index i) {
      const Index head = first_head + i / rows_.blocks(), block = i % rows_.blocks();
      const Index from = head * chunks_ < first ? first : head * chunks_;
      const Index to = (head + 1) * chunks_ < end ? (head + 1) * chunks_ : end;
      if (from == head * chunks_ && !adds_) clear(whole_ + head, member, block);
      for (Index task = from; task < to; ++task) {
        if (written_[(task - first) * rows_.blocks() + block] == 0) continue;
        put_block(whole_ + head, member, block, shares_ + (task - first) * share_size());
      }
    });
  }

  struct Block {
    T* data;
    Index row;
    Index rows;
  };
  Block block_of(Index key_head, Index member, Index block) const {
    const auto& out = args_.grad_queries;
    const Index row = block * simd::query_block, left = call_.query_count() - row;
    return {out.data_handle() + key_head / args_.kv_heads() * out.stride(0) +
                head_of(key_head, member) * out.stride(1) + row * out.stride(2),
            row, smaller(left, simd::query_block)};
  }
  void put_block(Index key_head, Index member, Index block, const T* share) const {
    const Block to = block_of(key_head, member, block);
    simd::backward_kernels<T>().put_rows(
        share + to.row * call_.head_dim(), call_.head_dim(), to.rows, call_.head_dim(), T{1}, true,
        to.data, args_.grad_queries.stride(2), args_.grad_queries.stride(3));
  }
  void clear(Index key_head, Index member, Index block) const {
    const auto& out = args_.grad_queries;
    const Block to = block_of(key_head, member, block);
    for (Index i = 0; i < to.rows; ++i) {
      T* row = to.data + i * out.stride(2);
      if (out.stride(3) == 1) {
        clear_numbers(row, call_.head_dim());
        continue;
      }
      for (Index d = 0; d < call_.head_dim(); ++d) row[d * out.stride(3)] = T{0};
    }
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
};

/// A call that rounds its numbers, as the forward call did.
template <class T>
void run_rounded_backward(const BackwardArgs<T>& args, const MaskRef& mask) {
  const RoundingKernels<T>& kernels = *args.forward.rounding;
  BackwardArgs<T> rounded = args;
  if (multiplies_pairs(args.forward)) {
    rounded.pairs = kernels.pair_gradients();
    rounded.narrow_grad_output =
        Operand<T>(args.grad_output).rounded(kernels.conversions(), args.forward.pairs);
    return run_backward(rounded, mask);
  }
  const RoundedCall<T> copies(args.forward, false);
  rounded.forward = copies.args();
  run_backward(rounded, mask);
}

template <class T>
void run_backward(const BackwardArgs<T>& args, const MaskRef& mask) {
  if (args.forward.rounds() && args.pairs == nullptr) return run_rounded_backward(args, mask);
  const auto& call = args.forward;
  const double work = static_cast<double>(call.batch() * call.heads()) *
                      static_cast<double>(call.query_count()) *
                      static_cast<double>(call.key_count()) *
                      static_cast<double>(3 * call.head_dim() + 2 * call.value_dim());
  const bool alone = work < parallel_threshold;
#if HEED_SIMD_ALL_KERNELS
  if (ShortBackward<T>::take(args)) {
    auto fallback = [&](Index head) { BackwardTasks<T>(args, mask).run_one(head); };
    const ShortBackward<T> heads(args, mask, alone ? 1 : thread_count(), fallback);
    for (Index i = 0; alone && i < heads.count(); ++i) heads.run(i);
    if (!alone) parallel_for(heads.count(), [&](Index i) { heads.run(i); });
    return;
  }
#endif
  BackwardTasks<T> tasks(args, mask);
  alone ? tasks.run_alone() : tasks.run();
}

template <class T>
void add_backward_part(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardPart& part,
                       FunctionRef<void()> between) {
  if (args.forward.batch() == 0 || part.end_key <= part.first_key) return;
  BackwardTasks<T>(args, mask, part, between).run_part();
}

template <class T>
void finish_key_gradients(const BackwardArgs<T>& args, const MaskRef& mask,
                          const BackwardPart& part) {
  if (part.end_key <= part.first_key) return;
  const auto nothing = [] {};
  const FunctionRef<void()> between(nothing);
  BackwardTasks<T>(args, mask, part, between).finish_keys();
}

#ifdef HEED_COMPILED_SOURCE
template void add_backward_part<float>(const BackwardArgs<float>&, const MaskRef&,
                                       const BackwardPart&, FunctionRef<void()>);
template void add_backward_part<double>(const BackwardArgs<double>&, const MaskRef&,
                                        const BackwardPart&, FunctionRef<void()>);
template void finish_key_gradients<float>(const BackwardArgs<float>&, const MaskRef&,
                                          const BackwardPart&);
template void finish_key_gradients<double>(const BackwardArgs<double>&, const MaskRef&,
                                           const BackwardPart&);
template void run_backward<float>(const BackwardArgs<float>&, const MaskRef&);
template void run_backward<double>(const BackwardArgs<double>&, const MaskRef&);
#endif

}  // namespace heed::detail
