// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/cached.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/attention/options.hpp>
#include <heed/definitions/attention.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/intervals.hpp>

// The plan of a call, before it is made. AttentionPlan itself is in detail/call.hpp, since every
// call makes one.

namespace heed {

namespace detail {

/// Adds the tiles of one block to the counts: `rows` queries from `row` on, the plan's row_step
/// apart, against all keys.
template <class T>
void count_tiles(const AttentionArgs<T>& args, const MaskRef& mask, Index item, Index head,
                 Index row, Index rows, AttentionPlan& plan) {
  const Index keys = args.key_count_of(item);
  for (Index key = 0; key < keys; key += simd::key_block) {
    const Index last_key = smaller(key + simd::key_block, keys) - 1;
    const Tile tile = tile_of(args, item, head, row, rows, key, last_key);
    const Coverage coverage = mask.coverage(tile, plan.row_step);
    ++(coverage == Coverage::none   ? plan.skipped
       : coverage == Coverage::full ? plan.full
                                    : plan.partial);
  }
}

/// The plan of a checked call, including the tile counts under its mask.
template <class T>
AttentionPlan counted_plan(const AttentionArgs<T>& args, const MaskRef& mask) {
  AttentionPlan plan = plan_of(args, mask);
  const Index count = args.query_count(), step = plan.row_step;
  const auto count_head = [&](Index item, Index head) {
    for (Index first = 0; first < count; first += step * simd::query_block) {
      for (Index row = first; row < smaller(first + step, count); ++row) {
        const Index rows = smaller(simd::query_block, parts_of(count - row, step));
        count_tiles(args, mask, item, head, row, rows, plan);
      }
    }
  };
  for (Index item = 0; item < args.batch(); ++item) {
    for (Index head = 0; head < args.heads(); ++head) count_head(item, head);
  }
  return plan;
}

}  // namespace detail

/// The plan of `attention(queries, keys, values, mask, …, options)`: how the call is computed, and
/// why. No choice is hidden. Throws the errors of the call.
template <class Q, detail::MeantAsKeys K, class V, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const K& keys, const V& values, const M& mask,
                   const Options& options = {}) {
  if constexpr (detail::Expression<Q> || detail::Expression<K> || detail::Expression<V>) {
    return plan(detail::evaluated(queries), detail::evaluated(keys), detail::evaluated(values),
                mask, options);
  } else if constexpr (detail::expect_call<Options, M, Q, const K, const V>()) {
    const auto query_view = detail::as_rank_4(view_of(queries));
    const auto value_view = detail::as_rank_4(view_of(values));
    const auto no_memory = detail::without_memory<ValueOf<Q>>(
        detail::with_width(query_view.extents(), value_view.extent(3)));
    const auto args = detail::checked_args<ComputedIn<ValueOf<Q>>>(
        query_view, detail::as_rank_4(view_of(keys)), value_view, no_memory, options);
    const MaskRef reference(mask);
    detail::check_mask_fits(reference, args);
    return detail::counted_plan(args, reference);
  } else {
    return {};
  }
}
template <class Q, detail::MeantAsKeys K, detail::TakesResult V,
          detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const K& keys, const V& values, const Options& options = {}) {
  return plan(queries, keys, values, masks::Full{}, options);
}
/// The same for values as wide as the keys.
template <class Q, detail::MeantAsKeys K, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const K& keys, const M& mask, const Options& options = {}) {
  return plan(queries, keys, keys, mask, options);
}
template <class Q, detail::MeantAsKeys K, detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const K& keys, const Options& options = {}) {
  return plan(queries, keys, keys, masks::Full{}, options);
}
/// The same for `attention(queries, cache, mask, …, options)`.
template <class Q, class Held, class Stored, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const KeyValueCache<Held, Stored>& cache, const M& mask,
                   const Options& options = {}) {
  if constexpr (detail::expect_call<Options, M, Q>()) {
    if constexpr (detail::expect_cache<Q, Held, Stored>()) {
      const Tensor<const Index*, 1> tables({cache.shape().batch});
      const auto no_memory = detail::without_memory<ValueOf<Q>>(detail::with_width(
          detail::as_rank_4(view_of(queries)).extents(), cache.shape().value_dim));
      const auto args =
          detail::cache_call(queries, cache, cache.lengths(), tables, mask, no_memory, options);
      return detail::with_forgotten(
          cache, mask, [&](const MaskRef& kept) { return detail::counted_plan(args, kept); });
    }
  }
  return {};
}
template <class Q, class Held, class Stored, detail::IsOptions Options = detail::OptionsOf<Q>>
AttentionPlan plan(const Q& queries, const KeyValueCache<Held, Stored>& cache,
                   const Options& options = {}) {
  return plan(queries, cache, masks::Full{}, options);
}

}  // namespace heed
