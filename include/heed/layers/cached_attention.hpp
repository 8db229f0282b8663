// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <heed/attention/cached.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/core/error.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/self_attention_block.hpp>

namespace heed {

namespace detail {

/// Rows `first` … first + count − 1 of (…, heads · head_dim) as (heads, count, head_dim).
template <class Rows>
auto heads_of_rows(Rows& rows, Index first, Index count, Index head_dim) {
  return as_rows(rows).slice(0, first, first + count).split(1, head_dim).permute({1, 0, 2});
}

/// Keys turned to their positions, and values, (1, tokens, …), to the end of their sequences.
template <Scalar T, class Stored>
void append_tokens(const MultiHeadAttention<T>& layer, Tensor<T, 3> keys,
                   const Tensor<T, 3>& values, std::span<const Index> counts,
                   KeyValueCache<T, Stored>& cache, const Positions& positions) {
  Index row = 0;
  for (Index item = 0; item < cache.shape().batch; ++item) {
    const Index count = counts[static_cast<std::size_t>(item)];
    const auto new_keys = heads_of_rows(keys, row, count, layer.options.head_dim);
    if (layer.rotary) {
      layer.rotary->apply(new_keys.with_leading_axis(),
                          positions.row(item).columns(cache.length(item), count));
    }
    cache.append(item, new_keys, heads_of_rows(values, row, count, layer.options.head_dim));
    row += count;
  }
}

/// The rows of x, (1, tokens, width), that are the last of their sequences, or all the others.
template <Scalar T>
Tensor<T, 3> rows_of_sequences(const Tensor<T, 3>& x, std::span<const Index> counts, bool last) {
  Index ends = 0;
  for (const Index count : counts) ends += count > 0 ? 1 : 0;
  const Index width = x.extent(2);
  auto rows = Tensor<T, 3>::uninitialized({1, last ? ends : x.extent(1) - ends, width});
  const T* from = x.data();
  T* to = rows.data();
  for (const Index count : counts) {
    const Index others = count > 0 ? count - 1 : 0, taken = last ? count - others : others;
    to = std::copy_n(last ? from + others * width : from, taken * width, to);
    from += count * width;
  }
  return rows;
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
  options.first_queries = OwnedArray<Index>::borrowed(firsts);
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
/// then counts[1] of the second … Appends to the cache. The mask, and `positions`, go by a token's
/// place in its sequence; the bits are those of `forward` on the whole sequences. Throws ShapeError
/// for counts that do not fit and CacheFull; the cache may then hold the tokens of some sequences.
template <Scalar T, class Stored>
Tensor<T, 3> cached_attention(const MultiHeadAttention<T>& layer, const Tensor<T, 3>& x,
                              std::span<const Index> counts, KeyValueCache<T, Stored>& cache,
                              const Mask& mask, const Positions& positions = {}) {
  Index total = 0;
  for (const Index count : counts) total = count < 0 ? x.extent(1) + 1 : total + count;
  if (x.extent(0) != 1 || total != x.extent(1) ||
      static_cast<Index>(counts.size()) != cache.shape().batch) {
    throw_shape_error("cached_attention: x is ", x.extents(), ", with tokens of ", counts.size(),
                      " sequences, a cache of ", cache.shape().batch);
  }
  auto [queries, keys, values] = layer.projected(x, x, x);
  const Index head_dim = layer.options.head_dim;
  Index row = 0;
  bool even = true;
  for (Index item = 0; item < cache.shape().batch; ++item) {
    const Index count = counts[static_cast<std::size_t>(item)];
    even = even && count == counts[0];
    if (layer.rotary) {
      const auto rows = detail::heads_of_rows(queries, row, count, head_dim);
      layer.rotary->apply(rows.with_leading_axis(),
                          positions.row(item).columns(cache.length(item), count));
    }
    row += count;
  }
  detail::append_tokens(layer, std::move(keys), values, counts, cache, positions);
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

/// A block for the last tokens of some sequences, in the order of the sequences that have any,
/// where nothing needs what comes out behind the others: of these only keys and values are
/// computed. Otherwise as cached_attention within the block, of which it has the bits.
template <Scalar T, class Stored>
Tensor<T, 3> last_tokens_forward(const SelfAttentionBlock<T>& block, const Tensor<T, 3>& x,
                                 std::span<const Index> counts, KeyValueCache<T, Stored>& cache,
                                 const Mask& mask) {
  const auto others = detail::rows_of_sequences(x, counts, false);
  std::vector<Index> before, ends;
  for (const Index count : counts) {
    before.push_back(count > 0 ? count - 1 : 0);
    ends.push_back(count > 0 ? 1 : 0);
  }
  if (others.size() > 0) {
    const auto& residual = block.attention_residual;
    const auto in = residual.norm_before ? residual.norm.forward(others) : others;
    const auto& layer = block.attention;
    detail::append_tokens(layer, layer.keys(in), layer.projections.forward(Projection::value, in),
                          before, cache, {});
  }
  return block.forward_around(detail::rows_of_sequences(x, counts, true),
                              [&](const Tensor<T, 3>& in) {
                                return cached_attention(block.attention, in, ends, cache, mask);
                              });
}

}  // namespace heed
