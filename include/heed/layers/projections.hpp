// SPDX-License-Identifier: MIT
#pragma once

/// The options of an attention layer, and its maps from tokens to queries, keys and values.
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/norm.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/layers/rotary.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

struct MultiHeadAttentionOptions {
  Index model_dim = 0;
  Index heads = 1;
  Index kv_heads = 0;  // 0: as many as heads; fewer are shared by groups of query heads
  Index head_dim = 0;  // 0: model_dim / heads
  Index kdim = 0;      // width of the inputs of keys; 0: model_dim
  Index vdim = 0;      // width of the inputs of values; 0: model_dim
  bool bias = true;    // of the projections to queries, keys and values
  bool output_bias = true;
  bool fused = false;  // one weight for queries, keys and values, in this order
  std::optional<NormKind> query_key_norm = {};  // a norm of each head's queries and keys; none: no
  double norm_epsilon = 1e-6;                   // of that norm, as Qwen3 has it; in a block, that
                                                // of the block's norms
  std::optional<double> scale = {};             // default 1 / √head_dim
  double softcap = 0;  // scores become softcap · tanh(score / softcap), as in Gemma 2; 0: they stay
  bool sinks = false;  // a learned sink for each head, see AttentionOptions::sinks, as in gpt-oss
  /// A query sees no key before the last `window` ones, its own included; 0: all. Later keys are up
  /// to the mask of a call.
  Index window = 0;
  /// Rotary, relative or ALiBi. The other kinds are added to embeddings and do nothing here.
  PositionKind positions = PositionKind::none;
  RotaryOptions rotary = {};   // where positions are rotary
  Index relative_reach = 128;  // where positions are relative: longer distances count as this one
  double dropout = 0;          // of the weights, in training
  /// The mask sees the first query at position 0, for queries and keys of two texts. Otherwise it
  /// sees the last query at the position of the last key.
  bool top_left = false;
};

namespace detail {

/// The options with their defaults in place of every 0. Throws InvalidArgument for sizes that make
/// no layer.
inline MultiHeadAttentionOptions completed(MultiHeadAttentionOptions options) {
  const auto refuse = [&](const char* what) {
    throw_invalid_argument("MultiHeadAttention: ", what, "; model_dim ", options.model_dim,
                           ", heads ", options.heads, ", kv_heads ", options.kv_heads,
                           ", head_dim ", options.head_dim, ", kdim ", options.kdim, ", vdim ",
                           options.vdim);
  };
  if (options.model_dim < 1 || options.heads < 1 || options.kv_heads < 0 || options.head_dim < 0 ||
      options.kdim < 0 || options.vdim < 0) {
    refuse("expected positive sizes");
  }
  if (options.kv_heads == 0) options.kv_heads = options.heads;
  if (options.heads % options.kv_heads != 0) refuse("kv_heads must divide heads");
  if (options.head_dim == 0) {
    if (options.model_dim % options.heads != 0) refuse("heads must divide model_dim");
    options.head_dim = options.model_dim / options.heads;
  }
  if (options.kdim == 0) options.kdim = options.model_dim;
  if (options.vdim == 0) options.vdim = options.model_dim;
  constexpr Index most = std::numeric_limits<Index>::max();
  if (options.heads > most / options.head_dim / 3) refuse("expected fewer or smaller heads");
  if (options.positions == PositionKind::relative &&
      (options.relative_reach < 1 || options.relative_reach > (most / options.heads - 1) / 2)) {
    throw_invalid_argument("MultiHeadAttention: relative_reach ", options.relative_reach,
                           "; expected 1 or more, and a table that an Index counts");
  }
  if (options.scale && !std::isfinite(*options.scale)) refuse("scale is a finite number");
  if (!(options.softcap >= 0 && std::isfinite(options.softcap)) || options.window < 0) {
    throw_invalid_argument("MultiHeadAttention: softcap ", options.softcap, ", window ",
                           options.window, "; expected finite numbers, 0 or more");
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) refuse("dropout is a share, 0 to 1");
  if (options.fused && (options.kdim != options.model_dim || options.vdim != options.model_dim)) {
    refuse("a fused projection has one input");
  }
  return options;
}

}  // namespace detail

enum class Projection { query, key, value };

/// The linear maps from tokens to queries, keys and values: three layers, or a fused one with their
/// outputs side by side. Separate layers may have different inputs.
template <ModelScalar T>
struct Projections {
  Projections() = default;
  /// Takes options that detail::completed gave.
  Projections(const MultiHeadAttentionOptions& options, Random& random)
      : rows{0, options.heads * options.head_dim,
             (options.heads + options.kv_heads) * options.head_dim,
             (options.heads + 2 * options.kv_heads) * options.head_dim} {
    if (options.fused) {
      query_key_value.emplace(LinearOptions{options.model_dim, rows[3], options.bias}, random);
      return;
    }
    query.emplace(LinearOptions{options.model_dim, rows[1], options.bias}, random);
    key.emplace(LinearOptions{options.kdim, rows[2] - rows[1], options.bias}, random);
    value.emplace(LinearOptions{options.vdim, rows[3] - rows[2], options.bias}, random);
  }

  Tensor<T, 3> forward(Projection which, const Tensor<T, 3>& x) const {
    constexpr const char* names[] = {"query", "key", "value"};
    ProductGroup<T> group(detail::as_rows(x));
    auto y = join(group, which, x, names[static_cast<std::size_t>(which)]);
    group.run();
    return y;
  }
  /// Queries, keys and values of one input, computed together with the same bits.
  std::array<Tensor<T, 3>, 3> forward(const Tensor<T, 3>& x) const {
    ProductGroup<T> group(detail::as_rows(x));
    std::array all{join(group, Projection::query, x, "x"), join(group, Projection::key, x, "x"),
                   join(group, Projection::value, x, "x")};
    group.run();
    return all;
  }

  /// The backward pass of one projection; adds the gradient of its input x to grad_x.
  void backward(Projection which, const Tensor<T, 3>& grad, const Tensor<T, 3>& x,
                Projections& gradients, Tensor<T, 3>& grad_x) const {
    const Linear<T>& layer = layer_of(*this, which);
    Linear<T>& to = layer_of(gradients, which);
    detail::check_gradients(layer, to);
    const auto [first, last] = range(which);
    const auto grad_rows = detail::as_rows(grad);
    detail::accumulate_weight<T>(grad_rows, detail::as_rows(x),
                                 to.weight.view().slice(0, first, last), layer.products);
    if (to.bias) detail::accumulate_bias<T>(grad_rows, to.bias->view().slice(0, first, last));
    matrix_product(grad_rows, layer.weight.view().slice(0, first, last), detail::as_rows(grad_x),
                   {.accumulate = true, .products = layer.products});
  }

  void pack() {
    if (query) query->pack();
    if (key) key->pack();
    if (value) value->pack();
    if (!query_key_value) return;
    auto& whole = *query_key_value;
    whole.packed_parts.clear();
    for (const auto which : {Projection::query, Projection::key, Projection::value}) {
      const auto [first, last] = range(which);
      whole.packed_parts.emplace_back(transposed(first, last), whole.products);
    }
  }

  static auto members(auto& layer) {
    return Members{member("query", layer.query), member("key", layer.key),
                   member("value", layer.value), member("query_key_value", layer.query_key_value)};
  }

  std::optional<Linear<T>> query, key, value, query_key_value;
  std::array<Index, 4> rows{};  // the first row of each in the fused weight, and the number of rows

 private:
  /// See Linear::join. An error calls x by its `name`.
  Tensor<T, 3> join(ProductGroup<T>& group, Projection which, const Tensor<T, 3>& x,
                    const char* name) const {
    const Linear<T>& layer = layer_of(*this, which);
    if (x.extent(2) != layer.inputs()) {
      throw_shape_error("MultiHeadAttention: ", name, " is ", x.extents(), ", expected ",
                        layer.inputs(), " as the last extent");
    }
    if (!query_key_value) return layer.join(group, x);
    const auto [first, last] = range(which);
    auto y = Tensor<T, 3>::uninitialized({x.extent(0), x.extent(1), last - first});
    ProductOptions<T> options{.products = layer.products};
    if (layer.bias) options.bias = layer.bias->view().slice(0, first, last);
    if (layer.packed_parts.empty()) {
      group.add(transposed(first, last), detail::as_rows(y), options);
    } else {
      group.add(layer.packed_parts[static_cast<std::size_t>(which)], detail::as_rows(y), options);
    }
    return y;
  }
  static auto& layer_of(auto& self, Projection which) {
    if (self.query_key_value) return *self.query_key_value;
    if (which == Projection::query) return *self.query;
    return which == Projection::key ? *self.key : *self.value;
  }
  /// The outputs of its layer that a projection has.
  std::array<Index, 2> range(Projection which) const {
    if (!query_key_value) return {0, layer_of(*this, which).outputs()};
    const auto at = static_cast<std::size_t>(which);
    return {rows[at], rows[at + 1]};
  }
  TensorView<const T, 2> transposed(Index first, Index last) const {
    return query_key_value->weight.view().slice(0, first, last).transpose();
  }
};

HEED_LINKED_LAYER(Projections)

}  // namespace heed
