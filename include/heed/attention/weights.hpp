// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
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

// Weights. ----------------------------------------------------------------------------------------

namespace detail {

/// expect_call for the functions on weights, which do not take bfloat16.
template <class Options, class M, class Q, class K>
constexpr bool expect_weights_call() {
  if constexpr (!expect_call<Options, M, Q, const K>()) {
    return false;
  } else {
    static_assert(Scalar<ValueOf<Q>>, "weights are those of queries and keys in float or double");
    return Scalar<ValueOf<Q>>;
  }
}

/// A call of queries and keys alone: values and output have width 0.
template <class Q, class K, class M>
AttentionArgs<ValueOf<Q>> weights_args(const Q& queries, const K& keys, const M& mask,
                                       const OptionsOf<Q>& options) {
  using T = ValueOf<Q>;
  const TensorView<const T, 4> query_view = as_rank_4(view_of(queries));
  const TensorView<const T, 4> key_view = as_rank_4(view_of(keys));
  const auto no_values = without_memory<const T>(with_width(key_view.extents(), 0));
  const auto no_out = without_memory<T>(with_width(query_view.extents(), 0));
  auto args = checked_args<T>(query_view, key_view, no_values, no_out, options);
  check_mask_fits(MaskRef(mask), args);
  return args;
}

}  // namespace detail

/// The rows of the weights to compute: some queries of one head of one batch item.
struct WeightRows {
  static constexpr Index to_the_end = -1;
  Index batch = 0;
  Index head = 0;
  Index first = 0;
  Index count = to_the_end;
};

/// The softmax weights of chosen rows, (rows, keys), in O(rows · keys) memory. They are recomputed
/// from queries and keys by the kernels of `attention`, so they are the numbers that `attention`
/// uses with the same arguments, dropout included; masked weights are exactly 0. Eigen queries
/// give an Eigen matrix. Float or double, not bfloat16. options.log_sum_exp is checked but not
/// written. Throws the errors of `attention`, and ShapeError for rows that the queries do not
/// have.
template <class Q, class K, class M, detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention_weights(const Q& queries, const K& keys, const M& mask, const WeightRows& rows,
                       const Options& options = {}) {
  if constexpr (detail::Expression<Q> || detail::Expression<K>) {
    return attention_weights(detail::evaluated(queries), detail::evaluated(keys), mask, rows,
                             options);
  } else if constexpr (!detail::expect_weights_call<Options, M, Q, K>()) {
    return Tensor<float, 2>();
  } else {
    const auto args = detail::weights_args(queries, keys, mask, options);
    const Index length = args.query_count();
    const Index rest = rows.first < length ? length - rows.first : 0;
    const Index count = rows.count == WeightRows::to_the_end ? rest : rows.count;
    if (rows.batch < 0 || rows.batch >= args.batch() || rows.head < 0 ||
        rows.head >= args.heads() || rows.first < 0 || count < 0 || rows.first > length - count) {
      throw_shape_error("attention_weights: batch ", rows.batch, ", head ", rows.head, ", ", count,
                        " rows from ", rows.first, " on; expected some of queries ",
                        args.queries.extents());
    }
    auto out = detail::new_result<Q>(Extents<2>{count, args.key_count()});
    detail::run_weights(args, MaskRef(mask), rows.batch, rows.head, rows.first, view_of(out));
    return out;
  }
}

/// All softmax weights, (…, queries, keys) with the leading axes of the queries. They are as large
/// as the score matrix that `attention` never stores: for small inputs and for inspection. Without
/// a mask every query sees every key.
template <class Q, class K, detail::MeantAsMask M, detail::IsOptions Options = detail::OptionsOf<Q>>
requires(!std::same_as<M, WeightRows>) auto attention_weights(const Q& queries, const K& keys,
                                                              const M& mask,
                                                              const Options& options = {}) {
  if constexpr (detail::Expression<Q> || detail::Expression<K>) {
    return attention_weights(detail::evaluated(queries), detail::evaluated(keys), mask, options);
  } else if constexpr (!detail::expect_weights_call<Options, M, Q, K>()) {
    return detail::ResultOf<Q>();
  } else {
    const auto args = detail::weights_args(queries, keys, mask, options);
    auto out =
        detail::new_result<Q>(detail::with_width(view_of(queries).extents(), args.key_count()));
    const TensorView<ValueOf<Q>, 4> all = detail::as_rank_4(view_of(out));
    for (Index item = 0; item < args.batch(); ++item) {
      for (Index head = 0; head < args.heads(); ++head) {
        detail::run_weights(args, MaskRef(mask), item, head, 0,
                            all.select(0, item).select(0, head));
      }
    }
    return out;
  }
}
template <class Q, class K, detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention_weights(const Q& queries, const K& keys, const Options& options = {}) {
  return attention_weights(queries, keys, masks::Full{}, options);
}
template <class Q, class K, std::same_as<WeightRows> Rows,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto attention_weights(const Q& queries, const K& keys, const Rows& rows,
                       const Options& options = {}) {
  return attention_weights(queries, keys, masks::Full{}, rows, options);
}
// Values have no part in weights.
template <class Q, class K, class V, class... More>
requires detail::TakesResult<const V>
const Q& attention_weights(const Q& queries, const K&, const V&, const More&...) {
  static_assert(detail::never<V>,
                "weights need no values: attention_weights(queries, keys, mask); a tensor is a "
                "mask as heed::masks::Dense(tensor)");
  return queries;
}

// Without keys there are none.
template <detail::TakesResult Q>
const Q& attention_weights(const Q& queries) {
  static_assert(detail::never<Q>,
                "weights are of queries and keys: attention_weights(queries, keys, mask)");
  return queries;
}

namespace detail {

/// The mean of maps that lie one behind the other, to `to`.
template <class T>
void mean_of_maps(const T* from, Index maps, Index size, T* to) {
  const auto take = [&](auto run, Index first) {
    T sums[run] = {};
    for (Index map = 0; map < maps; ++map) {
      const T* part = from + map * size + first;
      for (Index i = 0; i < run; ++i) sums[i] += part[i];
    }
    for (Index i = 0; i < run; ++i) to[first + i] = sums[i] / static_cast<T>(maps);
  };
  using One = std::integral_constant<Index, 1>;
  using Many = std::integral_constant<Index, 64>;  // compilers make vectors of them, with -O2 too
  Index i = 0;
  for (; i + Many::value <= size; i += Many::value) take(Many{}, i);
  for (; i < size; ++i) take(One{}, i);
}

}  // namespace detail

/// The mean of weights (batch, heads, queries, keys) over the heads: (batch, queries, keys).
template <class T>
Tensor<T, 3> mean_over_heads(const Tensor<T, 4>& weights) {
  const Index heads = weights.extent(1), map = weights.extent(2) * weights.extent(3);
  Tensor<T, 3> mean({weights.extent(0), weights.extent(2), weights.extent(3)});
  for (Index item = 0; item < weights.extent(0); ++item) {
    detail::mean_of_maps(weights.data() + item * heads * map, heads, map, mean.data() + item * map);
  }
  return mean;
}
/// The mean of weights (heads, queries, keys): (queries, keys).
template <class T>
Tensor<T, 2> mean_over_heads(const Tensor<T, 3>& weights) {
  Tensor<T, 2> mean({weights.extent(1), weights.extent(2)});
  detail::mean_of_maps(weights.data(), weights.extent(0), mean.size(), mean.data());
  return mean;
}

namespace detail {

/// The weights unchanged for rank 4, or their mean over the heads for rank 3.
template <std::size_t Rank, class T>
Tensor<T, Rank> all_or_mean(Tensor<T, 4> weights) {
  static_assert(Rank == 3 || Rank == 4, "weights are of rank 4, or 3 for the mean over heads");
  if constexpr (Rank == 3) return mean_over_heads(weights);
  if constexpr (Rank == 4) return weights;
}

}  // namespace detail

// Statistics of weights. --------------------------------------------------------------------------

/// Statistics of all softmax weights, computed without storing them.
template <class T>
struct WeightSummary {
  Tensor<T, 3> key_sums;  // (batch, heads, keys): the sum of each key's weights over the queries
  Tensor<T, 3> largest;   // (batch, heads, queries): the largest weight of a query; NaN if one is
  Tensor<Index, 3> favorite;  // (batch, heads, queries): its first key; −1: all weights are 0
};

namespace detail {

template <class T>
WeightSummary<T> summary_of(const AttentionArgs<T>& args, const MaskRef& mask) {
  const Index rows = args.query_count(), columns = args.key_count();
  WeightSummary<T> result{Tensor<T, 3>({args.batch(), args.heads(), columns}),
                          Tensor<T, 3>({args.batch(), args.heads(), rows}),
                          Tensor<Index, 3>({args.batch(), args.heads(), rows})};
  Tensor<T, 2> weights({simd::query_block, columns});
  for (Index item = 0; item < args.batch(); ++item) {
    for (Index head = 0; head < args.heads(); ++head) {
      Tensor<double, 1> sums({columns});
      for (Index first = 0; first < rows; first += simd::query_block) {
        const Index count = first + simd::query_block < rows ? simd::query_block : rows - first;
        run_weights(args, mask, item, head, first, weights.view().slice(0, 0, count));
        for (Index row = 0; row < count; ++row) {
          T& largest = result.largest(item, head, first + row) = 0;
          Index& favorite = result.favorite(item, head, first + row) = -1;
          for (Index key = 0; key < columns; ++key) {
            const T weight = weights(row, key);
            sums(key) += static_cast<double>(weight);
            const bool first_nan = weight != weight && largest == largest;
            if (weight > largest || first_nan) largest = weight, favorite = key;
          }
        }
      }
      for (Index key = 0; key < columns; ++key) {
        result.key_sums(item, head, key) = static_cast<T>(sums(key));
      }
    }
  }
  return result;
}

}  // namespace detail

/// The summary of the weights that `attention` uses with the same arguments: to find the keys to
/// which no query attends, or to see where a head looks. O(64 · keys) memory beside the result;
/// sums run over the queries in order, in double. Throws the errors of `attention`.
template <class Q, class K, class M, detail::IsOptions Options = detail::OptionsOf<Q>>
auto summarize_weights(const Q& queries, const K& keys, const M& mask,
                       const Options& options = {}) {
  if constexpr (detail::expect_weights_call<Options, M, Q, K>()) {
    const auto args = detail::weights_args(queries, keys, mask, options);
    return detail::summary_of(args, MaskRef(mask));
  } else {
    return WeightSummary<float>();
  }
}
template <class Q, class K, detail::IsOptions Options = detail::OptionsOf<Q>>
auto summarize_weights(const Q& queries, const K& keys, const Options& options = {}) {
  return summarize_weights(queries, keys, masks::Full{}, options);
}

}  // namespace heed

#include <heed/definitions/attention.hpp>
