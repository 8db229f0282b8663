// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include <heed/attention/score_function.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/philox.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// Refuses the number that `dropout = 0.1f`, or braces without names, would make a probability: it
/// would drop the same weights in every step.
struct NoNumber {
  NoNumber() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> NoNumber(Number) {  // NOLINT(google-explicit-constructor)
    static_assert(never<Number>,
                  "dropout is {.probability = 0.1f, .seed = step}: another seed in every step");
  }
};

/// Refuses the mask of a call where it is written among the options.
struct NoMask {
  NoMask() = default;
  template <class Given>
  NoMask(const Given&) {  // NOLINT(google-explicit-constructor)
    static_assert(never<Given>,
                  "the mask is no option but an argument: attention(queries, keys, values, "
                  "heed::masks::Causal{}, {.scale = 0.5f}); a window is heed::masks::last_n(size)");
  }
};

/// Refuses the tensor that would receive the weights.
struct NoWeights {
  NoWeights() = default;
  template <class Given>
  NoWeights(const Given&) {  // NOLINT(google-explicit-constructor)
    static_assert(
        never<Given>,
        "attention keeps no weights: attention_weights(queries, keys, mask) returns them");
  }
};

}  // namespace detail

/// Dropout of attention weights, for training: each weight becomes zero with this probability; the
/// others are divided by one minus it. The choice is a function of seed, layer and position alone:
/// the same for every tiling, thread count and platform, and in the forward and backward pass. The
/// probability is rounded to a multiple of 1/65536, and the divisor matches. 0: no dropout. Any
/// other needs a seed, a new one for every step; a call without one throws InvalidArgument.
struct WeightDropout {
  [[no_unique_address]] detail::NoNumber names_only = {};
  float probability = 0;
  std::optional<std::uint64_t> seed = {};
  std::uint64_t layer = 0;  // distinguishes layers that share a seed

  template <class Number>
  requires std::is_arithmetic_v<Number>
  void operator=(Number number) { names_only = detail::NoNumber(number); }
};

namespace detail {

/// The kernels of a call whose numbers are rounded to bfloat16, by the active instruction set.
template <class T>
struct RoundingKernels {
  const simd::Bfloat16Kernels<T>& (*conversions)() = nullptr;
  const simd::PairKernels<T>* (*pairs)() = nullptr;
  simd::PairBackwardKernel<T> (*pair_gradients)() = nullptr;
};

}  // namespace detail

/// How attention multiplies. Knows the kernels, so that only programs that choose products compile
/// those for bfloat16.
template <class T>
class AttentionProducts {
 public:
  AttentionProducts() = default;
  AttentionProducts(Products products)  // NOLINT(google-explicit-constructor): a choice converts
      : products_(products) {
    if constexpr (std::is_same_v<T, float>) {
      static constexpr detail::RoundingKernels<T> kernels{
          simd::bfloat16_kernels<T>, simd::pair_kernels<T>, simd::pair_backward_kernel<T>};
      if (products == Products::bfloat16) rounding_ = &kernels;
    }
  }
  operator Products() const { return products_; }  // NOLINT(google-explicit-constructor)

  /// Null: nothing is rounded.
  const detail::RoundingKernels<T>* rounding() const { return rounding_; }

 private:
  Products products_ = Products::exact;
  const detail::RoundingKernels<T>* rounding_ = nullptr;
};

namespace detail {

/// A WeightDropout in units of its draws: of 65536 equally likely values, the first `dropped` are
/// dropped.
struct DropoutDraws {
  std::uint32_t dropped = 0;
  PhiloxKey key{};

  explicit DropoutDraws(const WeightDropout& dropout)
      : dropped(static_cast<std::uint32_t>(dropout.probability * 65536.0f + 0.5f)) {
    const std::uint64_t mixed = dropout.seed.value_or(0) + dropout.layer * 0x9E3779B97F4A7C15u;
    key = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
  }

  double factor() const { return dropped == 65536 ? 0.0 : 65536.0 / (65536.0 - dropped); }

  /// Bit i: whether the weight of key 8·group + i stays. One Philox block decides eight keys.
  unsigned keep(const Position& at, Index group) const {
    const auto low = [](Index value) { return static_cast<std::uint32_t>(value); };
    const auto words = philox({low(group), low(at.query), low(at.head), low(at.batch)}, key);
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const std::uint32_t draw = words[i / 2] >> (i % 2 * 16) & 0xFFFF;
      bits |= static_cast<unsigned>(draw >= dropped) << i;
    }
    return bits;
  }

  /// The counters of several groups or queries from a position on, for the kernels.
  simd::DropoutLanes lanes(const Position& at, Index group, std::uint32_t group_step,
                           std::uint32_t query_step, Index count) const {
    const auto low = [](Index value) { return static_cast<std::uint32_t>(value); };
    return {low(group), low(at.query),    low(at.head), low(at.batch), group_step,
            query_step, {key[0], key[1]}, dropped,      count};
  }
};

}  // namespace detail

/// Whether dropout keeps the weight at a position (absolute, as masks see it).
inline bool keeps(const WeightDropout& dropout, const Position& at) {
  return (detail::DropoutDraws(dropout).keep(at, at.key >> 3) >> (at.key & 7) & 1) != 0;
}

/// `first_query` for causal masks that align the first query with the first key ("top-left"); the
/// default aligns the last query with the last key ("bottom-right").
inline constexpr Index top_left = 0;

/// Options of attention beyond its tensors and mask. Every default is the usual choice. Owns its
/// arrays and its score_function, but refers to its tensors (log_sum_exp, relative_bias, bias), so
/// temporary tensors do not compile.
template <class T = float>
struct AttentionOptions {
  static_assert(!std::is_same_v<T, bfloat16>,
                "options are float where tensors are bfloat16: AttentionOptions<float>");

  /// Factor on queries · keys; any finite value. Default 1 / √head_dim.
  std::optional<T> scale = {};
  /// Absolute position of the first query, as masks see it. Default keys − queries: the last query
  /// aligns with the last key, as in decoding with a cache. `top_left` for the other convention.
  std::optional<Index> first_query = {};
  /// One first query per batch item instead of `first_query`, for sequences with histories of
  /// different lengths.
  OwnedArray<Index> first_queries = {};
  /// Number of keys of each batch item; keys in the tensors past it are not read. Default: all.
  /// Unless first_query or first_queries is given, the last query aligns with the last of these
  /// keys.
  OwnedArray<Index> key_counts = {};
  /// Receives ln Σ exp(score) over visible keys, before dropout: (batch, heads, queries), or rank 2
  /// or 1 without the leading axes. −inf for a query that sees none. With `sinks`, the head's sink
  /// is one more score of the sum, and the result for a query that sees no key is the sink.
  OptionalView<T, 3> log_sum_exp = {};
  /// Products::bfloat16 rounds queries, keys and values to bfloat16, to nearest, as they are read,
  /// for mixed precision: the call has the bits of one on bfloat16 tensors, except that its output
  /// is not rounded, and so have its gradients. For float; any other T has exact products only.
  AttentionProducts<T> products = {};

  // Score modifications. They combine freely and apply in this order: scale, softcap, biases,
  // score_function, mask, softmax with sinks, dropout.

  /// Scores become softcap · tanh(score / softcap); 0: no softcap. A negative or NaN softcap, or
  /// one whose double is not finite, is an InvalidArgument.
  T softcap{};
  /// One per head (see alibi_slopes(heads)): adds −slope · |query − key|.
  OwnedArray<T> alibi_slopes = {};
  /// (heads or 1, 2·r + 1): the bias at distance key − query = −r … r; the two ends apply to
  /// everything beyond. A view: `relative_bias` builds the tensor from a T5 table.
  TensorView<const T, 2> relative_bias = {};
  /// Added to the scores: (batch, heads, queries, keys), or rank 3 to 1 without the leading axes;
  /// an axis of extent 1 is broadcast. A bias of −inf hides a key from a query, like the additive
  /// masks of other libraries; a mask does so without reading memory.
  OptionalView<const T, 4> bias = {};
  /// A user-defined function of score and position.
  ScoreFunction<T> score_function = {};
  /// One per head: adds e^sink to the sum that weights are divided by, like a key without a value.
  OwnedArray<T> sinks = {};
  /// Drops weights at random; for training.
  WeightDropout dropout = {};

  // The options that other libraries have do not compile, with a sentence.
  [[no_unique_address]] detail::NoMask is_causal = {}, causal = {}, mask = {}, attn_mask = {},
                                       window_size = {};
  [[no_unique_address]] detail::NoNumber dropout_p = {};
  [[no_unique_address]] detail::NoWeights weights = {}, return_weights = {};
};

/// Further inputs and outputs of attention_backward, beside the gradients of output, queries, keys
/// and values. Every default is "none". An output is overwritten, has the shape of its
/// AttentionOptions counterpart, and is a sum where that value applied to several scores.
template <class T = float>
struct GradientOptions {
  /// In: the gradient of the loss with respect to log_sum_exp, if the loss depends on it: (batch,
  /// heads, queries), or rank 2 or 1 without the leading axes.
  OptionalView<const T, 3> grad_log_sum_exp = {};
  /// Out: the gradient of options.bias, with the bias's own extents: 1 for a broadcast axis.
  /// Computes the scores a second time if the bias is broadcast along heads, queries or keys, or
  /// along a batch of fewer key heads than threads.
  OptionalView<T, 4> grad_bias = {};
  /// Out: the gradients of options.relative_bias and alibi_slopes.
  TensorView<T, 2> grad_relative_bias = {};
  std::span<T> grad_alibi_slopes = {};
  /// Out: the gradient of options.sinks.
  std::span<T> grad_sinks = {};
};

}  // namespace heed
