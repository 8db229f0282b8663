// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/multi_head_attention_options.hpp>
#include <heed/tensor/product_group.hpp>

namespace heed {

enum class Projection { query, key, value };

/// The linear maps from tokens to queries, keys and values: three, or one whose outputs are the
/// three side by side. Either way each is computed for itself, so they may have different inputs
/// where they are separate.
template <Scalar T>
struct Projections {
  Projections() = default;
  /// Takes completed options.
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
    ProductGroup<T> group(detail::as_rows(x));
    auto y = join(group, which, x);
    group.run();
    return y;
  }
  /// Queries, keys and values of one input, computed together: the same bits.
  std::array<Tensor<T, 3>, 3> forward(const Tensor<T, 3>& x) const {
    ProductGroup<T> group(detail::as_rows(x));
    std::array all{join(group, Projection::query, x), join(group, Projection::key, x),
                   join(group, Projection::value, x)};
    group.run();
    return all;
  }

  /// Adds to grad_x what `grad` of one projection means for its input x, and to the gradients.
  void backward(Projection which, const Tensor<T, 3>& grad, const Tensor<T, 3>& x,
                Projections& gradients, Tensor<T, 3>& grad_x) const {
    const auto grad_rows = detail::as_rows(grad);
    if (!query_key_value) {
      const Linear<T>& layer = separate(*this, which);
      layer.accumulate(grad, x, separate(gradients, which));
      matrix_product(grad_rows, layer.weight, detail::as_rows(grad_x), {.accumulate = true});
      return;
    }
    const auto [first, last] = range(which);
    auto& whole = *gradients.query_key_value;
    detail::accumulate_weight<T>(grad_rows, detail::as_rows(x),
                                 whole.weight.view().slice(0, first, last));
    if (whole.bias) {
      const T one = 1;
      const TensorView<const T, 2> ones(&one, {1, grad_rows.extent(0)}, {0, 0});
      matrix_product(ones, grad_rows, whole.bias->view().slice(0, first, last).with_leading_axis(),
                     {.accumulate = true});
    }
    matrix_product(grad_rows, query_key_value->weight.view().slice(0, first, last),
                   detail::as_rows(grad_x), {.accumulate = true});
  }

  void pack() {
    if (query) query->pack();
    if (key) key->pack();
    if (value) value->pack();
    if (!query_key_value) return;
    for (const auto which : {Projection::query, Projection::key, Projection::value}) {
      const auto [first, last] = range(which);
      packed_parts[static_cast<std::size_t>(which)] = PackedMatrix<T>(transposed(first, last));
    }
  }

  static auto members(auto& layer) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(layer)>>) {
      layer.packed_parts = {};
    }
    return std::tuple{member("query", layer.query), member("key", layer.key),
                      member("value", layer.value),
                      member("query_key_value", layer.query_key_value)};
  }

  std::optional<Linear<T>> query, key, value, query_key_value;
  std::array<Index, 4> rows{};  // where each begins in the fused weight
  std::array<PackedMatrix<T>, 3> packed_parts;

 private:
  /// See Linear::join.
  Tensor<T, 3> join(ProductGroup<T>& group, Projection which, const Tensor<T, 3>& x) const {
    if (!query_key_value) return separate(*this, which).join(group, x);
    const auto& whole = *query_key_value;
    const auto [first, last] = range(which);
    if (x.extent(2) != whole.weight.extent(1)) {
      throw_shape_error("MultiHeadAttention: x is ", x.extents(), ", expected ",
                        whole.weight.extent(1), " as the last extent");
    }
    auto y = Tensor<T, 3>::uninitialized({x.extent(0), x.extent(1), last - first});
    ProductOptions<T> options;
    if (whole.bias) options.bias = whole.bias->view().slice(0, first, last);
    const auto& packed = packed_parts[static_cast<std::size_t>(which)];
    if (packed.empty()) {
      group.add(transposed(first, last), detail::as_rows(y), options);
    } else {
      group.add(packed, detail::as_rows(y), options);
    }
    return y;
  }
  static auto& separate(auto& self, Projection which) {
    if (which == Projection::query) return *self.query;
    return which == Projection::key ? *self.key : *self.value;
  }
  std::array<Index, 2> range(Projection which) const {
    const auto at = static_cast<std::size_t>(which);
    return {rows[at], rows[at + 1]};
  }
  TensorView<const T, 2> transposed(Index first, Index last) const {
    return query_key_value->weight.view().slice(0, first, last).permute({1, 0});
  }
};

}  // namespace heed
