// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <type_traits>

#include <heed/attention/detail/owned_array.hpp>
#include <heed/attention/forward.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/scalar.hpp>
#include <heed/masks/full.hpp>

namespace heed {

/// Where the sequences of a packed batch begin and end: sequence s has the queries [queries[s],
/// queries[s + 1]) and the keys [keys[s], keys[s + 1]). One array for both in self-attention.
/// Refers to arrays that have a name, which must outlive it, and keeps temporary ones.
struct PackedOffsets {
  template <class Offsets>
  requires(std::is_convertible_v<const Offsets&, std::span<const Index>>)
      PackedOffsets(Offsets&& both)  // NOLINT: one array converts
      : queries(kept<Offsets>(both)), keys(queries) {}
  template <class Queries, class Keys>
  requires(std::is_convertible_v<const Queries&, std::span<const Index>>&&
               std::is_convertible_v<const Keys&, std::span<const Index>>)
      PackedOffsets(Queries&& of_queries, Keys&& of_keys)
      : queries(kept<Queries>(of_queries)), keys(kept<Keys>(of_keys)) {}

  Index count() const { return queries.empty() ? 0 : static_cast<Index>(queries.size()) - 1; }

  OwnedArray<Index> queries;
  OwnedArray<Index> keys;

 private:
  template <class Offsets>
  static OwnedArray<Index> kept(const std::remove_reference_t<Offsets>& offsets) {
    constexpr bool refers = std::is_lvalue_reference_v<Offsets> ||
                            std::ranges::enable_borrowed_range<std::remove_cvref_t<Offsets>>;
    if constexpr (refers) return OwnedArray<Index>::borrowed(offsets);
    return OwnedArray<Index>(offsets);
  }
};

namespace detail {

inline void check_offsets(const char* name, std::span<const Index> offsets, Index tokens) {
  bool ascending = !offsets.empty() && offsets.front() == 0 && offsets.back() == tokens;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    ascending = ascending && offsets[i - 1] <= offsets[i];
  }
  if (!ascending) {
    throw_shape_error("packed_attention: ", name, " offsets must ascend from 0 to the ", tokens,
                      " tokens of the buffer");
  }
}

template <class T>
AttentionProblem<T> one_sequence(const AttentionProblem<T>& packed, const PackedOffsets& offsets,
                                 Index sequence) {
  const auto at = static_cast<std::size_t>(sequence);
  const Index first = offsets.queries[at], last = offsets.queries[at + 1];
  const Index first_key = offsets.keys[at], last_key = offsets.keys[at + 1];
  AttentionProblem<T> one = packed;
  one.queries = packed.queries.slice(first, last);
  one.out = packed.out.slice(first, last);
  one.keys = packed.keys.slice(first_key, last_key);
  one.values = packed.values.slice(first_key, last_key);
  if (packed.log_sum_exp.given()) one.log_sum_exp = packed.log_sum_exp.view().slice(2, first, last);
  one.item_offset = sequence;
  return one;
}

/// Fails for what cannot be told apart by sequence.
template <class T>
void check_packed(const AttentionProblem<T>& packed, const PackedOffsets& offsets,
                  const AttentionOptions<T>& options) {
  check_offsets("query", offsets.queries, packed.query_count());
  check_offsets("key", offsets.keys, packed.key_count());
  if (offsets.queries.size() != offsets.keys.size()) {
    throw_shape_error("packed_attention: ", offsets.count(), " sequences of queries, ",
                      offsets.keys.size() - 1, " of keys");
  }
  if (packed.batch() != 1 || options.bias.given() || !options.first_queries.empty() ||
      !options.key_counts.empty()) {
    throw_shape_error("packed_attention: takes no batch, bias, first_queries or key_counts: ",
                      "sequences are told apart by offsets");
  }
}

/// What a mask has to fit: the largest sequence, and wherever queries of any stand.
template <class T>
MaskShape packed_mask_shape(const AttentionProblem<T>& packed, const PackedOffsets& offsets) {
  MaskShape all{offsets.count(), packed.heads(), 0, 0};
  for (Index s = 0; s < offsets.count(); ++s) {
    const MaskShape one = mask_shape_of(one_sequence(packed, offsets, s));
    all.first_query = s == 0 ? one.first_query : smaller(all.first_query, one.first_query);
    all.last_query = s == 0 ? one.last_query : larger(all.last_query, one.last_query);
    all.queries = larger(all.queries, one.queries);
    all.keys = larger(all.keys, one.keys);
  }
  return all;
}

/// Calls run(sequence). Many sequences: one each for the threads. A few: the threads share one
/// after the other.
template <class Run>
void for_each_sequence(const PackedOffsets& offsets, const Run& run) {
  if (offsets.count() >= 4 * thread_count()) {
    parallel_for(offsets.count(), run);
  } else {
    for (Index s = 0; s < offsets.count(); ++s) run(s);
  }
}

}  // namespace detail

/// Attention within each of many sequences that stand one behind the other in one buffer: no
/// padding is stored or computed. queries (heads, tokens, head_dim), keys and values (kv_heads,
/// tokens, dim), out (heads, tokens, value_dim). The mask sees each sequence by itself: positions
/// count from its begin, and `batch` is its number. As if every sequence were an `attention` call.
/// Without a mask every query sees every key of its sequence.
template <class Q, class K, class V, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void packed_attention(const Q& queries, const K& keys, const V& values,
                      const PackedOffsets& offsets, const M& mask, Out&& out,
                      const Options& options = {}) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::expect_call_to<Options, M, To, Q, const K, const V>()) {
    const auto packed = detail::checked_call<ValueOf<Q>>(
        detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
        detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out)), options);
    detail::check_packed(packed, offsets, options);
    check_mask(mask, detail::packed_mask_shape(packed, offsets));
    const MaskRef reference(mask);
    detail::for_each_sequence(offsets, [&](Index s) {
      detail::run_attention(detail::one_sequence(packed, offsets, s), reference);
    });
  }
}
template <class Q, class K, class V, detail::TakesResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
void packed_attention(const Q& queries, const K& keys, const V& values,
                      const PackedOffsets& offsets, Out&& out, const Options& options = {}) {
  packed_attention(queries, keys, values, offsets, masks::Full{}, out, options);
}

/// The same, with the result as a new tensor of the queries' rank.
template <class Q, class K, class V, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto packed_attention(const Q& queries, const K& keys, const V& values,
                      const PackedOffsets& offsets, const M& mask, const Options& options = {}) {
  if constexpr (!detail::expect_call<Options, M, Q, const K, const V>()) {
    return detail::ResultOf<Q>();
  } else {
    detail::ResultOf<Q> out(detail::result_extents(view_of(queries), view_of(values)));
    packed_attention(queries, keys, values, offsets, mask, out, options);
    return out;
  }
}
template <class Q, class K, class V, detail::IsOptions Options = detail::OptionsOf<Q>>
auto packed_attention(const Q& queries, const K& keys, const V& values,
                      const PackedOffsets& offsets, const Options& options = {}) {
  return packed_attention(queries, keys, values, offsets, masks::Full{}, options);
}

}  // namespace heed
