// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/backward_pass.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/forward_pass.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

/// Number of heads of a batch item in one task: as many as share the mask's answers while every
/// thread still has about four tasks.
inline Index heads_together(Index batch, Index heads, const MaskRef& mask) {
  constexpr Index most = 16;
  if (mask.depends_on_head() || batch == 0) return 1;
  const Index groups = parts_of(4 * thread_count(), batch);
  const Index each = parts_of(heads, groups);
  return smaller(each, most);
}

/// The schedule of calls with short sequences, at most one block of queries and one of keys. Here
/// the per-block work of the other schedules would cost more than the attention itself, so the mask
/// is asked once for all heads of a batch item, and one kernel call takes many heads. The same
/// bits.
template <class T>
class ShortForward {
 public:
  /// `group` heads go into one kernel call.
  ShortForward(const AttentionArgs<T>& args, const MaskRef& mask, Index group)
      : args_(args), mask_(mask), group_(group) {}

  /// Whether ShortForward takes a call, or copies of its rounded numbers.
  static bool take(const AttentionArgs<T>& args) {
    const bool copied = args.rounds() && !multiplies_pairs(args);
    const auto in_place = [&](const Operand<T>& each) { return copied || each.is_view(); };
    // For fewer than four queries over many keys, keys in the lanes are faster.
    const bool pays = args.query_count() >= 4 || args.key_count() <= 16;
    return pays && args.query_count() <= simd::query_block && args.key_count() > 0 &&
           args.key_count() <= simd::key_block && !args.score_mods.any() &&
           args.score_mods.sinks.empty() && in_place(args.queries) && in_place(args.keys) &&
           in_place(args.values) && simd::short_forward_kernels<T>().attend;
  }

  void run(Index index) const {
    const Index item = index / groups(), head = index % groups() * group_;
    const Index left = args_.heads() - head, heads = left < group_ ? left : group_;
    std::uint64_t* words = nullptr;
    auto call = call_with_arrays(words);
    const Index keys = args_.key_count_of(item);
    const Tile tile = tile_of(args_, item, head, 0, args_.query_count(), 0, keys - 1);
    const VisibleKeys seen = keys == 0 ? VisibleKeys{} : visible_keys(mask_, tile, words);
    if (seen.count == 0 || seen.holes) {
      for (Index each = head; each < head + heads; ++each) {
        QueryBlockPass<T>(args_, mask_, nullptr, item, each, 0, args_.query_count()).run();
      }
      return;
    }
    choose_heads(call, item, head, heads, seen);
    simd::ComingRows<T> coming;
    if (args_.exceeds_caches()) call.coming = &coming;
    simd::short_forward_kernels<T>().attend(call);
    if (args_.log_sum_exp.given()) write_log_sum_exp(item, call);
  }

 private:
  Index groups() const { return parts_of(args_.heads(), group_); }

  /// A kernel call with this thread's arrays, and memory for the mask's answers in `words`. Lanes
  /// past the last query fill up whole vectors of up to 16 numbers.
  simd::ShortForwardArgs<T> call_with_arrays(std::uint64_t*& words) const {
    simd::ShortForwardArgs<T> call;
    divide_scratch<ShortForward>([&](Carver& carver) {
      call.packed = carver.take<T>(16 * args_.head_dim());
      call.probabilities = carver.take<T>(16 * simd::key_block);
      call.output = carver.take<T>(16 * args_.value_dim());
      call.tail = carver.take<T>(16 * simd::key_block);
      call.maximum = carver.take<T>(group_ * simd::query_block);
      call.sum = carver.take<T>(group_ * simd::query_block);
      words = carver.take<std::uint64_t>(simd::key_block);
    });
    return call;
  }

  void choose_heads(simd::ShortForwardArgs<T>& run, Index item, Index head, Index heads,
                    const VisibleKeys& seen) const {
    const auto& p = args_;
    run.queries = p.queries.rows(item, head, 0);
    run.keys = p.keys.rows(item, p.key_head(head), seen.first);
    run.values = p.values.rows(item, p.key_head(head), seen.first);
    run.out = p.out.rows(item, head, 0);
    run.query_head = p.queries.stride(1);
    run.key_head = p.keys.stride(1);
    run.value_head = p.values.stride(1);
    run.out_head = p.out.stride(1);
    run.out_row = p.out.stride(2);
    run.out_column = p.out.stride(3);
    run.heads = heads;
    run.first_head = head;
    run.sharing = p.heads() / p.keys.extent(1);
    run.query_count = p.query_count();
    run.key_count = seen.count;
    run.head_dim = p.head_dim();
    run.value_dim = p.value_dim();
    run.query_factor = query_factor(p);
    run.words = seen.words;
  }

  void write_log_sum_exp(Index item, const simd::ShortForwardArgs<T>& run) const {
    const auto& view = args_.log_sum_exp.view();
    for (Index i = 0; i < run.heads; ++i) {
      for (Index row = 0; row < args_.query_count(); ++row) {
        const Index at = i * simd::query_block + row;
        view(item, run.first_head + i, row) = log_sum_exp_of(run.maximum[at], run.sum[at]);
      }
    }
  }

  const AttentionArgs<T>& args_;
  const MaskRef& mask_;
  Index group_;
};

// The backward pass. ------------------------------------------------------------------------------

/// The backward pass of a call with short sequences, the counterpart of ShortForward: the mask is
/// asked once for all heads of a batch item, and every head is one kernel call. The same bits.
template <class T>
class ShortBackward {
 public:
  /// `fallback(key_head)` computes one key head, numbered over the batch, that a kernel refuses.
  ShortBackward(const BackwardArgs<T>& args, const MaskRef& mask, Index threads,
                FunctionRef<void(Index)> fallback)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        fallback_(fallback),
        group_(heads_together(call_.batch(), call_.heads(), mask)),
        threads_(threads) {}

  /// Whether ShortBackward takes a call.
  static bool take(const BackwardArgs<T>& args) {
    const auto& call = args.forward;
    const auto& more = args.more;
    const auto together = [](const auto& tensor) { return tensor.stride(3) == 1; };
    return args.pairs == nullptr && call.query_count() > 0 &&
           call.query_count() <= simd::query_block && call.key_count() > 0 &&
           call.key_count() <= simd::key_block && args.group() == 1 && !call.score_mods.any() &&
           call.score_mods.sinks.empty() && !more.grad_log_sum_exp.given() &&
           together(call.queries) && together(call.keys) && together(call.values) &&
           together(args.output) && together(args.grad_output) && together(args.grad_queries) &&
           together(args.grad_keys) && together(args.grad_values);
  }

  Index count() const { return call_.batch() * groups(); }

  void run(Index index) const {
    const Index item = index / groups(), head = index % groups() * group_;
    const Index left = call_.heads() - head, end = head + (left < group_ ? left : group_);
    std::uint64_t* words = nullptr;
    T* log_sum_exp = nullptr;
    auto task = task_with_arrays(words, log_sum_exp);
    const Index keys = call_.key_count_of(item);
    const Tile tile = tile_of(call_, item, head, 0, call_.query_count(), 0, keys - 1);
    const VisibleKeys seen = keys == 0 ? VisibleKeys{} : visible_keys(mask_, tile, words);
    std::uint64_t anyone = lanes_between(0, call_.query_count() - 1);
    if (seen.words != nullptr) {
      anyone = 0;
      for (Index i = 0; i < seen.count; ++i) anyone |= seen.words[i];
    }
    for (Index each = head; each < end; ++each) {
      const bool plain = seen.count > 0 && !seen.holes;
      if (!plain || (anyone & ~take_log_sum_exp(item, each, log_sum_exp)) != 0 ||
          !backward(task, index, each, end, seen)) {
        fallback_(item * call_.heads() + each);
        continue;
      }
      clear_keys(item, each, 0, seen.first);
      clear_keys(item, each, seen.first + seen.count, call_.key_count());
    }
  }

 private:
  /// A kernel call with this thread's arrays, and memory for the mask's answers and for a
  /// log-sum-exp. A vector holds up to 16 numbers.
  simd::ShortBackwardArgs<T> task_with_arrays(std::uint64_t*& words, T*& log_sum_exp) const {
    simd::ShortBackwardArgs<T> task;
    divide_scratch<ShortBackward>([&](Carver& carver) {
      task.packed_queries = carver.take<T>(16 * call_.head_dim());
      task.packed_gradient = carver.take<T>(16 * call_.value_dim());
      task.probabilities = carver.take<T>(simd::key_block * simd::query_block);
      task.grad_scores = carver.take<T>(simd::key_block * simd::query_block);
      task.key_tail = carver.take<T>(simd::key_block * 16);
      task.query_tail = carver.take<T>(simd::query_block * 16);
      task.gradient_tail = carver.take<T>(simd::query_block * 16);
      task.log_sum_exp = log_sum_exp = carver.take<T>(simd::query_block);
      words = carver.take<std::uint64_t>(simd::key_block);
    });
    return task;
  }

  Index groups() const { return parts_of(call_.heads(), group_); }

  /// One head of task `index`, which ends with head `end`; see ShortBackwardKernels.
  bool backward(simd::ShortBackwardArgs<T>& task, Index index, Index head, Index end,
                const VisibleKeys& seen) const {
    choose_head(task, index / groups(), head, seen);
    const bool more = head + 1 < end;
    const Index later = index + threads_;  // what this thread takes next, if all take turns
    const Index item = (more ? index : later) / groups();
    simd::ComingRows<T> coming;
    if (call_.exceeds_caches() && item < call_.batch()) {
      coming = coming_head(args_, item, more ? head + 1 : later % groups() * group_, tiles());
      task.coming = &coming;
    }
    const bool taken = simd::short_backward_kernels<T>().backward(task);
    task.coming = nullptr;
    return taken;
  }
  /// The number of tiles of a head under a causal mask: scores of 16 queries and 8 keys, then three
  /// products of 6 rows.
  Index tiles() const {
    const Index groups = parts_of(call_.query_count(), 16);
    return groups * (groups + 1) + 3 * parts_of(call_.key_count(), 6);
  }

  /// Copies the log-sum-exp of the head, in units of log2; returns one bit per query that saw a
  /// key.
  std::uint64_t take_log_sum_exp(Index item, Index head, T* to) const {
    std::uint64_t seeing = 0;
    for (Index i = 0; i < call_.query_count(); ++i) {
      const T value = args_.log_sum_exp(item, head, i);
      const bool sees = !(value == -std::numeric_limits<T>::infinity());
      seeing |= static_cast<std::uint64_t>(sees) << i;
      to[i] = sees ? static_cast<T>(static_cast<double>(value) * bits_per_nat) : T{0};
    }
    for (Index i = call_.query_count(); i < simd::query_block; ++i) to[i] = T{0};
    return seeing;
  }

  static T* row_of(const TensorView<T, 4>& tensor, Index item, Index head, Index row) {
    return tensor.data_handle() + item * tensor.stride(0) + head * tensor.stride(1) +
           row * tensor.stride(2);
  }

  void choose_head(simd::ShortBackwardArgs<T>& task, Index item, Index head,
                   const VisibleKeys& seen) const {
    task.queries = call_.queries.rows(item, head, 0);
    task.keys = call_.keys.rows(item, head, seen.first);
    task.values = call_.values.rows(item, head, seen.first);
    task.output = strided_rows(args_.output, item, head, 0);
    task.grad_output = strided_rows(args_.grad_output, item, head, 0);
    task.grad_queries = row_of(args_.grad_queries, item, head, 0);
    task.grad_keys = row_of(args_.grad_keys, item, head, seen.first);
    task.grad_values = row_of(args_.grad_values, item, head, seen.first);
    task.grad_query_row = args_.grad_queries.stride(2);
    task.grad_key_row = args_.grad_keys.stride(2);
    task.grad_value_row = args_.grad_values.stride(2);
    task.words = seen.words;
    task.query_count = call_.query_count();
    task.key_count = seen.count;
    task.head_dim = call_.head_dim();
    task.value_dim = call_.value_dim();
    task.query_factor = query_factor(call_);
    task.scale = call_.scale;
  }

  /// Sets the gradients of keys that no query sees to 0.
  void clear_keys(Index item, Index head, Index first, Index end) const {
    for (Index key = first; key < end; ++key) {
      T* of_key = row_of(args_.grad_keys, item, head, key);
      T* of_value = row_of(args_.grad_values, item, head, key);
      for (Index d = 0; d < call_.head_dim(); ++d) of_key[d] = T{0};
      for (Index d = 0; d < call_.value_dim(); ++d) of_value[d] = T{0};
    }
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  FunctionRef<void(Index)> fallback_;
  Index group_;
  Index threads_;
};

}  // namespace heed::detail
