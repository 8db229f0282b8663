// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/backward_rows.hpp>
#include <heed/attention/detail/backward_scratch.hpp>
#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/copy_rows.hpp>
#include <heed/attention/detail/key_blocks.hpp>
#include <heed/attention/detail/prepared_queries.hpp>
#include <heed/attention/detail/seeing_queries.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/kernels.hpp>

// The fused backward pass around the instruction-set kernels of simd/: one chunk of keys meets the
// queries that see it. Nothing here depends on the instruction set.

namespace heed::detail {

/// Where the share that a chunk of keys has in the gradient of one head's queries goes: added to
/// grad_queries, or to a place of its own, (queries, head_dim), with a flag for every block of
/// queries that was written.
template <class T>
struct QueryShare {
  T* own = nullptr;
  unsigned char* written = nullptr;
};

/// The fused backward pass of one chunk of keys of one key head.
template <class T>
class KeyChunkPass {
 public:
  /// Keys [first, end) of a key head; first is a multiple of backward_chunk, and end is the next
  /// one or the last key's end.
  KeyChunkPass(const BackwardProblem<T>& problem, const MaskRef& mask, const BackwardRows<T>& rows,
               Index item, Index key_head, Index first, Index end)
      : problem_(problem),
        call_(problem.forward),
        mask_(mask),
        rows_(rows),
        forward_kernels_(simd::kernels<T>()),
        kernels_(simd::backward_kernels<T>()),
        scratch_(BackwardScratch<T>::of_this_thread(call_.head_dim(), call_.value_dim(),
                                                    kernels_.row_lanes)),
        item_(item),
        key_head_(key_head),
        first_(first),
        end_(end),
        queries_(problem, rows) {}

  /// Takes what queries see of the chunk from `shared` rather than from the mask; of one batch item
  /// and these keys, for any head.
  void share(SharedLaneWords& shared) { shared_ = &shared; }

  /// Starts the gradients of keys and values: from 0, or from what `pause` wrote.
  void begin() const {
    clear_numbers(scratch_.chunk.keys, (end_ - first_) * scratch_.head_row);
    clear_numbers(scratch_.chunk.values, (end_ - first_) * scratch_.value_row);
  }
  void resume() const {
    copy_rows<T>(strided_rows<T>(problem_.grad_keys, item_, key_head_, first_), end_ - first_,
                 call_.head_dim(), scratch_.chunk.keys, scratch_.head_row);
    copy_rows<T>(strided_rows<T>(problem_.grad_values, item_, key_head_, first_), end_ - first_,
                 call_.value_dim(), scratch_.chunk.values, scratch_.value_row);
  }

  /// Takes in the queries of one head, block by block.
  void take_head(Index head, const QueryShare<T>& share) {
    head_ = head;
    for (Index block = 0; block < rows_.blocks(); ++block) {
      row_ = block * simd::query_block;
      const Index left = call_.query_count() - row_;
      row_count_ = left < simd::query_block ? left : simd::query_block;
      if (!take_block()) continue;
      put_grad_queries(share);
      if (share.written != nullptr) share.written[block] = 1;
    }
  }

  /// Writes the gradients of keys and values; `pause`: as they are, for `resume`.
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

  /// The chunk meets one block of queries; false if none of them sees a key of it.
  bool take_block() {
    const Index there = call_.key_count_of(item_), end = there < end_ ? there : end_;
    if (end <= first_) return false;
    const Coverage coverage = mask_.coverage(tile(first_, end - 1));
    if (coverage == Coverage::none) return false;
    const std::uint64_t seeing = rows_.seeing(rows_.index_of(item_, head_, row_));
    bool met = false;
    for (Index key = first_; key < end; key += simd::key_block) {
      const Index last = (key + simd::key_block < end ? key + simd::key_block : end) - 1;
      const Tile part = tile(key, last);
      const VisibleKeys all = coverage == Coverage::full
                                  ? VisibleKeys{key, part.keys(), nullptr, false}
                                  : visible(part);
      const VisibleKeys seen = keys_seen_by(all, part, seeing, scratch_.words);
      if (seen.count == 0) continue;
      if (!met) queries_.prepare(scratch_, item_, head_, row_, row_count_);
      met = true;
      take_keys(seen);
    }
    return met;
  }

  void take_keys(const VisibleKeys& seen) {
    simd::KeyBlock<T> block{call_.keys.rows(item_, key_head_, seen.first),
                            call_.values.rows(item_, key_head_, seen.first), seen.count, seen.words,
                            false};
    const Index offset = seen.first - first_;
    const simd::KeyGradients<T> gradients{scratch_.chunk.keys + offset * scratch_.head_row,
                                          scratch_.chunk.values + offset * scratch_.value_row};
    if (seen.holes) return take_gathered(block, gradients, seen.first);
    queries_.change(block, seen.first, nullptr);
    kernels_.backward(block, queries_.block(block.words != nullptr), gradients, guard_keys(block));
  }

  bool guard_keys(const simd::KeyBlock<T>& block) const {
    return block.words != nullptr &&
           !forward_kernels_.all_finite(block.keys, block.count, call_.head_dim());
  }

  /// A run with keys that nobody sees: the others go next to each other, with the gradients they
  /// have so far, and the gradients back.
  void take_gathered(simd::KeyBlock<T>& block, const simd::KeyGradients<T>& gradients,
                     Index first_key) {
    for (Index i = 0; i < block.count; ++i) scratch_.words[i] = block.words[i];
    block.words = scratch_.words;
    block.count = drop_unseen(scratch_.words, block.count, scratch_.kept);
    if (block.count == 0) return;
    const Index head_dim = call_.head_dim(), value_dim = call_.value_dim();
    const auto gather = [&](const simd::MatrixRef<T>& from, Index columns, T* to, Index padded) {
      gather_rows(from, scratch_.kept, block.count, columns, to, padded);
    };
    const Index head_row = scratch_.head_row, value_row = scratch_.value_row;
    gather(block.keys, head_dim, scratch_.keys, head_dim);
    gather(block.values, value_dim, scratch_.values, value_dim);
    gather({gradients.keys, head_row}, head_row, scratch_.gathered.keys, head_row);
    gather({gradients.values, value_row}, value_row, scratch_.gathered.values, value_row);
    block.keys = {scratch_.keys, head_dim, 1};
    block.values = {scratch_.values, value_dim, 1};
    queries_.change(block, first_key, scratch_.kept);
    kernels_.backward(block, queries_.block(block.words != nullptr), scratch_.gathered,
                      guard_keys(block));
    scatter_rows(scratch_.gathered.keys, scratch_.kept, block.count, gradients.keys, head_row);
    scatter_rows(scratch_.gathered.values, scratch_.kept, block.count, gradients.values, value_row);
  }

  void put_grad_queries(const QueryShare<T>& share) const {
    const Index head_dim = call_.head_dim();
    if (share.own != nullptr) {
      kernels_.unpack(scratch_.grad_queries, row_count_, head_dim, call_.scale,
                      share.own + row_ * head_dim, head_dim);
      return;
    }
    kernels_.unpack(scratch_.grad_queries, row_count_, head_dim, call_.scale, scratch_.rows,
                    scratch_.head_row);
    put(problem_.grad_queries, head_, row_, scratch_.rows, scratch_.head_row, row_count_, T{1},
        true);
  }
  void put_chunk(T key_factor) const {
    put(problem_.grad_keys, key_head_, first_, scratch_.chunk.keys, scratch_.head_row,
        end_ - first_, key_factor, false);
    put(problem_.grad_values, key_head_, first_, scratch_.chunk.values, scratch_.value_row,
        end_ - first_, T{1}, false);
  }
  void put(const TensorView<T, 4>& out, Index head, Index row, const T* from, Index from_stride,
           Index rows, T factor, bool accumulate) const {
    kernels_.put_rows(
        from, from_stride, rows, out.extent(3), factor, accumulate,
        out.data_handle() + item_ * out.stride(0) + head * out.stride(1) + row * out.stride(2),
        out.stride(2), out.stride(3));
  }

  const BackwardProblem<T>& problem_;
  const AttentionProblem<T>& call_;
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
  Index row_ = 0;
  Index row_count_ = 0;
  PreparedQueries<T> queries_;
  SharedLaneWords* shared_ = nullptr;
};

}  // namespace heed::detail
