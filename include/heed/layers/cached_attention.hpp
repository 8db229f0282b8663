// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/attention/cached.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/layers/multi_head_attention.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/rotary.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Appends tokens to one sequence of a cache, their keys rotated to their new positions: the same
/// numbers as Rotary::apply from cache.length(item) on and then KeyValueCache::append. Takes keys
/// (kv_heads, tokens, head_dim), which it leaves as they are, and values (kv_heads, tokens,
/// value_dim). Throws the errors of those two and then leaves the cache as it was.
template <ModelScalar T, class Stored>
void append_rotated(KeyValueCache<T, Stored>& cache, Index item, const Rotary& rotary,
                    const TensorView<const std::type_identity_t<T>, 3>& keys,
                    const TensorView<const std::type_identity_t<T>, 3>& values) {
  auto rotated = Tensor<T, 3>::copy_of(keys);
  rotary.apply(rotated.view().with_leading_axis(), cache.length(item));
  cache.append(item, rotated.view(), values);
}

/// The same for every sequence, each from its own length on: keys (batch, kv_heads, tokens,
/// head_dim), values (batch, kv_heads, tokens, value_dim).
template <ModelScalar T, class Stored>
void append_rotated(KeyValueCache<T, Stored>& cache, const Rotary& rotary,
                    const TensorView<const std::type_identity_t<T>, 4>& keys,
                    const TensorView<const std::type_identity_t<T>, 4>& values) {
  auto rotated = Tensor<T, 4>::copy_of(keys);
  for (Index item = 0; item < keys.extent(0) && item < cache.shape().batch; ++item) {
    rotary.apply(rotated.view().slice(0, item, item + 1), cache.length(item));
  }
  cache.append(rotated, values);
}

namespace detail {

/// A view of rows first to first + count − 1 of (…, heads · head_dim) as (heads, count, head_dim).
template <class Rows>
auto heads_of_rows(Rows& rows, Index first, Index count, Index head_dim) {
  return as_rows(rows).slice(0, first, first + count).split(1, head_dim).permute({1, 0, 2});
}

/// Rotates rows (1, tokens, heads · head_dim) to the positions of the next tokens, where the layer
/// rotates.
template <ModelScalar T, class Cache>
void rotate_new_rows(const MultiHeadAttention<T>& layer, Tensor<T, 3>& rows,
                     std::span<const Index> counts, const Cache& cache,
                     const Positions& positions) {
  if (!layer.rotary) return;
  Index row = 0;
  for (Index item = 0; item < cache.shape().batch; ++item) {
    const Index count = counts[static_cast<std::size_t>(item)];
    const auto heads = heads_of_rows(rows, row, count, layer.options.head_dim);
    layer.rotary->apply(heads.with_leading_axis(),
                        positions.row(item).columns(cache.length(item), count));
    row += count;
  }
}

/// Appends keys, which it rotates to their positions, and values, (1, tokens, …), to their
/// sequences.
template <ModelScalar T, class Stored>
void append_tokens(const MultiHeadAttention<T>& layer, Tensor<T, 3> keys,
                   const Tensor<T, 3>& values, std::span<const Index> counts,
                   KeyValueCache<T, Stored>& cache, const Positions& positions) {
  cache.check_room(counts);  // before the first of them is written
  rotate_new_rows(layer, keys, counts, cache, positions);
  Index row = 0;
  for (Index item = 0; item < cache.shape().batch; ++item) {
    const Index count = counts[static_cast<std::size_t>(item)];
    cache.append(item, heads_of_rows(keys, row, count, layer.options.head_dim),
                 heads_of_rows(values, row, count, layer.options.head_dim));
    row += count;
  }
}

/// Throws ShapeError unless x (1, tokens, width) has the tokens of `counts`, one for each sequence.
template <ModelScalar T>
void check_counts(const char* call, const Tensor<T, 3>& x, std::span<const Index> counts,
                  Index sequences) {
  Index total = 0;
  for (const Index count : counts) {
    total = count < 0 || count > x.extent(1) - total ? x.extent(1) + 1 : total + count;
    if (total > x.extent(1)) break;
  }
  if (x.extent(0) == 1 && total == x.extent(1) && static_cast<Index>(counts.size()) == sequences) {
    return;
  }
  throw_shape_error(call, ": x is ", x.extents(), ", with tokens of ", counts.size(),
                    " sequences, a cache of ", sequences);
}

/// The rows of x (1, tokens, width) that are the last of their sequences, or all other rows.
template <ModelScalar T>
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

/// The shape that a mask has to fit for the new tokens of all sequences.
template <class Cache>
MaskShape new_tokens_shape(const Cache& cache, std::span<const Index> counts, Index heads) {
  MaskShape shape{cache.shape().batch, heads};
  shape.first_query = std::numeric_limits<Index>::max();
  shape.last_query = -1;
  for (Index item = 0; item < shape.batch; ++item) {
    const Index length = cache.length(item), count = counts[static_cast<std::size_t>(item)];
    shape.keys = larger(shape.keys, length);
    if (count == 0) continue;
    shape.queries = larger(shape.queries, count);
    shape.first_query = smaller(shape.first_query, length - count);
    shape.last_query = larger(shape.last_query, length - 1);
  }
  return shape;
}

/// Attention of the new tokens, of which there are some: a call for each run of sequences with one
/// number of them. Were queries padded to one number, masks would be asked about positions that do
/// not exist.
template <ModelScalar T, class Stored>
void attend_new_tokens(const MultiHeadAttention<T>& layer, const Tensor<T, 3>& queries,
                       std::span<const Index> counts, const KeyValueCache<T, Stored>& cache,
                       const Mask& mask, Tensor<T, 3>& context) {
  mask.check(new_tokens_shape(cache, counts, layer.options.heads));
  Tensor<const Index*, 1> tables({cache.shape().batch});
  cache.find_pages(tables);
  auto options = layer.kernel_options();
  options.first_query.reset();
  for (std::size_t first = 0, end = 0, row = 0; first < counts.size(); first = end) {
    const Index count = counts[first];
    while (end < counts.size() && counts[end] == count) ++end;
    const std::size_t sequences = end - first, rows = sequences * static_cast<std::size_t>(count);
    const auto lengths = cache.lengths().subspan(first, sequences);
    const auto of_run = [&](auto& all) {
      const auto begin = static_cast<Index>(row), length = static_cast<Index>(rows);
      const auto tokens = as_rows(all).slice(0, begin, begin + length).split(0, count);
      return tokens.split(2, layer.options.head_dim).permute({0, 2, 1, 3});
    };
    if (count > 0) {
      options.key_counts = OwnedArray<Index>::borrowed(lengths);
      const auto longest = *std::max_element(lengths.begin(), lengths.end());
      const auto pages = std::span(tables.data(), counts.size()).subspan(first, sequences);
      auto args =
          checked_args<T>(of_run(queries), cache.template keys<T>(pages, longest),
                          cache.template values<T>(pages, longest), of_run(context), options);
      args.item_offset = static_cast<Index>(first);
      with_forgotten(cache, mask, [&](const MaskRef& kept) { run_attention(args, kept); });
    }
    row += rows;
  }
}

}  // namespace detail

/// Self-attention of the next tokens of several sequences over themselves and all tokens before
/// them, whose keys and values are in the cache. x (1, tokens, model_dim) holds counts[0] tokens of
/// the first sequence, then counts[1] of the second, and so on; their keys and values are appended
/// to the cache. The mask and `positions` use a token's place in its sequence. Same bits as
/// `forward` on whole sequences. Throws ShapeError for counts that do not fit, and CacheFull; the
/// cache may then hold the new tokens of some sequences.
template <ModelScalar T, class Stored>
Tensor<T, 3> cached_attention(const MultiHeadAttention<T>& layer, const Tensor<T, 3>& x,
                              std::span<const Index> counts, KeyValueCache<T, Stored>& cache,
                              const Mask& mask, const Positions& positions = {}) {
  detail::check_counts("cached_attention", x, counts, cache.shape().batch);
  auto [queries, keys, values] = layer.projected(x, x, x);
  detail::rotate_new_rows(layer, queries, counts, cache, positions);
  detail::append_tokens(layer, std::move(keys), values, counts, cache, positions);
  auto context = Tensor<T, 3>::uninitialized(queries.extents());
  if (x.extent(1) > 0) {
    detail::attend_new_tokens(layer, queries, counts, cache, layer.seen(mask), context);
  }
  return layer.out.forward(context);
}

/// The outputs of a block, with cached_attention inside, for only the last new token of each
/// sequence that has new ones, (1, sequences with new tokens, model_dim), in the order of the
/// sequences. x, `counts` and the errors are those of cached_attention. For the other tokens only
/// keys and values are computed, which saves most of the work of the last block of a prompt. Same
/// bits as the whole block.
template <ModelScalar T, class Stored>
Tensor<T, 3> last_tokens_forward(const SelfAttentionBlock<T>& block, const Tensor<T, 3>& x,
                                 std::span<const Index> counts, KeyValueCache<T, Stored>& cache,
                                 const Mask& mask) {
  detail::check_counts("last_tokens_forward", x, counts, cache.shape().batch);
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
