// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/backward_pass.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>

// Gradients of score modifications: biases, relative biases, ALiBi slopes, sinks. Each is a sum
// over scores that several heads, items or queries share. The scores are therefore computed a
// second time, and every sum is made by one task, in a fixed order and in double.

namespace heed::detail {

/// The score gradients of some blocks, with respect to the softcapped scores, as biases need them.
template <class T>
class ScoreGradientTiles {
 public:
  ScoreGradientTiles(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardRows<T>& rows)
      : call_(args.forward),
        mask_(mask),
        rows_(rows),
        kernels_(simd::backward_kernels<T>()),
        scratch_(call_.head_dim(), call_.value_dim(), kernels_.row_lanes),
        queries_(args, rows, true) {}

  /// Processes one block of queries of one head and the keys [first, end), starting at a multiple
  /// of key_block. Calls take(first_key, keys, queries, grad_scores); grad_scores is [key][lane], 0
  /// where masked.
  template <class Take>
  void run(Index item, Index head, Index row, Index first, Index end, const Take& take) {
    const Index left = call_.query_count() - row;
    const Index count = left < simd::query_block ? left : simd::query_block;
    const std::uint64_t seeing = rows_.seeing(rows_.index_of(item, head, row));
    if (end > call_.key_count_of(item)) end = call_.key_count_of(item);
    bool met = false;
    for (Index key = first; key < end; key += simd::key_block) {
      const Index last = (key + simd::key_block < end ? key + simd::key_block : end) - 1;
      const Tile tile = tile_of(call_, item, head, row, count, key, last);
      const VisibleKeys seen =
          keys_seen_by(visible_keys(mask_, tile, scratch_.words), tile, seeing, scratch_.words);
      if (seen.count == 0) continue;
      if (!met) queries_.prepare(scratch_, item, head, row, count);
      met = true;
      const Index key_head = call_.key_head(head);
      simd::KeyBlock<T> block{call_.keys.rows(item, key_head, seen.first),
                              call_.values.rows(item, key_head, seen.first), seen.count, seen.words,
                              false};
      queries_.attach(block, seen.first, nullptr);
      kernels_.grad_scores(block, queries_.block(false));
      take(seen.first, seen.count, count, scratch_.grad_scores);
    }
  }

 private:
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T>& rows_;
  const simd::BackwardKernels<T>& kernels_;
  BackwardScratch<T> scratch_;
  PreparedQueries<T> queries_;
};

/// The gradient of the bias. A task computes one tile of it, at most query_block by backward_chunk,
/// from all scores the tile applies to.
template <class T>
class BiasGradient {
 public:
  BiasGradient(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardRows<T>& rows)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        rows_(rows),
        out_(args.more.grad_bias.view()),
        blocks_(out_.extent(2) == 1 ? 1 : rows.blocks()),
        chunks_(out_.extent(3) == 1 ? 1 : parts_of(call_.key_count(), backward_chunk)) {}

  Index tasks() const { return out_.extent(0) * out_.extent(1) * blocks_ * chunks_; }

  void run(Index task) const {
    const Place place = place_of(task);
    const Index row_size = place.keys.end - place.keys.first;
    const Index column_step = out_.extent(3) == 1 ? 0 : 1, width = column_step ? row_size : 1;
    const Index row_step = out_.extent(2) == 1 ? 0 : width;
    const auto size = static_cast<std::size_t>(simd::query_block * backward_chunk);
    auto* sums =
        reinterpret_cast<double*>(Scratch::of_this_thread<BiasGradient>(size * sizeof(double)));
    for (std::size_t i = 0; i < size; ++i) sums[i] = 0;
    ScoreGradientTiles<T> tiles(args_, mask_, rows_);
    for (Index item = place.items.first; item < place.items.end; ++item) {
      for (Index head = place.heads.first; head < place.heads.end; ++head) {
        for (Index block = place.blocks.first; block < place.blocks.end; ++block) {
          tiles.run(item, head, block * simd::query_block, place.keys.first, place.keys.end,
                    [&](Index first_key, Index keys, Index queries, const T* grad) {
                      for (Index key = 0; key < keys; ++key) {
                        double* to = sums + (first_key - place.keys.first + key) * column_step;
                        for (Index i = 0; i < queries; ++i) {
                          to[i * row_step] +=
                              static_cast<double>(grad[key * simd::query_block + i]);
                        }
                      }
                    });
        }
      }
    }
    write(place, sums, width);
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
    const Index first = chunk * backward_chunk, end = first + backward_chunk;
    const bool all_keys = out_.extent(3) == 1;
    return {along(out_.extent(0), item, call_.batch()), along(out_.extent(1), head, call_.heads()),
            along(out_.extent(2), block, rows_.blocks()),
            Range{first, all_keys || end > call_.key_count() ? call_.key_count() : end}};
  }

  void write(const Place& place, const double* sums, Index width) const {
    const Index item = out_.extent(0) == 1 ? 0 : place.items.first;
    const Index head = out_.extent(1) == 1 ? 0 : place.heads.first;
    const Index row = out_.extent(2) == 1 ? 0 : place.blocks.first * simd::query_block;
    const Index key = out_.extent(3) == 1 ? 0 : place.keys.first;
    for (Index i = 0; i < simd::query_block && row + i < out_.extent(2); ++i) {
      for (Index j = 0; j < width; ++j) {
        out_(item, head, row + i, key + j) = static_cast<T>(sums[i * width + j]);
      }
    }
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T>& rows_;
  const TensorView<T, 4>& out_;
  Index blocks_;
  Index chunks_;
};

/// The gradients of relative_bias and alibi_slopes, which apply to all scores at one distance. A
/// task computes the sums per distance of one block of queries of one head; `finish` adds them up
/// in order. Memory of the calling thread: (heads, queries / query_block, distances) numbers.
template <class T>
class DistanceGradients {
 public:
  DistanceGradients(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardRows<T>& rows)
      : args_(args),
        call_(args.forward),
        mask_(mask),
        rows_(rows),
        distances_(args.more.grad_relative_bias.extent(1)) {
    const auto size = static_cast<std::size_t>(tasks() * (distances_ + 1));
    sums_ = reinterpret_cast<double*>(
        Scratch::of_this_thread<DistanceGradients>(size * sizeof(double)));
  }

  Index tasks() const { return call_.heads() * rows_.blocks(); }

  void run(Index task) const {
    const Index head = task / rows_.blocks(), row = task % rows_.blocks() * simd::query_block;
    double* sums = sums_ + task * (distances_ + 1);
    for (Index i = 0; i <= distances_; ++i) sums[i] = 0;
    ScoreGradientTiles<T> tiles(args_, mask_, rows_);
    for (Index item = 0; item < call_.batch(); ++item) {
      const Index at = call_.query_position(item, row);
      tiles.run(item, head, row, 0, call_.key_count(),
                [&](Index first_key, Index keys, Index queries, const T* grad) {
                  for (Index key = 0; key < keys; ++key) {
                    for (Index i = 0; i < queries; ++i) {
                      add(sums, first_key + key - at - i,
                          static_cast<double>(grad[key * simd::query_block + i]));
                    }
                  }
                });
    }
  }

  void finish() const {
    const auto& relative = args_.more.grad_relative_bias;
    for (Index distance = 0; distance < distances_; ++distance) {
      for (Index line = 0; line < relative.extent(0); ++line) {
        const bool shared = relative.extent(0) == 1;
        const Index first = shared ? 0 : line, end = shared ? call_.heads() : line + 1;
        relative(line, distance) = static_cast<T>(sum(first, end, distance));
      }
    }
    const auto& slopes = args_.more.grad_alibi_slopes;
    for (std::size_t head = 0; head < slopes.size(); ++head) {
      const auto index = static_cast<Index>(head);
      slopes[head] = static_cast<T>(sum(index, index + 1, distances_));
    }
  }

 private:
  /// Adds a score's gradient at its distance and, after all distances, −|distance| times it for the
  /// slope.
  void add(double* sums, Index distance, double grad) const {
    sums[distances_] -= grad * static_cast<double>(distance < 0 ? -distance : distance);
    if (distances_ == 0) return;
    const Index reach = distances_ / 2;
    sums[(distance < -reach ? -reach : distance > reach ? reach : distance) + reach] += grad;
  }
  double sum(Index first_head, Index end_head, Index slot) const {
    double total = 0;
    for (Index task = first_head * rows_.blocks(); task < end_head * rows_.blocks(); ++task) {
      total += sums_[task * (distances_ + 1) + slot];
    }
    return total;
  }

  const BackwardArgs<T>& args_;
  const AttentionArgs<T>& call_;
  const MaskRef& mask_;
  const BackwardRows<T>& rows_;
  Index distances_;
  double* sums_ = nullptr;
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
        if ((rows.silent(block) >> lane & 1) != 0) {
          delta = given.given() ? -given.view()(item, head, row) : T{0};
        }
        total -= static_cast<double>(weight) * static_cast<double>(delta);
      }
    }
    args.more.grad_sinks[index] = static_cast<T>(total);
  }
}

}  // namespace heed::detail
