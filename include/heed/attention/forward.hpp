// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Fused attention: out = softmax(scale · queries · keysᵀ, masked) · values, without storing the
/// scores; scale is 1/√head_dim unless the option says another. Float, double or bfloat16, of one
/// type in a call. Float and double are computed in their own type without approximations,
/// bfloat16 in float, with weights rounded to bfloat16 where the CPU multiplies bfloat16; bfloat16
/// results are rounded once, or not at all if out is float. Tiles in which the mask hides
/// everything are skipped; memory is O(length).
///
/// Shapes: (batch, heads, length, dim), rank 3 without a batch, rank 2 without heads; any strides.
/// queries (…, heads, queries, head_dim), keys (…, kv_heads, keys, head_dim), values (…, kv_heads,
/// keys, value_dim), out (…, heads, queries, value_dim). kv_heads divides heads: query head h reads
/// key head h / (heads / kv_heads). A query that sees no key gives 0, and log-sum-exp −inf or, with
/// the option sinks (logits without keys), its head's sink. Returns nothing. Throws, before the
/// first write, ShapeError for shapes or a mask that do not fit and for an out that overlaps an
/// input, InvalidArgument for options out of range. The exact guarantees: docs/contract.md. Vaswani
/// et al. 2017; tiled after Dao et al. 2022 (FlashAttention).
///
/// A mask is one of heed::masks, a struct of your own (docs/08), or a lambda of (Index query, Index
/// key) or (Position) that returns bool. Without a mask every query sees every key.
template <class Q, detail::MeantAsKeys K, class V, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, Out> attention(const Q& queries, const K& keys, const V& values, const M& mask,
                                    Out&& out, const Options& options = {}) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::Expression<Q> || detail::Expression<K> || detail::Expression<V>) {
    return attention(detail::evaluated(queries), detail::evaluated(keys), detail::evaluated(values),
                     mask, out, options);
  } else if constexpr (detail::expect_local_call_to<Options, M, To, Q, const K, const V>()) {
    detail::attend(detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
                   detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out)), options,
                   MaskRef(mask));
  } else {
    return detail::WrittenTo<Q, Out>();
  }
}
template <class Q, detail::MeantAsKeys K, class V, detail::TakesResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, detail::Kept<Out>> attention(const Q& queries, const K& keys, const V& values,
                                                  Out&& out, const Options& options = {}) {
  detail::Kept<Out>& to = out;
  return attention(queries, keys, values, masks::Full{}, to, options);
}

/// The same, returning a new tensor of the queries' rank, or a new Eigen matrix for Eigen queries.
template <class Q, detail::MeantAsKeys K, class V, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention(const Q& queries, const K& keys, const V& values, const M& mask,
               const Options& options = {}) {
  if constexpr (detail::Expression<Q> || detail::Expression<K> || detail::Expression<V>) {
    return attention(detail::evaluated(queries), detail::evaluated(keys), detail::evaluated(values),
                     mask, options);
  } else if constexpr (!detail::expect_call<Options, M, Q, const K, const V>()) {
    return detail::ResultOf<Q>();
  } else {
    auto out = detail::new_result<Q>(detail::result_extents(view_of(queries), view_of(values)));
    attention(queries, keys, values, mask, out, options);
    return out;
  }
}
template <class Q, detail::MeantAsKeys K, class V, detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention(const Q& queries, const K& keys, const V& values, const Options& options = {}) {
  return attention(queries, keys, values, masks::Full{}, options);
}
// Refuses a call without values.
template <class Q, detail::MeantAsKeys K>
requires(detail::TakesResult<Q> || detail::is_cache<Q>) const Q& attention(const Q& queries,
                                                                           const K&) {
  static_assert(detail::is_cache<Q> || detail::never<Q>,
                "attention takes values too: attention(queries, keys, values), where all three may "
                "be one tensor, or attention(queries, cache)");
  if constexpr (detail::is_cache<Q>) detail::expect_tensors<Q>();
  return queries;
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
