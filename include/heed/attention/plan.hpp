// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/options.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/parallel.hpp>
#include <heed/simd/isa.hpp>
#include <heed/simd/kernels.hpp>

namespace heed {

/// What an attention call would do: nothing is chosen unseen. Tiles are query_block queries by
/// key_block keys, counted over batch and heads.
struct AttentionPlan {
  simd::Isa isa = simd::Isa::scalar;
  Index threads = 1;
  Index skipped = 0;  // no query sees a key: never touched
  Index partial = 0;  // looked at score by score
  Index full = 0;     // run without a mask

  Index tiles() const { return skipped + partial + full; }
  /// Share of tiles that are computed.
  double computed_share() const {
    return tiles() == 0 ? 0.0 : static_cast<double>(partial + full) / static_cast<double>(tiles());
  }
};

namespace detail {

template <class T>
AttentionPlan plan_of(const AttentionProblem<T>& problem, const MaskRef& mask) {
  AttentionPlan result{simd::active(), thread_count()};
  const auto last_of = [](Index first, Index step, Index end) {
    return (first + step < end ? first + step : end) - 1;
  };
  for (Index item = 0; item < problem.batch(); ++item) {
    for (Index head = 0; head < problem.heads(); ++head) {
      for (Index row = 0; row < problem.query_count(); row += simd::query_block) {
        const Index last_row = last_of(row, simd::query_block, problem.query_count());
        for (Index key = 0; key < problem.key_count(); key += simd::key_block) {
          const Index last_key = last_of(key, simd::key_block, problem.key_count());
          const Coverage coverage =
              mask.coverage(tile_of(problem, item, head, row, last_row - row + 1, key, last_key));
          ++(coverage == Coverage::none   ? result.skipped
             : coverage == Coverage::full ? result.full
                                          : result.partial);
        }
      }
    }
  }
  return result;
}

}  // namespace detail

/// The plan of `attention(queries, keys, …, mask, …, options)`.
template <class Q, class K, class M, detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const K& keys, const M& mask, const Options& options = {}) {
  if constexpr (detail::expect_weights_call<Options, M, Q, K>()) {
    return detail::plan_of(detail::weights_problem(queries, keys, mask, options), MaskRef(mask));
  } else {
    return {};
  }
}

}  // namespace heed
