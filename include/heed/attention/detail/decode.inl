// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/decode_pass.hpp>
#include <heed/attention/detail/query_block_pass.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// Calls with at most this many queries are decoded: lanes are keys and not queries.
inline constexpr Index most_decoded_queries = 15;

/// A call with few queries: first every (batch item, group of heads, chunk of keys) by itself, then
/// every head's chunks together, in key order. The states of all chunks are kept in between:
/// keys / key_chunk times the size of the output.
template <class T>
class Decode {
 public:
  Decode(const AttentionProblem<T>& problem, const MaskRef& mask)
      : problem_(problem),
        mask_(mask),
        sharing_(problem.heads() / problem.keys.extent(1)),
        group_(heads_together()),
        groups_((sharing_ + group_ - 1) / group_),
        chunks_((problem.key_count() + simd::key_chunk - 1) / simd::key_chunk),
        rows_(problem.batch() * problem.heads() * problem.query_count()) {
    const auto carve = [&](Carver carver) {
      states_ = {carver.take<T>(rows_ * chunks_), carver.take<T>(rows_ * chunks_),
                 carver.take<T>(rows_ * chunks_ * padded_value_dim(problem.value_dim()))};
      return carver.used();
    };
    carve(Carver(Scratch::of_this_thread<Decode>(carve(Carver(nullptr)))));
  }

  /// The first step has this many pieces, the second one per head of the batch.
  Index pieces() const { return problem_.batch() * problem_.keys.extent(1) * groups_ * chunks_; }

  void take_chunk(Index piece) const {
    const Index chunk = piece % chunks_, group = piece / chunks_ % groups_;
    const Index key_head = piece / chunks_ / groups_;  // of all batch items
    const Index item = key_head / problem_.keys.extent(1);
    const Index head = key_head % problem_.keys.extent(1) * sharing_ + group * group_;
    const Index left = sharing_ - group * group_;
    const Index first = chunk * simd::key_chunk;
    if (first >= problem_.key_count_of(item)) return;
    DecodePass<T>(problem_, mask_, item, head, left < group_ ? left : group_)
        .run(first, states(item, head, chunk));
  }

  void finish(Index head_of_batch) const {
    const Index item = head_of_batch / problem_.heads(), head = head_of_batch % problem_.heads();
    QueryBlockPass<T>(problem_, mask_, item, head, 0, problem_.query_count())
        .finish(states(item, head, 0), rows_);
  }

 private:
  Index heads_together() const {
    if (mask_.depends_on_head()) return 1;
    const Index most = decode_rows / problem_.query_count();
    return sharing_ < most ? sharing_ : most;
  }
  RowStates<T> states(Index item, Index head, Index chunk) const {
    const Index row = (item * problem_.heads() + head) * problem_.query_count();
    return states_.from(chunk * rows_ + row, problem_.value_dim());
  }

  const AttentionProblem<T>& problem_;
  const MaskRef& mask_;
  Index sharing_;  // query heads that read one key head
  Index group_;
  Index groups_;
  Index chunks_;
  Index rows_;  // of all heads and batch items
  RowStates<T> states_;
};

/// From so many bytes of keys and values on other threads help reading.
inline constexpr double parallel_bytes = 1 << 20;

template <class T>
void run_decode(const AttentionProblem<T>& problem, const MaskRef& mask, bool in_parallel) {
  const Decode<T> decode(problem, mask);
  const Index heads = problem.batch() * problem.heads();
  const double tokens = static_cast<double>(problem.batch() * problem.keys.extent(1)) *
                        static_cast<double>(problem.key_count());
  const double bytes =
      tokens * static_cast<double>(problem.head_dim() + problem.value_dim()) * sizeof(T);
  if (in_parallel || bytes >= parallel_bytes) {
    parallel_for(decode.pieces(), [&](Index piece) { decode.take_chunk(piece); });
  } else {
    for (Index piece = 0; piece < decode.pieces(); ++piece) decode.take_chunk(piece);
  }
  if (in_parallel) {
    parallel_for(heads, [&](Index head) { decode.finish(head); });
  } else {
    for (Index head = 0; head < heads; ++head) decode.finish(head);
  }
}

}  // namespace heed::detail
