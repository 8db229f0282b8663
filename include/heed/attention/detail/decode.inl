// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/decode_pass.hpp>
#include <heed/attention/detail/query_block_pass.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// A call with few queries: first every (batch item, group of heads, chunk of keys) by itself, then
/// every head's chunks together, in key order. The states of all chunks are kept in between:
/// keys / key_chunk times the size of the output.
template <class T>
class Decode {
 public:
  /// `group` heads that read one key head are taken together.
  Decode(const AttentionProblem<T>& problem, const MaskRef& mask, const simd::PairKernels<T>* pairs,
         Index group)
      : problem_(problem),
        mask_(mask),
        pairs_(pairs),
        sharing_(problem.heads() / problem.keys.extent(1)),
        group_(group),
        groups_(parts_of(sharing_, group_)),
        chunks_(parts_of(problem.key_count(), simd::key_chunk)),
        rows_(problem.batch() * problem.heads() * problem.query_count()) {
    const auto carve = [&](Carver carver) {
      states_ = {carver.take<T>(rows_ * chunks_), carver.take<T>(rows_ * chunks_),
                 carver.take<T>(rows_ * chunks_ * padded_value_dim(problem.value_dim()))};
      return carver.used();
    };
    carve(Carver(Scratch::of_this_thread<Decode>(carve(Carver(nullptr)))));
  }

  /// The first step: pieces of batch items, key heads, groups of heads and chunks.
  void take_chunk(Index piece) const {
    const Index chunk = piece % chunks_, group = piece / chunks_ % groups_;
    const Index key_head = piece / chunks_ / groups_;  // of all batch items
    const Index item = key_head / problem_.keys.extent(1);
    const Index head = key_head % problem_.keys.extent(1) * sharing_ + group * group_;
    const Index left = sharing_ - group * group_;
    const Index first = chunk * simd::key_chunk;
    if (first >= problem_.key_count_of(item)) return;
    DecodePass<T>(problem_, mask_, pairs_, item, head, smaller(left, group_))
        .run(first, states(item, head, chunk));
  }

  /// The second step: one piece per head of the batch.
  void finish(Index head_of_batch) const {
    const Index item = head_of_batch / problem_.heads(), head = head_of_batch % problem_.heads();
    QueryBlockPass<T>(problem_, mask_, nullptr, item, head, 0, problem_.query_count())
        .finish(states(item, head, 0), rows_);
  }

 private:
  RowStates<T> states(Index item, Index head, Index chunk) const {
    const Index row = (item * problem_.heads() + head) * problem_.query_count();
    return states_.from(chunk * rows_ + row, problem_.value_dim());
  }

  const AttentionProblem<T>& problem_;
  const MaskRef& mask_;
  const simd::PairKernels<T>* pairs_;
  Index sharing_;  // query heads that read one key head
  Index group_;
  Index groups_;
  Index chunks_;
  Index rows_;  // of all heads and batch items
  RowStates<T> states_;
};

}  // namespace heed::detail
