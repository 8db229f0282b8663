// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <heed/attention/cached.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/core/error.hpp>
#include <heed/layers/multi_head_attention.hpp>

namespace heed {

namespace detail {

/// Rows `first` … first + count − 1 of (…, heads · head_dim) as (heads, count, head_dim).
template <class Rows>
auto heads_of_rows(Rows& rows, Index first, Index count, Index head_dim) {
  return as_rows(rows).slice(0, first, first + count).split(1, head_dim).permute({1, 0, 2});
}

/// Queries of sequences with different numbers of new tokens, padded to one number behind them, and
/// their results without the padding.
template <Scalar T, class Stored>
void attend_ragged(const MultiHeadAttention<T>& layer, const Tensor<T, 3>& queries,
                   std::span<const Index> counts, const KeyValueCache<T, Stored>& cache,
                   const Mask& mask, Tensor<T, 3>& context) {
  const auto batch = static_cast<Index>(counts.size()), width = queries.extent(2);
  const Index most = *std::max_element(counts.begin(), counts.end());
  Tensor<T, 3> padded({batch, most, width}), out({batch, most, width});
  std::vector<Index> firsts;
  const T* from = queries.data();
  for (Index item = 0; item < batch; ++item) {
    const Index count = counts[static_cast<std::size_t>(item)];
    std::copy_n(from, count * width, padded.data() + item * most * width);
    from += count * width;
    firsts.push_back(cache.length(item) - count);
  }
  auto options = layer.kernel_options();
  options.first_query.reset();
  options.first_queries = firsts;
  attention(layer.heads_of(padded), cache, mask, layer.heads_of(out), options);
  T* to = context.data();
  for (Index item = 0; item < batch; ++item) {
    const Index size = counts[static_cast<std::size_t>(item)] * width;
    std::copy_n(out.data() + item * most * width, size, to);
    to += size;
  }
}

}  // namespace detail

/// Self-attention of the next tokens of some sequences to these and all before them, whose keys and
/// values are in the cache: x (1, tokens, model_dim) holds counts[0] tokens of the first sequence,
/// then counts[1] of the second … Appends to the cache. Positions are those in the sequences, and
/// the mask sees them; the bits are those of `forward` on the whole sequences. Throws ShapeError
/// for counts that do not fit and CacheFull; the cache may then hold the tokens of some sequences.
template <Scalar T, class Stored>
Tensor<T, 3> cached_attention(const MultiHeadAttention<T>& layer, const Tensor<T, 3>& x,
                              std::span<const Index> counts, KeyValueCache<T, Stored>& cache,
                              const Mask& mask) {
  Index total = 0;
  for (const Index count : counts) total = count < 0 ? x.extent(1) + 1 : total + count;
  if (x.extent(0) != 1 || total != x.extent(1) ||
      static_cast<Index>(counts.size()) != cache.shape().batch) {
    throw_shape_error("cached_attention: x is ", x.extents(), ", with tokens of ", counts.size(),
                      " sequences, a cache of ", cache.shape().batch);
  }
  auto queries = layer.queries(x), keys = layer.keys(x);
  const auto values = layer.projections.forward(Projection::value, x);
  const Index head_dim = layer.options.head_dim;
  Index row = 0;
  bool even = true;
  for (Index item = 0; item < cache.shape().batch; ++item) {
    const Index count = counts[static_cast<std::size_t>(item)], first = cache.length(item);
    even = even && count == counts[0];
    const auto new_keys = detail::heads_of_rows(keys, row, count, head_dim);
    if (layer.rotary) {
      const auto new_queries = detail::heads_of_rows(queries, row, count, head_dim);
      layer.rotary->apply(new_queries.with_leading_axis(), first);
      layer.rotary->apply(new_keys.with_leading_axis(), first);
    }
    cache.append(item, new_keys, detail::heads_of_rows(values, row, count, head_dim));
    row += count;
  }
  auto context = Tensor<T, 3>::uninitialized(queries.extents());
  if (total == 0) return layer.out.forward(context);
  if (even) {
    const auto by_item = [&](auto& rows) {
      return detail::as_rows(rows).split(0, counts[0]).split(2, head_dim).permute({0, 2, 1, 3});
    };
    auto options = layer.kernel_options();
    options.first_query.reset();
    attention(by_item(queries), cache, mask, by_item(context), options);
  } else {
    detail::attend_ragged(layer, queries, counts, cache, mask, context);
  }
  return layer.out.forward(context);
}

}  // namespace heed
