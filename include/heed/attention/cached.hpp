// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <type_traits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/key_value_cache.hpp>
#include <heed/core/detail/exceptions.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

namespace detail {

/// True for a cache whose numbers queries Q can meet.
template <class Q, class Held, class Stored>
constexpr bool expect_cache() {
  using From = ValueOf<Q>;
  constexpr bool expected = std::is_same_v<From, bfloat16> ? std::is_same_v<Stored, bfloat16>
                                                           : std::is_same_v<Held, From>;
  static_assert(
      expected,
      "attention: the cache holds another scalar type than the queries have; KeyValueCache<float, "
      "bfloat16> stores bfloat16 for float queries");
  return expected;
}

/// True for tensors that can be appended to a cache.
template <class K, class V, class Held>
constexpr bool expect_tokens() {
  if constexpr (expect_tensors<const K, const V>()) {
    static_assert(std::is_same_v<ValueOf<K>, Held>,
                  "decode: the cache holds another scalar type than the keys and values have; "
                  "KeyValueCache<float, bfloat16> stores float ones as bfloat16");
    return std::is_same_v<ValueOf<K>, Held>;
  }
  return false;
}

/// Whether what stands behind the values of decode is a cache.
template <class Next = void, class... More>
inline constexpr bool begins_with_cache = is_cache<Next>;

/// Calls run(MaskRef) with the mask that also hides the tokens forgotten by a cache.
template <class Cache, class M, class Run>
auto with_forgotten(const Cache& cache, const M& mask, const Run& run) {
  bool forgotten = false;
  for (const Index start : cache.starts()) forgotten = forgotten || start > 0;
  if (!forgotten) return run(MaskRef(mask));
  const auto there =
      mask & (masks::Padding(cache.starts(), cache.lengths()) | masks::Padding(cache.kept()));
  return run(MaskRef(there));
}

/// The checked call of queries against a cache of `lengths` tokens, whose pages `tables` will list.
template <class Q, class Cache, class M, class Out, class T>
AttentionArgs<T> cache_call(const Q& queries, const Cache& cache, std::span<const Index> lengths,
                            const Tensor<const Index*, 1>& tables, const M& mask, const Out& out,
                            AttentionOptions<T> options) {
  Index longest = 0;
  for (const Index length : lengths) longest = larger(longest, length);
  options.key_counts = OwnedArray<Index>::borrowed(lengths);
  auto args = checked_args<T>(as_rank_4(view_of(queries)), cache.template keys<T>(tables, longest),
                              cache.template values<T>(tables, longest), out, options);
  check_mask_fits(MaskRef(mask), args);
  return args;
}

/// Attention over a cache that will hold `lengths` tokens after `append()`, which is called after
/// every check and before the first write.
template <class Q, class Held, class Stored, class M, class Out, class T, class Append>
void attend_to_cache(const Q& queries, const KeyValueCache<Held, Stored>& cache,
                     std::span<const Index> lengths, const M& mask, Out& out,
                     const AttentionOptions<T>& options, const Append& append) {
  if constexpr (expect_cache<Q, Held, Stored>()) {
    Tensor<const Index*, 1> tables({cache.shape().batch});
    const auto args =
        cache_call(queries, cache, lengths, tables, mask, as_rank_4(view_of(out)), options);
    append();
    cache.find_pages(tables);
    with_forgotten(cache, mask, [&](const MaskRef& kept) { run_attention(args, kept); });
  }
}

}  // namespace detail

/// Attention of queries (batch, heads, queries, head_dim) over the tokens of a cache; out (batch,
/// heads, queries, value_dim). Positions are positions in the sequences: unless `first_query` is
/// set, the last query is the last token, so append first, then attend, with the mask for the whole
/// sequence. Each batch item has its own length; tokens past it and forgotten tokens are masked.
/// The bits are those of `attention` with the same keys and values in tensors. A cache that stores
/// bfloat16 serves float and double queries, computed in their own type; bfloat16 queries require
/// such a cache. options.key_counts is ignored: the lengths of the cache count. Without a mask
/// every query sees every token. Throws the errors of `attention` on tensors, before the first
/// write.
template <class Q, class Held, class Stored, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, Out> attention(const Q& queries, const KeyValueCache<Held, Stored>& cache,
                                    const M& mask, Out&& out, const Options& options = {}) {
  if constexpr (detail::expect_local_call_to<Options, M, std::remove_reference_t<Out>, Q>()) {
    detail::attend_to_cache(queries, cache, cache.lengths(), mask, out, options, [] {});
  } else {
    return detail::WrittenTo<Q, Out>();
  }
}
template <class Q, class Held, class Stored, detail::TakesResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, detail::Kept<Out>> attention(const Q& queries,
                                                  const KeyValueCache<Held, Stored>& cache,
                                                  Out&& out, const Options& options = {}) {
  detail::Kept<Out>& to = out;
  return attention(queries, cache, masks::Full{}, to, options);
}

/// The same, returning a new tensor of the queries' rank.
template <class Q, class Held, class Stored, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention(const Q& queries, const KeyValueCache<Held, Stored>& cache, const M& mask,
               const Options& options = {}) {
  if constexpr (!detail::expect_call<Options, M, Q>()) {
    return detail::ResultOf<Q>();
  } else {
    detail::ResultOf<Q> out(
        detail::with_width(view_of(queries).extents(), cache.shape().value_dim));
    attention(queries, cache, mask, out, options);
    return out;
  }
}
template <class Q, class Held, class Stored, detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention(const Q& queries, const KeyValueCache<Held, Stored>& cache,
               const Options& options = {}) {
  return attention(queries, cache, masks::Full{}, options);
}

/// One decoding step, `append` and `attention` in one call: appends the next tokens of every
/// sequence, keys (batch, kv_heads, tokens, head_dim) and values likewise, then lets the queries
/// (batch, heads, queries, head_dim) attend to them and to all tokens before; out (batch, heads,
/// queries, value_dim). A prompt is the same call with more tokens. The mask is that of the whole
/// sequence; without one, as with masks::Full, a query also sees the new tokens after it. Rank 3
/// and 2 as for `attention`. Throws the errors of `append` and `attention`, and what masks and
/// score functions throw, and then leaves the cache unchanged: shapes, options and the mask are
/// checked before the first write, and what was appended is taken back.
template <class Q, class K, class V, class Held, class Stored, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, Out> decode(const Q& queries, const K& keys, const V& values,
                                 KeyValueCache<Held, Stored>& cache, const M& mask, Out&& out,
                                 const Options& options = {}) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::expect_local_call_to<Options, M, To, Q>() &&
                detail::expect_tokens<K, V, Held>()) {
    const TensorView<const Held, 4> more_keys = detail::as_rank_4(view_of(keys));
    const TensorView<const Held, 4> more_values = detail::as_rank_4(view_of(values));
    const auto lengths = detail::lengthened(cache.lengths(), more_keys.extent(2));
    const auto before = cache.ends();
    detail::OnFailure kept([&] { cache.take_back(before); });
    detail::attend_to_cache(queries, cache, detail::list_of(lengths), mask, out, options,
                            [&] { cache.append(more_keys, more_values); });
    kept.done();
  } else {
    return detail::WrittenTo<Q, Out>();
  }
}
template <class Q, class K, class V, class Held, class Stored, detail::TakesResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, detail::Kept<Out>> decode(const Q& queries, const K& keys, const V& values,
                                               KeyValueCache<Held, Stored>& cache, Out&& out,
                                               const Options& options = {}) {
  detail::Kept<Out>& to = out;
  return decode(queries, keys, values, cache, masks::Full{}, to, options);
}

/// The same, returning a new tensor of the queries' rank.
template <class Q, class K, class V, class Held, class Stored, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto decode(const Q& queries, const K& keys, const V& values, KeyValueCache<Held, Stored>& cache,
            const M& mask, const Options& options = {}) {
  if constexpr (!detail::expect_call<Options, M, Q>()) {
    return detail::ResultOf<Q>();
  } else {
    detail::ResultOf<Q> out(
        detail::with_width(view_of(queries).extents(), cache.shape().value_dim));
    decode(queries, keys, values, cache, mask, out, options);
    return out;
  }
}
template <class Q, class K, class V, class Held, class Stored,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto decode(const Q& queries, const K& keys, const V& values, KeyValueCache<Held, Stored>& cache,
            const Options& options = {}) {
  return decode(queries, keys, values, cache, masks::Full{}, options);
}
// Calls that append nothing, or have no cache behind the values.
template <class Q, class K, class V, class... More>
requires(detail::TakesResult<const K> &&
         !detail::begins_with_cache<More...>) const Q& decode(const Q& queries, const K&, const V&,
                                                              const More&...) {
  static_assert(detail::never<Q>,
                "decode has a cache behind the values: decode(queries, keys, values, cache, mask); "
                "without one, call attention(queries, keys, values, mask)");
  return queries;
}
template <class Q, class Held, class Stored, class... More>
const Q& decode(const Q& queries, const KeyValueCache<Held, Stored>&, const More&...) {
  static_assert(detail::never<Q>,
                "decode appends keys and values: decode(queries, keys, values, cache, mask); over "
                "the tokens that a cache has, call attention(queries, cache, mask)");
  return queries;
}
template <class Q, class K, class V, class Cache, class... More>
requires(std::is_const_v<Cache>&& detail::is_cache<std::remove_const_t<Cache>>) const Q& decode(
    const Q& queries, const K&, const V&, Cache&, const More&...) {
  static_assert(detail::never<Q>,
                "decode appends to the cache, which is const here: over the tokens that it has, "
                "call attention(queries, cache, mask)");
  return queries;
}

}  // namespace heed
