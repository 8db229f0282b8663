// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/bfloat16_call.hpp>
#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/run.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/scalar.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

template <class Q, class... Others>
inline constexpr bool same_scalars = (std::is_same_v<ValueOf<Q>, ValueOf<Others>> && ...);

}  // namespace detail

/// Attention, fused: out = softmax(scale · queries · keysᵀ, masked) · values, without ever holding
/// the scores. Exact, in the inputs' own scalar type (bfloat16: in float, with weights rounded to
/// bfloat16 where the CPU multiplies those, and results rounded once); tiles that the mask lets
/// nothing through are not computed; memory is O(length).
///
/// Shapes (batch, heads, length, dim), or rank 3 or 2 without the leading axes, any strides:
/// queries (…, heads, queries, head_dim), keys (…, key heads, keys, head_dim), values (…, key
/// heads, keys, value_dim), out (…, heads, queries, value_dim). Key heads divide heads: query head
/// h reads key head h / (heads / key heads). A query that sees no key gives 0 and log-sum-exp −inf.
/// Throws ShapeError, before anything is written, for shapes, a mask or a scale that do not fit and
/// for an out that overlaps an input. What exactly is promised: docs/contract.md.
/// Vaswani et al. 2017; tiled after Dao et al. 2022 (FlashAttention).
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M, Viewable Out>
void attention(const Q& queries, const K& keys, const V& values, const M& mask, Out&& out,
               const AttentionOptions<ComputedIn<ValueOf<Q>>>& options = {}) {
  using T = ValueOf<Q>;
  static_assert(Scalar<ComputedIn<T>>, "attention computes in float or double");
  static_assert(detail::same_scalars<Q, K, V, Out>,
                "attention: queries, keys, values and out must have one scalar type");
  if constexpr (std::is_same_v<T, bfloat16>) {
    detail::bfloat16_attention(
        {detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
         detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out))},
        mask, options);
  } else {
    const auto problem = detail::checked_problem<T>(
        detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
        detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out)), options);
    detail::check_mask_fits(mask, problem);
    detail::run_attention(problem, MaskRef(mask));
  }
}

/// The same, with the result as a new tensor of the queries' rank.
template <Viewable Q, Viewable K, Viewable V, MaskPolicy M>
auto attention(const Q& queries, const K& keys, const V& values, const M& mask,
               const AttentionOptions<ComputedIn<ValueOf<Q>>>& options = {}) {
  constexpr std::size_t rank = ViewOf<const Q>::rank();
  static_assert(rank == ViewOf<const V>::rank(),
                "attention: queries and values must have one rank");
  auto extents = view_of(queries).extents();
  extents[rank - 1] = view_of(values).extent(rank - 1);
  Tensor<ValueOf<Q>, rank> out(extents);
  attention(queries, keys, values, mask, out, options);
  return out;
}

}  // namespace heed

#include <heed/attention/detail/definitions.hpp>
