// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <heed/attention/forward.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/attention_inputs.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/projections.hpp>
#include <heed/layers/rotary.hpp>
#include <heed/layers/score_bias.hpp>
#include <heed/masks/mask.hpp>

namespace heed {

/// Attention of tokens over themselves (self) or over others (cross), under any mask: project,
/// attend, project back. Vaswani et al. 2017; grouped heads after Ainslie et al. 2023. Rotary turns
/// by `positions`; the mask goes by columns, the last query on the last key or options.top_left.
template <Scalar T>
struct MultiHeadAttention {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Input query;
    std::optional<Input> key, value;  // where they are not the query, and not the key
    AttentionInputs<T> inputs;
    typename Norm<T>::Saved query_norm, key_norm;
    Tensor<T, 3> context, log_sum_exp;
    std::optional<Mask> mask;
    Positions positions;
    Noise noise;
  };

  MultiHeadAttention() = default;
  MultiHeadAttention(const MultiHeadAttentionOptions& given, Random& random)
      : options(detail::completed(given)),
        projections(options, random),
        score_bias(options),
        out({options.heads * options.head_dim, options.model_dim, options.output_bias}, random) {
    if (options.query_key_norm) {
      const NormOptions norm{*options.query_key_norm, options.head_dim, options.norm_epsilon};
      query_norm.emplace(norm);
      key_norm.emplace(norm);
    }
    if (options.rotary) rotary.emplace(*options.rotary, options.head_dim);
    if (options.dropout > 0) stream = random.bits();
  }

  /// Self-attention: x (batch, tokens, model_dim).
  Output forward(const Input& x, const Mask& mask, const Positions& positions = {}) const {
    const auto in = inputs(x, x, x, positions);
    return attend(in.queries, in, mask);
  }
  /// Cross-attention: keys come from `key` (batch, keys, kdim), values from `value` (batch, keys,
  /// vdim), often one memory for both.
  Output forward(const Input& query, const Input& key, const Input& value, const Mask& mask) const {
    const auto in = inputs(query, key, value);
    return attend(in.queries, in, mask);
  }
  /// The same, and the weights: a Tensor<T, 4> becomes (batch, heads, queries, keys), a Tensor<T,
  /// 3> their mean over heads, (batch, queries, keys).
  template <std::size_t Rank>
  Output forward(const Input& query, const Input& key, const Input& value, const Mask& mask,
                 Tensor<T, Rank>& weights) const {
    const auto in = inputs(query, key, value);
    weights = detail::all_or_mean<Rank>(
        attention_weights(heads_of(in.queries), heads_of(in.keys), mask, kernel_options()));
    return attend(in.queries, in, mask);
  }
  Output forward(Input x, const Mask& mask, Saved& saved) const {
    return forward(std::move(x), mask, Noise{}, saved);
  }
  Output forward(Input x, const Mask& mask, const Noise& noise, Saved& saved) const {
    return forward(std::move(x), mask, {}, noise, saved);
  }
  Output forward(Input x, const Mask& mask, const Positions& positions, const Noise& noise,
                 Saved& saved) const {
    saved.key = saved.value = {};
    return forward_saved(std::move(x), mask, positions, noise, saved);
  }
  Output forward(Input query, const Input& key, const Input& value, const Mask& mask,
                 Saved& saved) const {
    return forward(std::move(query), key, value, mask, Noise{}, saved);
  }
  Output forward(Input query, const Input& key, const Input& value, const Mask& mask,
                 const Noise& noise, Saved& saved) const {
    saved.value = &value == &key ? std::nullopt : std::optional(value);
    saved.key = key;
    return forward_saved(std::move(query), mask, {}, noise, saved);
  }

  Input backward(const Output& grad, const Saved& saved, MultiHeadAttention& gradients) const {
    Input grad_x(saved.query.extents());
    backward_inputs(grad, saved, gradients, grad_x, grad_x, grad_x);
    return grad_x;
  }
  /// Of cross-attention; adds to grad_key and grad_value, which may be one: a memory's.
  Input backward(const Output& grad, const Saved& saved, MultiHeadAttention& gradients,
                 Input& grad_key, Input& grad_value) const {
    Input grad_query(saved.query.extents());
    backward_inputs(grad, saved, gradients, grad_query, grad_key, grad_value);
    return grad_query;
  }

  /// What the kernel takes, for callers with a cache: rotary positions turn queries and keys.
  AttentionInputs<T> inputs(const Input& query, const Input& key, const Input& value,
                            const Positions& positions = {}, Saved* saved = nullptr) const {
    auto in = projected(query, key, value, saved);
    if (rotary) rotary->apply(heads_of(in.queries), positions);
    if (rotary) rotary->apply(heads_of(in.keys), positions);
    return in;
  }
  /// The same before their positions turn them.
  AttentionInputs<T> projected(const Input& query, const Input& key, const Input& value,
                               Saved* saved = nullptr) const {
    if (&query != &key || &key != &value) {
      return {queries(query, saved), keys(key, saved),
              projections.forward(Projection::value, value)};
    }
    auto [queries, keys, values] = projections.forward(query);
    return {normed(Projection::query, std::move(queries), saved),
            normed(Projection::key, std::move(keys), saved), std::move(values)};
  }
  /// Keys and values alone: those of a memory are computed once for many queries.
  AttentionInputs<T> memory_inputs(const Input& memory, const Positions& positions = {}) const {
    AttentionInputs<T> in{{}, keys(memory), projections.forward(Projection::value, memory)};
    if (rotary) rotary->apply(heads_of(in.keys), positions);
    return in;
  }
  /// Queries, or keys, before their positions turn them.
  Tensor<T, 3> queries(const Input& x, Saved* saved = nullptr) const {
    return normed(Projection::query, projections.forward(Projection::query, x), saved);
  }
  Tensor<T, 3> keys(const Input& memory, Saved* saved = nullptr) const {
    return normed(Projection::key, projections.forward(Projection::key, memory), saved);
  }
  /// Attention of x over keys and values that memory_inputs gave: the same bits as over the memory.
  /// `first`: the position of the first query, where options.top_left.
  Output forward(const Input& x, const AttentionInputs<T>& memory, const Mask& mask,
                 Index first = 0) const {
    auto rows = queries(x);
    if (rotary) rotary->apply(heads_of(rows), first);
    return attend(rows, memory, mask, first);
  }
  /// (batch, tokens, heads · head_dim) as (batch, heads, tokens, head_dim), on the same memory.
  auto heads_of(auto& x) const { return x.view().split(2, options.head_dim).permute({0, 2, 1, 3}); }
  /// The options the kernels are called with; weights are dropped where the noise has a seed.
  AttentionOptions<T> kernel_options(const Noise& noise = {}, Index first = 0) const {
    AttentionOptions<T> kernel;
    if (options.top_left) kernel.first_query = first;
    if (noise.seed && options.dropout > 0) {
      kernel.dropout = {static_cast<float>(options.dropout), *noise.seed, stream};
    }
    if (options.scale) kernel.scale = static_cast<T>(*options.scale);
    score_bias.apply(kernel);
    return kernel;
  }
  /// All weights, (batch, heads, queries, keys): for looking at.
  Tensor<T, 4> weights(const Input& query, const Input& key, const Mask& mask,
                       const Positions& positions = {}) const {
    auto q = queries(query), k = keys(key);
    if (rotary) rotary->apply(heads_of(q), positions);
    if (rotary) rotary->apply(heads_of(k), positions);
    return attention_weights(heads_of(q), heads_of(k), mask, kernel_options());
  }

  void pack() {
    projections.pack();
    out.pack();
  }

  static auto members(auto& layer) {
    return std::tuple{member("", layer.projections), member("query_norm", layer.query_norm),
                      member("key_norm", layer.key_norm), member("", layer.score_bias),
                      member("out", layer.out)};
  }

  MultiHeadAttentionOptions options;
  Projections<T> projections;
  std::optional<Norm<T>> query_norm, key_norm;
  std::optional<Rotary> rotary;
  ScoreBias<T> score_bias;
  Linear<T> out;
  std::uint32_t stream = 0;  // of dropout, which tells it from other layers

 private:
  Output attend(const Tensor<T, 3>& rows, const AttentionInputs<T>& in, const Mask& mask,
                Index first = 0) const {
    auto context = Tensor<T, 3>::uninitialized(rows.extents());
    attention(heads_of(rows), heads_of(in.keys), heads_of(in.values), mask, heads_of(context),
              kernel_options(Noise{}, first));
    return out.forward(context);
  }
  static const Input& key_of(const Saved& s) { return s.key ? *s.key : s.query; }
  static const Input& value_of(const Saved& s) { return s.value ? *s.value : key_of(s); }
  Output forward_saved(Input query, const Mask& mask, const Positions& positions,
                       const Noise& noise, Saved& saved) const {
    saved.query = std::move(query);
    saved.inputs = inputs(saved.query, key_of(saved), value_of(saved), positions, &saved);
    saved.mask = mask;
    saved.positions = positions;
    saved.noise = noise;
    const auto& rows = saved.inputs.queries;
    saved.context = Tensor<T, 3>::uninitialized(rows.extents());
    saved.log_sum_exp = Tensor<T, 3>({rows.extent(0), options.heads, rows.extent(1)});
    auto kernel = kernel_options(saved.noise);
    kernel.log_sum_exp = saved.log_sum_exp;
    attention(heads_of(rows), heads_of(saved.inputs.keys), heads_of(saved.inputs.values), mask,
              heads_of(saved.context), kernel);
    return out.forward(saved.context);
  }

  void backward_inputs(const Output& grad, const Saved& saved, MultiHeadAttention& gradients,
                       Input& grad_query, Input& grad_key, Input& grad_value) const {
    Tensor<T, 2> grad_bias;
    auto grads = detail::input_gradients(
        *this, saved, out.backward(grad, saved.context, gradients.out), grad_bias);
    score_bias.accumulate(grad_bias, gradients.score_bias);
    grads.queries = before_norm(query_norm, grads.queries, saved.query_norm, gradients.query_norm);
    grads.keys = before_norm(key_norm, grads.keys, saved.key_norm, gradients.key_norm);
    auto& to = gradients.projections;
    projections.backward(Projection::query, grads.queries, saved.query, to, grad_query);
    projections.backward(Projection::key, grads.keys, key_of(saved), to, grad_key);
    projections.backward(Projection::value, grads.values, value_of(saved), to, grad_value);
  }
  /// Each head of queries or keys normed for itself (Dehghani et al. 2023), where there is a norm.
  Tensor<T, 3> normed(Projection which, Tensor<T, 3> rows, Saved* saved) const {
    const bool of_keys = which == Projection::key;
    const auto& norm = of_keys ? key_norm : query_norm;
    if (!norm) return rows;
    const auto heads = rows.view().split(2, options.head_dim);
    auto y = saved ? norm->forward(heads, of_keys ? saved->key_norm : saved->query_norm)
                   : norm->forward(heads);
    return std::move(y).reshaped(rows.extents());
  }
  /// The gradient by queries or keys before their norm, from that behind it.
  Tensor<T, 3> before_norm(const std::optional<Norm<T>>& norm, Tensor<T, 3>& grad,
                           const typename Norm<T>::Saved& saved,
                           std::optional<Norm<T>>& gradients) const {
    if (!norm) return std::move(grad);
    const auto heads = grad.view().split(2, options.head_dim);
    return norm->backward(heads, saved, *gradients).reshaped(grad.extents());
  }
};

}  // namespace heed
