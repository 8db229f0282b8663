// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/bfloat16_call.hpp>
#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/padding.hpp>

namespace heed {

namespace detail {

/// The rest of the call below, from the checked problem on; `run(MaskRef)` computes it.
template <class T, class Cache, class M, class Run>
void attend_to_held(const AttentionProblem<T>& problem, const Cache& cache, const M& mask,
                    const Run& run) {
  check_mask_fits(mask, problem);
  bool forgotten = false;
  for (const Index start : cache.starts()) forgotten = forgotten || start > 0;
  if (!forgotten) return run(MaskRef(mask));
  const auto held = mask & masks::Padding(cache.starts(), cache.lengths());
  run(MaskRef(held));
}

}  // namespace detail

/// Attention of queries (batch, heads, queries, head_dim) to the tokens of a cache; out (batch,
/// heads, queries, value_dim). Positions are those of the sequences: unless `first_query` says
/// otherwise the last query is the last token, so append first, then attend, with the mask that
/// serves the whole sequence. Each batch item sees its own length; what is beyond it, or forgotten,
/// is as masked. The bits are those of `attention` on the same keys and values in tensors; float
/// and double queries see stored bfloat16 as their own type, bfloat16 queries want it.
template <Viewable Q, class Held, class Stored, MaskPolicy M, Viewable Out>
void attention(const Q& queries, const KeyValueCache<Held, Stored>& cache, const M& mask, Out&& out,
               AttentionOptions<ComputedIn<ValueOf<Q>>> options = {}) {
  using From = ValueOf<Q>;
  using T = ComputedIn<From>;
  constexpr bool narrow = std::is_same_v<From, bfloat16>;
  static_assert(detail::same_scalars<Q, Out>,
                "attention: queries and out must have one scalar type");
  static_assert(narrow ? std::is_same_v<Stored, bfloat16> : std::is_same_v<Held, From>,
                "attention: the cache holds another scalar type than queries have");
  const CacheShape& shape = cache.shape();
  Index longest = 0;
  for (const Index length : cache.lengths()) longest = detail::larger(longest, length);
  const TensorView<const From, 4> keys(nullptr,
                                       {shape.batch, shape.key_heads, longest, shape.head_dim});
  const TensorView<const From, 4> values(nullptr,
                                         {shape.batch, shape.key_heads, longest, shape.value_dim});
  options.key_counts = OwnedArray<Index>::borrowed(cache.lengths());
  Tensor<const Index*, 1> tables({shape.batch});
  const auto cached_keys = cache.pages(true, tables), cached_values = cache.pages(false, tables);
  const TensorView<const From, 4> query_view = detail::as_rank_4(view_of(queries));
  if constexpr (narrow) {
    const detail::Bfloat16Views views{
        query_view, keys, values, detail::as_rank_4(view_of(out)), &cached_keys, &cached_values};
    const auto problem = detail::checked_bfloat16_problem<T>(views, options);
    detail::attend_to_held(problem, cache, mask, [&](const MaskRef& held) {
      detail::run_bfloat16(views, problem, held);
    });
  } else {
    auto problem = detail::checked_problem<T>(query_view, keys, values,
                                              detail::as_rank_4(view_of(out)), options);
    problem.cached_keys = &cached_keys;
    problem.cached_values = &cached_values;
    detail::attend_to_held(problem, cache, mask,
                           [&](const MaskRef& held) { detail::run_attention(problem, held); });
  }
}

}  // namespace heed
