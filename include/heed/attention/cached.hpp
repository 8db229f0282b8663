// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/padding.hpp>

namespace heed {

/// Attention of queries (batch, heads, queries, head_dim) to the tokens of a cache; out (batch,
/// heads, queries, value_dim). Positions are those of the sequences: unless `first_query` says
/// otherwise the last query is the last token, so append first, then attend, with the mask that
/// serves the whole sequence. Each batch item sees its own length; what is beyond it, or forgotten,
/// is as masked. The bits are those of `attention` on the same keys and values in tensors.
template <Viewable Q, class Stored, MaskPolicy M, Viewable Out>
void attention(const Q& queries, const KeyValueCache<ValueOf<Q>, Stored>& cache, const M& mask,
               Out&& out, AttentionOptions<ValueOf<Q>> options = {}) {
  using T = ValueOf<Q>;
  static_assert(detail::same_scalars<Q, Out>,
                "attention: queries and out must have one scalar type");
  const CacheShape& shape = cache.shape();
  Index longest = 0;
  bool forgotten = false;
  for (Index item = 0; item < shape.batch; ++item) {
    longest = std::max(longest, cache.length(item));
    forgotten = forgotten || cache.starts()[static_cast<std::size_t>(item)] > 0;
  }
  const TensorView<const T, 4> keys(nullptr,
                                    {shape.batch, shape.key_heads, longest, shape.head_dim});
  const TensorView<const T, 4> values(nullptr,
                                      {shape.batch, shape.key_heads, longest, shape.value_dim});
  options.key_counts = cache.lengths();
  auto problem = detail::checked_problem<T>(detail::as_rank_4(view_of(queries)), keys, values,
                                            detail::as_rank_4(view_of(out)), options);
  std::vector<const Index*> tables;
  const auto cached_keys = cache.pages(true, tables), cached_values = cache.pages(false, tables);
  problem.cached_keys = &cached_keys;
  problem.cached_values = &cached_values;
  if (forgotten) {
    const auto held = mask & masks::Padding({cache.starts().begin(), cache.starts().end()},
                                            {cache.lengths().begin(), cache.lengths().end()});
    detail::check_mask_fits(mask, problem);
    detail::run_attention(problem, MaskRef(held));
  } else {
    detail::check_mask_fits(mask, problem);
    detail::run_attention(problem, MaskRef(mask));
  }
}

}  // namespace heed
