// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/attention/backward.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/options.hpp>
#include <heed/attention/packed.hpp>
#include <heed/attention/relative_bias.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/projections.hpp>
#include <heed/layers/rotary.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Queries (batch, tokens, heads · head_dim), keys and values (batch, tokens, kv_heads · head_dim)
/// as attention takes them: projected, normed and, but for those of `projected`, rotated.
/// `memory_inputs` leaves the queries empty.
template <class T>
struct AttentionInputs {
  Tensor<T, 3> queries, keys, values;
};

/// What attention adds to its scores: a bias by the distance of a key from its query, learned (Shaw
/// et al. 2018, Raffel et al. 2020) or ALiBi's fixed slopes (Press et al. 2022), and learned sinks,
/// one more score for each head, without a value.
template <ModelScalar T>
struct ScoreBias {
  ScoreBias() = default;
  explicit ScoreBias(const MultiHeadAttentionOptions& options) {
    if (options.positions == PositionKind::relative) {
      relative.emplace(Extents<2>{options.heads, 2 * options.relative_reach + 1});
    }
    if (options.positions == PositionKind::alibi) slopes = alibi_slopes<T>(options.heads);
    if (options.sinks) sinks.emplace(Extents<1>{options.heads});
  }

  /// Sets the bias in options of attention, which refer to the numbers here.
  void apply(AttentionOptions<T>& call) const {
    if (relative) call.relative_bias = relative->view();
    call.alibi_slopes = OwnedArray<T>::borrowed(slopes);
    if (sinks) call.sinks = OwnedArray<T>::borrowed(*sinks);
  }
  /// Options with which a backward pass writes the gradients of what is learned to `buffer`.
  GradientOptions<T> gradient_options(ScoreBias& buffer) const {
    GradientOptions<T> wanted;
    if (relative) wanted.grad_relative_bias = buffer.relative.emplace(relative->extents()).view();
    if (sinks) wanted.grad_sinks = buffer.sinks.emplace(sinks->extents());
    return wanted;
  }
  void accumulate(const ScoreBias& buffer, ScoreBias& gradients) const {
    const auto add = [](const auto& from, auto& to) {
      if (from) simd::row_kernels<T>().add(from->data(), to->data(), from->size());
    };
    add(buffer.relative, gradients.relative);
    add(buffer.sinks, gradients.sinks);
  }

  static auto members(auto& bias) {
    return Members{member("relative_bias", bias.relative), member("sinks", bias.sinks)};
  }

  /// (heads, 2 · reach + 1), a number for each distance key − query = −reach … reach; distances
  /// beyond use the ends. Starts at 0. `relative_bias(table, buckets)` makes one from T5's table.
  std::optional<Tensor<T, 2>> relative;
  Tensor<T, 1> slopes;                // one a head
  std::optional<Tensor<T, 1>> sinks;  // one a head; start at 0
};

/// Self-attention (tokens over themselves) or cross-attention (over other tokens), under any mask:
/// project, attend, project back. Vaswani et al. 2017; grouped heads after Ainslie et al. 2023.
/// Rotary positions are those of `positions`; the mask sees the places of tokens in the tensor, see
/// options.top_left.
template <ModelScalar T>
struct MultiHeadAttention {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Input query;
    std::optional<Input> key, value;  // none: the key is the query, the value is the key
    AttentionInputs<T> inputs;
    std::optional<AttentionInputs<bfloat16>> narrow;  // instead, where products are in bfloat16
    typename Norm<T>::Saved query_norm, key_norm;
    Tensor<T, 3> context, log_sum_exp;
    std::optional<Mask> mask;
    Positions positions;
    Noise noise;
  };

  MultiHeadAttention() = default;
  /// Throws InvalidArgument for options that make no layer.
  MultiHeadAttention(const MultiHeadAttentionOptions& given,
                     Random& random = detail::expect_random<T>())
      : options(detail::completed(given)),
        projections(options, random),
        score_bias(options),
        out({options.heads * options.head_dim, options.model_dim, options.output_bias}, random) {
    if (options.query_key_norm) {
      const NormOptions norm{*options.query_key_norm, options.head_dim, options.norm_epsilon};
      query_norm.emplace(norm);
      key_norm.emplace(norm);
    }
    if (options.positions == PositionKind::rotary) {
      rotary.emplace(options.rotary, options.head_dim);
    }
    if (options.dropout > 0) stream = random.bits();
  }
  MultiHeadAttention(Index model_dim, Index heads, Random& random = detail::expect_random<T>())
      : MultiHeadAttention({.model_dim = model_dim, .heads = heads}, random) {}

  /// Self-attention: x (batch, tokens, model_dim). Without a mask every token sees every token.
  Output forward(const Input& x, const Mask& mask = masks::Full{},
                 const Positions& positions = {}) const {
    const auto in = inputs(x, x, x, positions);
    return attend(in.queries, in, mask);
  }
  /// Self-attention within each of many texts that lie back to back in x (1, tokens, model_dim):
  /// none of them is padded, and each has the bits of a call by itself. The mask sees a text as
  /// packed_attention says; positions are the caller's, see positions_of. Throws ShapeError for
  /// offsets that do not ascend from 0 to the number of tokens.
  Output forward_packed(const Input& x, const PackedOffsets& texts, const Mask& mask,
                        const Positions& positions = {}) const;
  /// Cross-attention: `query` (batch, queries, model_dim) attends to keys from `key` (batch, keys,
  /// kdim) and values from `value` (batch, keys, vdim). Throws ShapeError for others.
  Output forward(const Input& query, const Input& key, const Input& value,
                 const Mask& mask = masks::Full{}) const {
    const auto in = inputs(query, key, value);
    return attend(in.queries, in, mask);
  }
  /// The same where both are one memory (batch, keys, kdim); vdim is kdim then.
  Output forward(const Input& query, const Input& memory, const Mask& mask = masks::Full{}) const {
    return forward(query, memory, memory, mask);
  }
  /// Cross-attention with the weights of attention: a Tensor<T, 4> receives all, (batch, heads,
  /// queries, keys), a Tensor<T, 3> their mean over heads, (batch, queries, keys).
  template <std::size_t Rank>
  Output forward(const Input& query, const Input& key, const Input& value, const Mask& mask,
                 Tensor<T, Rank>& weights) const {
    const auto in = inputs(query, key, value);
    weights = detail::all_or_mean<Rank>(
        attention_weights(heads_of(in.queries), heads_of(in.keys), seen(mask), kernel_options()));
    return attend(in.queries, in, mask);
  }
  Output forward(Input x, const Mask& mask, Saved& saved) const {
    return forward(std::move(x), mask, Noise{}, saved);
  }
  Output forward(Input x, Saved& saved) const {
    return forward(std::move(x), masks::Full{}, saved);
  }
  Output forward(Input x, const Mask& mask, const Noise& noise, Saved& saved) const {
    return forward(std::move(x), mask, {}, noise, saved);
  }
  Output forward(Input x, const Mask& mask, const Positions& positions, const Noise& noise,
                 Saved& saved) const {
    saved.key.reset();
    saved.value.reset();
    return forward_saved(std::move(x), mask, positions, noise, saved);
  }
  template <class X, class... More>
  Output forward(const X&, const More&...) const requires(!std::is_convertible_v<const X&, Input>) {
    detail::expect_batch<X, Input>();
    return {};
  }
  template <class X, class... More>
  Output forward(const X&, const More&...) const
      requires(std::is_convertible_v<const X&, Input> &&
               (detail::TensorForMask<More, Input> || ...) && !(detail::LikeMask<More> || ...)) {
    static_assert(detail::never<X>,
                  "a tensor is no mask by itself: wrap it, heed::masks::Dense(tensor)");
    return {};
  }
  template <class M, class... More>
  Output forward(const Input&, const Saved&, const M&, const More&...) const {
    return detail::expect_layer_mask<Saved, Saved>(), Output();
  }
  Output forward(Input query, const Input& key, const Input& value, const Mask& mask,
                 Saved& saved) const {
    return forward(std::move(query), key, value, mask, Noise{}, saved);
  }
  Output forward(Input query, const Input& memory, const Mask& mask, Saved& saved) const {
    return forward(std::move(query), memory, memory, mask, saved);
  }
  Output forward(Input query, const Input& key, const Input& value, const Mask& mask,
                 const Noise& noise, Saved& saved) const {
    saved.value = &value == &key ? std::nullopt : std::optional(value);
    saved.key = key;
    return forward_saved(std::move(query), mask, {}, noise, saved);
  }

  /// For self-attention: returns the gradient of x, after forward(x, x, x, …) the sum of those of
  /// query, key and value, and adds those of the weights to `gradients`. Throws ShapeError for what
  /// does not fit, and InvalidArgument where query, key and value hold different numbers and for
  /// gradients that are this layer.
  Input backward(const Output& grad, const Saved& saved, MultiHeadAttention& gradients) const {
    check_backward(grad, saved, gradients);
    if (!attends_to_itself(saved)) {
      throw_invalid_argument(name, ": query, key and value have gradients of their own here: ",
                             "backward(grad, saved, gradients, grad_key, grad_value)");
    }
    const auto& fused = projections.query_key_value;
    if (!fused || saved.key) {
      Input grad_x(saved.query.extents());
      backward_inputs(grad, saved, gradients, grad_x, grad_x, grad_x);
      return grad_x;
    }
    const auto& rows = projections.rows;
    auto grads = Input::uninitialized({grad.extent(0), grad.extent(1), rows[3]});
    const auto part = [&](Index first, Index last) { return grads.view().slice(2, first, last); };
    input_gradients(grad, saved, gradients, part(0, rows[1]), part(rows[1], rows[2]),
                    part(rows[2], rows[3]));
    return fused->backward(grads, saved.query, *gradients.projections.query_key_value);
  }
  /// For cross-attention: returns the gradient of the query and adds those of key and value, which
  /// may be one tensor, to grad_key and grad_value, and those of the weights to `gradients`. Throws
  /// ShapeError for what does not fit, and InvalidArgument for gradients that are this layer.
  Input backward(const Output& grad, const Saved& saved, MultiHeadAttention& gradients,
                 Input& grad_key, Input& grad_value) const {
    check_backward(grad, saved, gradients);
    Input grad_query(saved.query.extents());
    backward_inputs(grad, saved, gradients, grad_query, grad_key, grad_value);
    return grad_query;
  }

  template <class... More>
  Input backward(const Saved&, const More&...) const {
    return detail::expect_gradient_first<Input, More...>(), Input();
  }

  /// Throws ShapeError unless `saved` can be from a forward pass of this layer.
  void check_saved(const Saved& saved) const {
    const auto &x = saved.query.extents(), &k = key_of(saved).extents();
    const Index rows = x[0] * x[1], memory_rows = k[0] * k[1];
    const Extents<3> queries{x[0], x[1], options.heads * options.head_dim};
    const Extents<3> keys{x[0], k[1], options.kv_heads * options.head_dim};
    const auto fits = [&](const auto& in) {
      return in.queries.extents() == queries && in.keys.extents() == keys &&
             in.values.extents() == keys;
    };
    detail::check_saved(name,
                        saved.mask && x[2] == out.weight.extent(0) &&
                            k == Extents<3>{x[0], k[1], options.kdim} &&
                            value_of(saved).extents() == Extents<3>{x[0], k[1], options.vdim} &&
                            (saved.narrow ? fits(*saved.narrow) : fits(saved.inputs)) &&
                            saved.context.extents() == queries &&
                            saved.log_sum_exp.extents() == Extents<3>{x[0], options.heads, x[1]});
    saved.mask->check({.batch = x[0],
                       .heads = options.heads,
                       .queries = x[1],
                       .keys = k[1],
                       .first_query = options.top_left ? 0 : k[1] - x[1]});
    saved.positions.check(name, {x[0], x[1]});
    if (query_norm) query_norm->check_saved(saved.query_norm, rows * options.heads);
    if (key_norm) key_norm->check_saved(saved.key_norm, memory_rows * options.kv_heads);
  }

  /// The inputs of attention, for callers with a cache of their own.
  AttentionInputs<T> inputs(const Input& query, const Input& key, const Input& value,
                            const Positions& positions = {}, Saved* saved = nullptr) const {
    positions.check(name, {query.extent(0), query.extent(1)});
    auto in = projected(query, key, value, saved);
    if (rotary) rotary->apply(heads_of(in.queries), of_queries(positions, query, key));
    if (rotary) rotary->apply(heads_of(in.keys), positions);
    return in;
  }
  /// The same before rotary positions.
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
  /// Keys and values alone, computed once for many queries over one memory.
  AttentionInputs<T> memory_inputs(const Input& memory, const Positions& positions = {}) const {
    AttentionInputs<T> in{{}, keys(memory), projections.forward(Projection::value, memory)};
    if (rotary) rotary->apply(heads_of(in.keys), positions);
    return in;
  }
  /// Queries, or keys, before rotary positions.
  Tensor<T, 3> queries(const Input& x, Saved* saved = nullptr) const {
    return normed(Projection::query, projections.forward(Projection::query, x), saved);
  }
  Tensor<T, 3> keys(const Input& memory, Saved* saved = nullptr) const {
    return normed(Projection::key, projections.forward(Projection::key, memory), saved);
  }
  /// Attention of x over keys and values from memory_inputs, with the bits of attention over the
  /// memory. `first`: the position of the first query, where options.top_left is set.
  Output forward(const Input& x, const AttentionInputs<T>& memory, const Mask& mask,
                 Index first = 0) const {
    auto rows = queries(x);
    if (rotary) {
      rotary->apply(heads_of(rows), of_queries(options.top_left ? first : 0, x, memory.keys));
    }
    return attend(rows, memory, mask, first);
  }
  /// A view of (batch, tokens, heads · head_dim) as (batch, heads, tokens, head_dim).
  auto heads_of(auto&& x) const {
    return view_of(std::forward<decltype(x)>(x)).split(2, options.head_dim).permute({0, 2, 1, 3});
  }
  /// The options with which attention is called; weights are dropped where the noise has a seed.
  AttentionOptions<T> kernel_options(const Noise& noise = {}, Index first = 0) const {
    AttentionOptions<T> call;
    if (options.top_left) call.first_query = first;
    if (noise.seed && options.dropout > 0) {
      call.dropout = {
          .probability = static_cast<float>(options.dropout), .seed = *noise.seed, .layer = stream};
    }
    if (options.scale) call.scale = static_cast<T>(*options.scale);
    call.softcap = static_cast<T>(options.softcap);
    call.products = products;
    score_bias.apply(call);
    return call;
  }
  /// The mask of a call together with the layer's window and its own mask.
  Mask seen(const Mask& mask) const {
    Mask all = mask;
    if (options.window != 0) {
      all = all & Mask(masks::SlidingWindow{options.window - 1, masks::unbounded});
    }
    if (own_mask) all = all & *own_mask;
    return all;
  }
  /// All weights of attention, (batch, heads, queries, keys), for inspection.
  Tensor<T, 4> weights(const Input& query, const Input& key, const Mask& mask,
                       const Positions& positions = {}) const {
    auto q = queries(query), k = keys(key);
    if (rotary) rotary->apply(heads_of(q), of_queries(positions, query, key));
    if (rotary) rotary->apply(heads_of(k), positions);
    return attention_weights(heads_of(q), heads_of(k), seen(mask), kernel_options());
  }

  /// Lays the weights out for inference; see Linear::pack.
  void pack() {
    projections.pack();
    out.pack();
  }

  static auto members(auto& layer) {
    return Members{member("", layer.projections), member("query_norm", layer.query_norm),
                   member("key_norm", layer.key_norm), member("", layer.score_bias),
                   member("out", layer.out)};
  }

  /// Of these, window, softcap, scale and dropout are read by every call and may change; the others
  /// have made the members below.
  MultiHeadAttentionOptions options;
  Projections<T> projections;
  std::optional<Norm<T>> query_norm, key_norm;
  std::optional<Rotary> rotary;
  ScoreBias<T> score_bias;
  Linear<T> out;
  /// The stream of dropout's random numbers, different in every layer; 0 in one without dropout.
  std::uint32_t stream = 0;
  Products products = Products::exact;  // of queries, keys and values; see set_products
  /// A mask of the layer itself: a query sees what it, options.window and the mask of a call allow.
  std::optional<Mask> own_mask;

 private:
  static constexpr const char* name = "MultiHeadAttention";
  /// Positions of queries, given those of keys: where they are columns, both end together, as masks
  /// have them, unless options.top_left is set.
  Positions of_queries(const Positions& positions, const Input& query, const Input& key) const {
    if (options.top_left || !positions.are_columns()) return positions;
    return positions.first() + key.extent(1) - query.extent(1);
  }
  Output attend(const Tensor<T, 3>& rows, const AttentionInputs<T>& in, const Mask& mask,
                Index first = 0) const {
    auto context = Tensor<T, 3>::uninitialized(rows.extents());
    attention(heads_of(rows), heads_of(in.keys), heads_of(in.values), seen(mask), heads_of(context),
              kernel_options(Noise{}, first));
    return out.forward(context);
  }
  static bool attends_to_itself(const Saved& saved) {
    const auto alike = [](T a, T b) { return a == b || (a != a && b != b); };  // NaN too
    const auto is_query = [&](const Input& x) {
      return &x == &saved.query || (x.extents() == saved.query.extents() &&
                                    std::equal(x.begin(), x.end(), saved.query.begin(), alike));
    };
    return is_query(key_of(saved)) && is_query(value_of(saved));
  }
  static const Input& key_of(const Saved& s) { return s.key ? *s.key : s.query; }
  static const Input& value_of(const Saved& s) { return s.value ? *s.value : key_of(s); }
  Output forward_saved(Input query, const Mask& mask, const Positions& positions,
                       const Noise& noise, Saved& saved) const {
    saved.query = std::move(query);
    saved.inputs = inputs(saved.query, key_of(saved), value_of(saved), positions, &saved);
    saved.mask = seen(mask);
    saved.positions = positions;
    saved.noise = noise;
    const auto rows = saved.inputs.queries.extents();
    round_inputs(saved);
    saved.context = Tensor<T, 3>::uninitialized(rows);
    saved.log_sum_exp = Tensor<T, 3>({rows[0], options.heads, rows[1]});
    auto call = kernel_options(saved.noise);
    call.log_sum_exp = saved.log_sum_exp;
    with_inputs(saved, [&](const auto& in) {
      attention(heads_of(in.queries), heads_of(in.keys), heads_of(in.values), *saved.mask,
                heads_of(saved.context), call);
    });
    return out.forward(saved.context);
  }
  /// Keeps the inputs of attention in bfloat16 where it would round them, forward and backward.
  /// That changes no bit.
  void round_inputs(Saved& saved) const {
    saved.narrow.reset();
    if constexpr (std::is_same_v<T, float>) {
      if (products != Products::bfloat16) return;
      const auto narrow = [](const Tensor<T, 3>& rows) {
        return detail::narrowed<T>(rows.extents(),
                                   [&](Index at, Index, T*) { return rows.data() + at; });
      };
      const auto& in = saved.inputs;
      saved.narrow = {narrow(in.queries), narrow(in.keys), narrow(in.values)};
      saved.inputs = {};
    }
  }
  /// Calls use(inputs) with those that attention reads.
  template <class Use>
  void with_inputs(const Saved& saved, const Use& use) const {
    if constexpr (std::is_same_v<T, float>) {
      if (saved.narrow && products == Products::bfloat16) return use(*saved.narrow);
      if (saved.narrow) {  // set_products was called in between
        const auto& in = *saved.narrow;
        return use(AttentionInputs<T>{Tensor<T, 3>::copy_of(in.queries),
                                      Tensor<T, 3>::copy_of(in.keys),
                                      Tensor<T, 3>::copy_of(in.values)});
      }
    }
    use(saved.inputs);
  }

  void backward_inputs(const Output& grad, const Saved& saved, MultiHeadAttention& gradients,
                       Input& grad_query, Input& grad_key, Input& grad_value) const {
    detail::check_gradient(name, grad_key.extents(), key_of(saved).extents());
    detail::check_gradient(name, grad_value.extents(), value_of(saved).extents());
    const Extents<3> of_keys{grad.extent(0), key_of(saved).extent(1),
                             options.kv_heads * options.head_dim};
    auto queries = Input::uninitialized(saved.context.extents()),
         keys = Input::uninitialized(of_keys), values = Input::uninitialized(of_keys);
    input_gradients(grad, saved, gradients, queries.view(), keys.view(), values.view());
    auto& to = gradients.projections;
    projections.backward(Projection::query, queries, saved.query, to, grad_query);
    projections.backward(Projection::key, keys, key_of(saved), to, grad_key);
    projections.backward(Projection::value, values, value_of(saved), to, grad_value);
  }
  void check_backward(const Output& grad, const Saved& saved,
                      const MultiHeadAttention& gradients) const {
    detail::check_gradients(*this, gradients);
    check_saved(saved);
    detail::check_gradient(name, grad.extents(), saved.query.extents());
  }
  /// Writes the gradients of what the projections gave; adds those of all other parameters.
  void input_gradients(const Output& grad, const Saved& saved, MultiHeadAttention& gradients,
                       const TensorView<T, 3>& queries, const TensorView<T, 3>& keys,
                       const TensorView<T, 3>& values) const {
    const auto grad_context = out.backward(grad, saved.context, gradients.out);
    ScoreBias<T> grad_bias;
    const auto wanted = score_bias.gradient_options(grad_bias);
    with_inputs(saved, [&](const auto& in) {
      attention_backward(heads_of(in.queries), heads_of(in.keys), heads_of(in.values), *saved.mask,
                         heads_of(saved.context),
                         detail::lse_of_live_queries(saved.log_sum_exp, grad_context),
                         heads_of(grad_context), heads_of(queries), heads_of(keys),
                         heads_of(values), kernel_options(saved.noise), wanted);
    });
    score_bias.accumulate(grad_bias, gradients.score_bias);
    if (rotary) {
      rotary->undo(heads_of(queries), of_queries(saved.positions, saved.query, key_of(saved)));
    }
    if (rotary) rotary->undo(heads_of(keys), saved.positions);
    if (query_norm) before_norm(*query_norm, queries, saved.query_norm, *gradients.query_norm);
    if (key_norm) before_norm(*key_norm, keys, saved.key_norm, *gradients.key_norm);
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
  /// Turns the gradient of normed queries or keys into that of the ones before the norm, in place.
  void before_norm(const Norm<T>& norm, const TensorView<T, 3>& grad,
                   const typename Norm<T>::Saved& saved, Norm<T>& gradients) const {
    const auto heads = grad.split(2, options.head_dim);
    copy(norm.backward(heads, saved, gradients), heads);
  }
};

HEED_LINKED_LAYER(ScoreBias)
template <ModelScalar T>
auto MultiHeadAttention<T>::forward_packed(const Input& x, const PackedOffsets& texts,
                                           const Mask& mask, const Positions& positions) const
    -> Output {
  const std::span<const Index> queries = texts.queries, keys = texts.keys;
  if (!std::equal(queries.begin(), queries.end(), keys.begin(), keys.end())) {
    throw_shape_error(name, ": texts that see themselves have one array of offsets");
  }
  const auto in = inputs(x, x, x, positions);
  auto context = Tensor<T, 3>::uninitialized(in.queries.extents());
  packed_attention(heads_of(in.queries), heads_of(in.keys), heads_of(in.values), texts, seen(mask),
                   heads_of(context), kernel_options());
  return out.forward(context);
}

HEED_LINKED_LAYER(MultiHeadAttention)

}  // namespace heed
