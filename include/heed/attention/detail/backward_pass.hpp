// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pairs.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/detail/program_code.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>

namespace heed::detail {

// Queries, prepared for the backward kernels. -----------------------------------------------------

/// Per-query data that the backward pass computes before any key: the log-sum-exp in units of log2,
/// delta = Σ dO·O − the gradient of the log-sum-exp, and whether the query saw a key or a sink.
/// O(queries) memory of the calling thread.
template <class T>
class BackwardRows {
 public:
  explicit BackwardRows(const BackwardArgs<T>& args)
      : args_(args),
        kernels_(simd::backward_kernels<T>()),
        blocks_(parts_of(args.forward.query_count(), simd::query_block)) {
    divide_scratch<BackwardRows>([&](Carver& carver) {
      log_sum_exp_ = carver.take<T>(count() * simd::query_block);
      delta_ = carver.take<T>(count() * simd::query_block);
      seeing_ = carver.take<std::uint64_t>(count());
      silent_ = carver.take<std::uint64_t>(count());
    });
  }

  /// Number of query blocks in one head, and in all heads.
  Index blocks() const { return blocks_; }
  Index count() const { return args_.forward.batch() * args_.forward.heads() * blocks_; }

  /// The index, among the `count`, of the block that holds row `row` of a head.
  Index index_of(Index item, Index head, Index row) const {
    return (item * args_.forward.heads() + head) * blocks_ + row / simd::query_block;
  }

  /// Fills in block `index` of the `count`.
  void fill(Index index) const {
    const auto& call = args_.forward;
    const Index item = index / blocks_ / call.heads();
    const Index head = index / blocks_ % call.heads();
    const Index row = index % blocks_ * simd::query_block;
    const Index rows = smaller(call.query_count() - row, simd::query_block);
    T* lse = log_sum_exp_ + index * simd::query_block;
    T* delta = delta_ + index * simd::query_block;
    silent_[index] = find_dots(item, head, row, rows, delta);
    seeing_[index] = take_log_sum_exp(args_, item, head, row, rows, lse);
    const auto& more = args_.more.grad_log_sum_exp;
    for (Index i = 0; more.given() && i < rows; ++i) delta[i] -= more.view()(item, head, row + i);
    for (Index i = rows; i < simd::query_block; ++i) delta[i] = T{0};
  }

  const T* log_sum_exp(Index index) const { return log_sum_exp_ + index * simd::query_block; }
  const T* delta(Index index) const { return delta_ + index * simd::query_block; }
  /// One bit per query of the block: whether it saw a key or a sink.
  std::uint64_t seeing(Index index) const { return seeing_[index]; }
  /// One bit per query of the block: whether its output is exactly 0, as when it saw no key but a
  /// sink.
  std::uint64_t silent(Index index) const { return silent_[index]; }

 private:
  /// Computes Σ dO · O of every row; returns the rows whose output is 0.
  std::uint64_t find_dots(Index item, Index head, Index row, Index rows, T* delta) const {
    const auto& call = args_.forward;
    const auto scratch = backward_scratch(call, kernels_.row_lanes);
    const Index columns = call.value_dim(), padded = scratch.value_row;
    simd::MatrixRef<T> gradient{scratch.grad_output, padded};
    if (args_.narrow_grad_output.rounds()) {
      args_.narrow_grad_output.read(item, head, row, rows, 1, scratch.grad_output, padded);
    } else {
      gradient = whole_rows(strided_rows(args_.grad_output, item, head, row), rows, columns,
                            scratch.grad_output, padded);
    }
    // packed_gradient is not in use yet, and as large.
    const auto output = whole_rows(strided_rows(args_.output, item, head, row), rows, columns,
                                   scratch.packed_gradient, padded);
    kernels_.row_dots(gradient, output, rows, padded, delta);
    std::uint64_t silent = 0;
    for (Index i = 0; i < rows; ++i) {
      const T* of_row = output.data + i * output.row_stride;
      bool zero = true;
      for (Index d = 0; zero && d < columns; ++d) zero = of_row[d] == T{0};
      silent |= static_cast<std::uint64_t>(zero) << i;
    }
    return silent;
  }

  const BackwardArgs<T>& args_;
  const simd::BackwardKernels<T>& kernels_;
  Index blocks_;
  T* log_sum_exp_ = nullptr;
  T* delta_ = nullptr;
  std::uint64_t* seeing_ = nullptr;
  std::uint64_t* silent_ = nullptr;
};

/// A block of queries prepared for the backward kernels: rows padded to whole vectors, and the same
/// rows transposed.
template <class T>
class PreparedQueries {
 public:
  PreparedQueries(const BackwardArgs<T>& args, const BackwardRows<T>& rows)
      : args_(args), rows_(rows), kernels_(simd::kernels<T>()) {}

  /// Prepares rows [row, row + count) of one head in the arrays of `scratch`; the gradient starts
  /// at 0.
  void prepare(const BackwardScratch<T>& scratch, Index item, Index head, Index row, Index count) {
    const auto& call = args_.forward;
    const Index head_dim = call.head_dim(), value_dim = call.value_dim();
    count_ = count;
    queries_ =
        aligned(call.queries.rows(item, head, row), head_dim, scratch.queries, scratch.head_row);
    gradient_ = aligned(strided_rows(args_.grad_output, item, head, row), value_dim,
                        scratch.grad_output, scratch.value_row);
    if (call.score_mods.any()) {
      tile_ = divided_scratch<ForwardScratch<T>, void>(0, 0, true);
      score_mods_.emplace(call, *tile_, item, head, row, count);
      first_ = position_of(call, item, head, row, 0);
    }
    kernels_.pack(queries_, count, head_dim, query_factor(call), scratch.packed_queries);
    kernels_.pack(gradient_, count, value_dim, T{1}, scratch.packed_gradient);
    clear_numbers(scratch.grad_queries, head_dim * simd::query_block);
    const Index index = rows_.index_of(item, head, row);
    block_ = {queries_.data,
              gradient_.data,
              scratch.packed_queries,
              scratch.packed_gradient,
              rows_.log_sum_exp(index),
              rows_.delta(index),
              scratch.probabilities,
              scratch.grad_scores,
              scratch.grad_queries,
              count,
              head_dim,
              value_dim,
              false,
              nullptr,
              nullptr,
              nullptr,
              coming_};
    if (wants_capped_grads()) {
      divide_scratch<PreparedQueries>([&](Carver& carver) {
        block_.capped_grads = carver.take<T>(simd::key_block * simd::query_block);
      });
    }
    checked_ = false;
  }

  /// Prefetches these rows while blocks are computed.
  void announce(simd::ComingRows& coming) { coming_ = &coming; }

  /// Attaches the score modifications, if any, to a block of keys. Key i of the block is key
  /// `first_key + (kept ? kept[i] : i)`.
  void attach(simd::KeyBlock<T>& block, Index first_key, const Index* kept) {
    if (!args_.forward.score_mods.any()) return;
    simd::QueryBlock<T> queries{block_.packed_queries, tile_->probabilities, tile_->scores, count_,
                                block_.head_dim,       block_.value_dim};
    score_mods_->attach(block, queries, first_key, kept);
    block_.scores = tile_->scores;
    if (args_.forward.score_mods.function.given()) find_slopes(block, queries);
  }

  /// After a kernel call, the score gradients as biases need them: with respect to the softcapped
  /// scores.
  T* bias_grads() const {
    return block_.capped_grads == nullptr ? block_.grad_scores : block_.capped_grads;
  }

  /// The block for a kernel call. A `partly` masked block is checked for NaN and Inf, which must
  /// not meet a 0 there.
  const simd::BackwardQueries<T>& block(bool partly) {
    if (partly && !checked_) {
      block_.guard_rows = !kernels_.all_finite(queries_, count_, block_.head_dim) ||
                          !kernels_.all_finite(gradient_, count_, block_.value_dim);
      checked_ = true;
    }
    return block_;
  }

 private:
  bool wants_capped_grads() const {
    return args_.forward.score_mods.softcap != T{0} &&
           (args_.more.grad_bias.given() || args_.sums_distances());
  }
  /// The derivatives of the score function at its input scores.
  void find_slopes(const simd::KeyBlock<T>& block, simd::QueryBlock<T> queries) {
    queries.scores = tile_->probabilities;
    kernels_.scores(block, queries);
    const Index lanes = kernels_.strip_lanes;
    const ProgramCode asked;
    args_.forward.score_mods.function.to_derivatives({queries.scores, lanes * simd::key_block,
                                                      lanes, score_mods_->keys(), block.count,
                                                      block.words, first_, count_});
    block_.slopes = queries.scores;
  }

  /// Rows in place if they are aligned whole vectors without gaps; otherwise copied to `to`.
  simd::MatrixRef<T> aligned(const simd::MatrixRef<T>& from, Index columns, T* to,
                             Index padded) const {
    const bool fits =
        from.row_stride == padded && reinterpret_cast<std::uintptr_t>(from.data) % 64 == 0;
    if (fits) return whole_rows(from, count_, columns, to, padded);
    copy_rows(from, count_, columns, to, padded);
    return {to, padded, 1};
  }

  const BackwardArgs<T>& args_;
  const BackwardRows<T>& rows_;
  const simd::Kernels<T>& kernels_;
  simd::MatrixRef<T> queries_;
  simd::MatrixRef<T> gradient_;
  simd::BackwardQueries<T> block_;
  std::optional<ForwardScratch<T>> tile_;
  std::optional<LaneScoreMods<T>> score_mods_;
  Position first_;  // of the first query
  Index count_ = 0;
  bool checked_ = false;
  simd::ComingRows* coming_ = nullptr;
};

// The fused backward pass around the kernels of kernels/: one chunk of keys meets the
// queries that see it. Nothing here depends on the instruction set.

/// The destination of one key chunk's contribution to the query gradient of one head: added to
/// grad_queries, or written to an array `own`, (queries, head_dim), with a flag in `written` for
/// every query block. Not null: the score gradient of query i and key j of the chunk is added to
/// distances[i − j + backward_chunk − 1], and to bias[block of i][j][lane of i].
template <class T>
struct QueryShare {
  T* own = nullptr;
  unsigned char* written = nullptr;
  double* distances = nullptr;
  double* bias = nullptr;
};

/// The fused backward pass over one chunk of keys of one key head.
template <class T>
class KeyChunkPass {
 public:
  /// Keys [first, end) of a key head. `first` is a multiple of backward_chunk; `end` is the next
  /// multiple or the end of the last key.
  KeyChunkPass(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardRows<T>& rows,
               Index item, Index key_head, Index first, Index end)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        rows_(rows),
        forward_kernels_(simd::kernels<T>()),
        kernels_(simd::backward_kernels<T>()),
        scratch_(backward_scratch(call_, kernels_.row_lanes)),
        item_(item),
        key_head_(key_head),
        first_(first),
        end_(end),
        queries_(args, rows),
        pairs_(args, scratch_),
        writes_bias_(args.bias_of_each_score()) {}

  /// Uses `shared` instead of the mask to find the visible keys of the chunk. Valid for one batch
  /// item and these keys, for any head.
  void share(SharedLaneWords& shared) { shared_ = &shared; }
  void announce(simd::ComingRows& coming) {
    queries_.announce(coming);
    pairs_.announce(coming);
  }

  /// Starts the gradients of keys and values: from 0, or from the values that `pause` wrote.
  void begin() const {
    clear_numbers(scratch_.chunk.keys, (end_ - first_) * scratch_.head_row);
    clear_numbers(scratch_.chunk.values, (end_ - first_) * scratch_.value_row);
  }
  void resume() const {
    const Index row = first_ - args_.key_offset;
    copy_rows<T>(strided_rows<T>(args_.grad_keys, item_, key_head_, row), end_ - first_,
                 call_.head_dim(), scratch_.chunk.keys, scratch_.head_row);
    copy_rows<T>(strided_rows<T>(args_.grad_values, item_, key_head_, row), end_ - first_,
                 call_.value_dim(), scratch_.chunk.values, scratch_.value_row);
  }

  /// Adds the queries of one head, block by block.
  void take_head(Index head, const QueryShare<T>& share) {
    head_ = head;
    share_ = share;
    for (Index block = 0; block < rows_.blocks(); ++block) {
      row_ = block * simd::query_block;
      row_count_ = smaller(call_.query_count() - row_, simd::query_block);
      if (!take_block()) continue;
      put_grad_queries();
      if (share.written != nullptr) share.written[block] = 1;
    }
  }

  /// `finish` writes the gradients of keys and values; `pause` writes them unscaled, for `resume`.
  void finish() const { put_chunk(call_.scale); }
  void pause() const { put_chunk(T{1}); }

 private:
  Tile tile(Index first_key, Index last_key) const {
    return tile_of(call_, item_, head_, row_, row_count_, first_key, last_key);
  }

  VisibleKeys visible(const Tile& part) const {
    if (shared_ == nullptr) return visible_keys(mask_, part, scratch_.words);
    constexpr Index blocks = backward_chunk / simd::key_block;
    return shared_->visible_keys(
        mask_, part,
        row_ / simd::query_block * blocks + (part.first_key - first_) / simd::key_block);
  }

  /// Processes one block of queries; false if none of them sees a key of the chunk.
  bool take_block() {
    next_of_bias_ = first_;
    const bool met = take_visible();
    if (writes_bias_) clear_bias_until(end_);
    return met;
  }
  bool take_visible() {
    const Index end = smaller(call_.key_count_of(item_), end_);
    if (end <= first_) return false;
    const std::uint64_t seeing = rows_.seeing(rows_.index_of(item_, head_, row_));
    bool met = false;
    for_each_visible(
        mask_.coverage(tile(first_, end - 1)), first_, end,
        [&](Index key, Index last) { return visible(tile(key, last)); },
        [&](const VisibleKeys& all, Index key, Index) {
          const VisibleKeys seen = keys_seen_by(all, row_count_, seeing, scratch_.words);
          if (seen.count == 0) return;
          if (!met) prepare_queries();
          met = true;
          pairs_ ? pairs_.add(key - first_, key, seen) : take_keys(seen);
        });
    return met;
  }

  void prepare_queries() {
    if (!pairs_) return queries_.prepare(scratch_, item_, head_, row_, row_count_);
    if (!has_pairs_) pairs_.take_keys(item_, key_head_, first_, end_);
    has_pairs_ = true;
    const Index index = rows_.index_of(item_, head_, row_);
    pairs_.take_queries(item_, head_, row_, row_count_, rows_.log_sum_exp(index),
                        rows_.delta(index));
  }

  void take_keys(const VisibleKeys& seen) {
    const Index row = seen.first - args_.key_offset;
    simd::KeyBlock<T> block{call_.keys.rows(item_, key_head_, row),
                            call_.values.rows(item_, key_head_, row), seen.count, seen.words,
                            false};
    const Index offset = seen.first - first_;
    const simd::KeyGradients<T> gradients{scratch_.chunk.keys + offset * scratch_.head_row,
                                          scratch_.chunk.values + offset * scratch_.value_row};
    if (seen.holes) return take_gathered(block, gradients, seen);
    queries_.attach(block, seen.first, nullptr);
    kernels_.backward(block, queries_.block(block.words != nullptr), gradients, guard_keys(block));
    use_score_gradients(seen.first, seen.count);
  }

  /// Whether biases need score gradients.
  bool wants_score_gradients() const {
    return share_.distances != nullptr || share_.bias != nullptr || writes_bias_;
  }
  /// Takes them from where a kernel has left them.
  void use_score_gradients(Index first, Index count) {
    if (!wants_score_gradients()) return;
    const T* const grads = queries_.bias_grads();
    const auto add = [&](double* sums, Index step) {
      kernels_.add_in_double(grads, count, row_count_, sums + (first - first_) * step, step);
    };
    if (share_.distances != nullptr) add(share_.distances + row_ + backward_chunk - 1, -1);
    if (share_.bias != nullptr) add(share_.bias + row_ * backward_chunk, simd::query_block);
    if (!writes_bias_) return;
    clear_bias_until(first);
    put_bias(args_, item_, head_, row_, row_count_, first, count, grads);
    next_of_bias_ = first + count;
  }
  /// Sets the gradient of the bias to 0 from its last keys on, for those that no query sees.
  void clear_bias_until(Index key) const {
    if (next_of_bias_ == key) return;
    clear_rows(args_.more.grad_bias.view().slice(3, next_of_bias_, key), item_, head_, row_,
               row_ + row_count_);
  }

  bool guard_keys(const simd::KeyBlock<T>& block) const {
    return block.words != nullptr &&
           !forward_kernels_.all_finite(block.keys, block.count, call_.head_dim());
  }

  /// Processes a range that contains keys no query sees: gathers the visible keys and their
  /// gradients so far, then scatters the gradients back.
  void take_gathered(simd::KeyBlock<T>& block, const simd::KeyGradients<T>& gradients,
                     const VisibleKeys& seen) {
    drop_unseen(block, scratch_.words, scratch_.kept);
    if (block.count == 0) return;
    gather_kept(block, scratch_.kept, call_.head_dim(), call_.value_dim(), scratch_.keys,
                scratch_.values);
    const Index head_row = scratch_.head_row, value_row = scratch_.value_row;
    const auto gather = [&](const T* from, Index columns, T* to) {
      gather_rows<T>({from, columns}, scratch_.kept, block.count, columns, to, columns);
    };
    gather(gradients.keys, head_row, scratch_.gathered.keys);
    gather(gradients.values, value_row, scratch_.gathered.values);
    queries_.attach(block, seen.first, scratch_.kept);
    kernels_.backward(block, queries_.block(block.words != nullptr), scratch_.gathered,
                      guard_keys(block));
    scatter_rows(scratch_.gathered.keys, scratch_.kept, block.count, gradients.keys, head_row);
    scatter_rows(scratch_.gathered.values, scratch_.kept, block.count, gradients.values, value_row);
    if (!wants_score_gradients()) return;
    spread_rows(queries_.bias_grads(), scratch_.kept, block.count, seen.count);
    use_score_gradients(seen.first, seen.count);
  }

  void put_grad_queries() const {
    const Index head_dim = call_.head_dim();
    if (share_.own != nullptr) {
      kernels_.unpack(scratch_.grad_queries, row_count_, head_dim, call_.scale,
                      share_.own + row_ * head_dim, head_dim);
      return;
    }
    kernels_.unpack(scratch_.grad_queries, row_count_, head_dim, call_.scale, scratch_.rows,
                    scratch_.head_row);
    put_rows(args_.grad_queries, item_, head_, row_, scratch_.rows, scratch_.head_row, row_count_,
             T{1}, true);
  }
  void put_chunk(T key_factor) const {
    const Index row = first_ - args_.key_offset;
    put_rows(args_.grad_keys, item_, key_head_, row, scratch_.chunk.keys, scratch_.head_row,
             end_ - first_, key_factor, false);
    put_rows(args_.grad_values, item_, key_head_, row, scratch_.chunk.values, scratch_.value_row,
             end_ - first_, T{1}, false);
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T>& rows_;
  const simd::Kernels<T>& forward_kernels_;
  const simd::BackwardKernels<T>& kernels_;
  BackwardScratch<T> scratch_;
  Index item_;
  Index key_head_;
  Index first_;
  Index end_;
  Index head_ = 0;
  QueryShare<T> share_;
  Index row_ = 0;
  Index row_count_ = 0;
  PreparedQueries<T> queries_;
  PairGradients<T> pairs_;
  bool has_pairs_ = false;  // those of the keys
  bool writes_bias_;        // its gradient
  Index next_of_bias_ = 0;  // the key after the last ones written there
  SharedLaneWords* shared_ = nullptr;
};

// Short sequences. --------------------------------------------------------------------------------

/// The backward pass of a call with short sequences, the counterpart of ShortForward: the mask is
/// asked once for all heads of a batch item, and every head is one kernel call. The bits are those
/// of KeyChunkPass.
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

  /// Whether ShortBackward can compute a call.
  static bool fits(const BackwardArgs<T>& args) {
    const auto& call = args.forward;
    const auto& more = args.more;
    const auto together = [](const auto& tensor) { return tensor.stride(3) == 1; };
    return args.pairs == nullptr && call.query_count() > 0 &&
           call.query_count() <= simd::query_block && call.key_count() > 0 &&
           call.key_count() <= simd::key_block && args.sharing() == 1 && !call.score_mods.any() &&
           call.score_mods.sinks.empty() && !more.grad_log_sum_exp.given() &&
           together(call.queries) && together(call.keys) && together(call.values) &&
           together(args.output) && together(args.grad_output) && together(args.grad_queries) &&
           together(args.grad_keys) && together(args.grad_values);
  }

  Index count() const { return call_.batch() * groups(); }

  void run(Index index) const {
    const Index item = index / groups(), head = index % groups() * group_;
    const Index end = smaller(head + group_, call_.heads());
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
      if (!plain ||
          (anyone & ~take_log_sum_exp(args_, item, each, 0, call_.query_count(), log_sum_exp)) !=
              0 ||
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
  /// log-sum-exp.
  simd::ShortBackwardArgs<T> task_with_arrays(std::uint64_t*& words, T*& log_sum_exp) const {
    simd::ShortBackwardArgs<T> task;
    divide_scratch<ShortBackward>([&](Carver& carver) {
      task.packed_queries = carver.take<T>(most_lanes * call_.head_dim());
      task.packed_gradient = carver.take<T>(most_lanes * call_.value_dim());
      task.probabilities = carver.take<T>(simd::key_block * simd::query_block);
      task.grad_scores = carver.take<T>(simd::key_block * simd::query_block);
      task.key_tail = carver.take<T>(simd::key_block * most_lanes);
      task.query_tail = carver.take<T>(simd::query_block * most_lanes);
      task.gradient_tail = carver.take<T>(simd::query_block * most_lanes);
      task.log_sum_exp = log_sum_exp = carver.take<T>(simd::query_block);
      words = carver.take<std::uint64_t>(simd::key_block);
    });
    return task;
  }

  Index groups() const { return parts_of(call_.heads(), group_); }

  /// One head of task `index`, which ends with head `end`; see ShortBackwardKernel.
  bool backward(simd::ShortBackwardArgs<T>& task, Index index, Index head, Index end,
                const VisibleKeys& seen) const {
    choose_head(task, index / groups(), head, seen);
    const bool more = head + 1 < end;
    const Index later = index + threads_;  // what this thread takes next, if all take turns
    const Index item = (more ? index : later) / groups();
    simd::ComingRows coming;
    if (exceeds_near_caches(args_) && item < call_.batch()) {
      coming = coming_head(args_, item, more ? head + 1 : later % groups() * group_, steps());
      task.coming = &coming;
    }
    const bool taken = simd::short_backward_kernel<T>()(task);
    task.coming = nullptr;
    return taken;
  }
  /// The number of steps of a head under a causal mask: scores of 16 queries and 8 keys, then three
  /// products of 6 rows.
  Index steps() const {
    const Index groups = parts_of(call_.query_count(), most_lanes);
    return groups * (groups + 1) + 3 * parts_of(call_.key_count(), 6);
  }

  void choose_head(simd::ShortBackwardArgs<T>& task, Index item, Index head,
                   const VisibleKeys& seen) const {
    static_cast<simd::ShortArgs<T>&>(task) = short_views(call_, item, head, seen);
    task.output = strided_rows(args_.output, item, head, 0);
    task.grad_output = strided_rows(args_.grad_output, item, head, 0);
    task.grad_queries = row_of(args_.grad_queries, item, head, 0);
    task.grad_keys = row_of(args_.grad_keys, item, head, seen.first);
    task.grad_values = row_of(args_.grad_values, item, head, seen.first);
    task.grad_query_row = args_.grad_queries.stride(2);
    task.grad_key_row = args_.grad_keys.stride(2);
    task.grad_value_row = args_.grad_values.stride(2);
    task.scale = call_.scale;
  }

  /// Sets the gradients of keys that no query sees to 0.
  void clear_keys(Index item, Index head, Index first, Index end) const {
    clear_rows(args_.grad_keys, item, head, first, end);
    clear_rows(args_.grad_values, item, head, first, end);
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  FunctionRef<void(Index)> fallback_;
  Index group_;
  Index threads_;
};

}  // namespace heed::detail
