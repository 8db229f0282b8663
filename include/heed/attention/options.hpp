// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include <heed/attention/bias_view.hpp>
#include <heed/attention/detail/owned_array.hpp>
#include <heed/attention/score_function.hpp>
#include <heed/attention/weight_dropout.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// `first_query` for causal masks that line up the first query with the first key ("top-left");
/// without it the last query lines up with the last key ("bottom-right").
inline constexpr Index top_left = 0;

/// One value per query, (batch, heads, queries); converts from views and tensors of rank 1
/// (queries) and 2 (heads, queries) too. Empty: not wanted.
template <class T>
class PerQueryView {
 public:
  PerQueryView() = default;
  PerQueryView(TensorView<T, 3> view) : view_(view), given_(true) {}               // NOLINT
  PerQueryView(TensorView<T, 2> view) : PerQueryView(view.with_leading_axis()) {}  // NOLINT
  PerQueryView(TensorView<T, 1> view)                                              // NOLINT
      : PerQueryView(view.with_leading_axis().with_leading_axis()) {}
  PerQueryView(Tensor<T, 3>& tensor) : PerQueryView(tensor.view()) {}  // NOLINT
  PerQueryView(Tensor<T, 2>& tensor) : PerQueryView(tensor.view()) {}  // NOLINT
  PerQueryView(Tensor<T, 1>& tensor) : PerQueryView(tensor.view()) {}  // NOLINT
  template <std::size_t Rank>
  PerQueryView(const Tensor<T, Rank>&&) {  // NOLINT
    static_assert(Rank == 0, "a view of a temporary tensor dangles: give the tensor a name first");
  }

  bool given() const { return given_; }
  const TensorView<T, 3>& view() const { return view_; }

 private:
  TensorView<T, 3> view_;
  bool given_ = false;
};

/// How attention is computed, beyond its tensors and mask. Every default is the usual one. Keeps
/// its arrays and its score_function; tensors (log_sum_exp, relative_bias, bias) it looks at, which
/// does not compile for temporary ones.
template <class T>
struct AttentionOptions {
  /// Factor on queries · keys; any finite value. Default 1 / √head_dim.
  std::optional<T> scale = {};
  /// Absolute position of the first query, as masks see it. Default keys − queries: the last query
  /// lines up with the last key, as in decoding with a cache. `top_left` for the other convention.
  std::optional<Index> first_query = {};
  /// One first query per batch item in place of `first_query`, for sequences of unequal history.
  OwnedArray<Index> first_queries = {};
  /// How many keys each batch item has, of those the tensors hold; the others are not looked at.
  /// Default: all. The last query lines up with the last of these, unless first_query is given.
  OwnedArray<Index> key_counts = {};
  /// Receives ln Σ exp(score) over visible keys, −inf for a query that sees none.
  PerQueryView<T> log_sum_exp = {};

  // Changes of scores, any of them together, in this order: scale, softcap, biases, score_function,
  // mask, softmax with sinks, dropout.

  /// Above 0: scores become softcap · tanh(score / softcap).
  T softcap = 0;
  /// One per head (alibi_slopes(heads)): − slope · |query − key| is added.
  OwnedArray<T> alibi_slopes = {};
  /// (heads or 1, 2·r + 1): what is added at distance key − query = −r … r, the ends holding for
  /// everything beyond. A view: `relative_bias` makes the tensor of a T5 table.
  TensorView<const T, 2> relative_bias = {};
  /// Added to scores.
  BiasView<T> bias = {};
  /// A user's function of score and position.
  ScoreFunction<T> score_function = {};
  /// One per head: e^sink stands in the sum that weights are divided by, as a key without value.
  OwnedArray<T> sinks = {};
  /// Drops weights; for training.
  WeightDropout dropout = {};
};

}  // namespace heed
