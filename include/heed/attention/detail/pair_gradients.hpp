// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pair_blocks.hpp>
#include <heed/attention/detail/score_mod.hpp>
#include <heed/attention/detail/visible_keys.hpp>
#include <heed/attention/detail/workspace.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/kernels/attention_kernels.hpp>

namespace heed::detail {

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
      : args_(args), kernels_(args.pairs), arrange_(args.forward.pairs), scratch_(scratch) {
    if (kernels_ == nullptr) return;
    block_.factor = query_factor(args.forward);
    block_.head_row = scratch.head_row;
    block_.value_row = scratch.value_row;
    block_.head_depth = rounded_up(block_.head_row, arrange_->group);
    block_.value_depth = rounded_up(block_.value_row, arrange_->group);
    block_.grad_queries = scratch.grad_queries;
    divide_scratch<PairGradients>([&](Carver& carver) { take_arrays(carver); });
  }

  /// Whether the gradients are computed in pairs, or in tiles of pairs.
  explicit operator bool() const { return kernels_ != nullptr; }

  /// Brings the keys [first, end) of a chunk.
  void take_keys(Index item, Index key_head, Index first, Index end) {
    const auto& call = args_.forward;
    for (Index key = 0; first + key < end; key += simd::key_block) {
      const Index row = first + key - args_.key_offset;
      const Index count = smaller(end - first - key, simd::key_block);
      Keys& block = blocks_[key / simd::key_block];
      const auto rows = [&](const Operand<T>& from, Index depth, std::uint16_t* to) {
        return rows_of(from, item, key_head, row, count, simd::key_block, depth, to + key * depth);
      };
      block.keys = rows(call.keys, block_.head_depth, keys_);
      block.given = given_rows(call.keys, item, key_head, row, block.keys);
      block.values = rows(call.values, block_.value_depth, values_);
      block.turned = turned_ + key * block_.head_row;
      arrange_->turn(block.keys, simd::key_block, block_.head_row, block.turned);
      block.finite = made_finite(block.turned, simd::key_block * block_.head_row);
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
    block_.keys = keys.keys;
    block_.values = keys.values;
    block_.turned_keys = keys.turned;
    block_.gradients = {scratch_.chunk.keys + key * block_.head_row,
                        scratch_.chunk.values + key * block_.value_row};
    kernels_->backward(block_);
    if (keys.finite && finite_queries_ && finite_gradient_) return;
    const Index head_dim = args_.forward.head_dim(), value_dim = args_.forward.value_dim();
    for_visible(seen.first - first, seen.count, [&](Index each, Index query) {
      const Index at = each * simd::query_block + query;
      const T weight = wide(block_.probabilities[at]), grad = wide(block_.grad_scores[at]);
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
  static T wide(std::uint16_t bits) {
    return static_cast<T>(__builtin_bit_cast(float, std::uint32_t{bits} << 16));
  }
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
      if (!is_finite(*at)) sums[column * stride] += factor * wide(*at);
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
  const simd::PairBackwardKernels<T>* kernels_;
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
