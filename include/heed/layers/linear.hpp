// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/detail/live_rows.hpp>
#include <heed/layers/detail/row_work.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/product_group.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

struct LinearOptions {
  Index inputs = 0;
  Index outputs = 0;
  bool bias = true;
};

/// y = x · weightᵀ + bias on (batch, tokens, inputs). The weight is (outputs, inputs), as PyTorch
/// has it. A token's output has the same bits whatever other tokens are computed with it.
template <Scalar T>
struct Linear {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Input input;
  };

  Linear() = default;
  /// Weights and bias uniform in ±1/√inputs. Throws ShapeError for extents below 1.
  Linear(const LinearOptions& options, Random& random) {
    if (options.inputs < 1 || options.outputs < 1) {
      throw_shape_error("Linear: ", options.inputs, " inputs, ", options.outputs,
                        " outputs; expected 1 or more");
    }
    weight = Tensor<T, 2>({options.outputs, options.inputs});
    const double range = 1 / std::sqrt(static_cast<double>(options.inputs));
    for (T& value : weight) value = static_cast<T>(range * (2 * random.uniform() - 1));
    if (!options.bias) return;
    bias.emplace(Extents<1>{options.outputs});
    for (T& value : *bias) value = static_cast<T>(range * (2 * random.uniform() - 1));
  }

  Output forward(const Input& x) const {
    return multiplied(x, [&](const auto& b, const TensorView<T, 2>& y, const auto& options) {
      matrix_product(detail::as_rows(x), b, y, options);
    });
  }
  /// Makes `forward` one of a group of products with x on the left; what it gives is written when
  /// the group runs.
  Output join(ProductGroup<T>& group, const Input& x) const {
    return multiplied(x, [&](const auto& b, const TensorView<T, 2>& y, const auto& options) {
      group.add(b, y, options);
    });
  }
  Output forward(Input x, Saved& saved) const {
    Output y = forward(x);
    saved.input = std::move(x);
    return y;
  }

  Input backward(const Output& grad, const Saved& saved, Linear& gradients) const {
    return backward(grad, saved.input, gradients);
  }
  /// The same where the input is kept elsewhere, as by layers that share one.
  Input backward(const Output& grad, const Input& input, Linear& gradients) const {
    accumulate(grad, input, gradients);
    auto grad_input = Input::uninitialized(input.extents());
    matrix_product(detail::as_rows(grad), weight, detail::as_rows(grad_input));
    return grad_input;
  }
  /// Parameter gradients alone.
  void accumulate(const Output& grad, const Input& input, Linear& gradients) const {
    const auto grad_rows = detail::as_rows(grad);
    detail::accumulate_weight<T>(grad_rows, detail::as_rows(input), gradients.weight);
    if (!bias) return;
    const T one = 1;
    const TensorView<const T, 2> ones(&one, {1, grad_rows.extent(0)}, {0, 0});
    matrix_product(ones, grad_rows, gradients.bias->view().with_leading_axis(),
                   {.accumulate = true});
  }

  /// Lays the weight out once for inference: one token then reads it straight through. A copy,
  /// dropped as soon as `members` hands the parameters out for writing; call again after writing to
  /// `weight` directly. Blocks packed as a file stores them stay.
  void pack() {
    if (!packed.is_quantized()) packed = PackedMatrix<T>(weight.view().permute({1, 0}));
  }

  static auto members(auto& layer) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(layer)>>) layer.packed = {};
    return std::tuple{member("weight", layer.weight), member("bias", layer.bias)};
  }

  Tensor<T, 2> weight;
  std::optional<Tensor<T, 1>> bias;
  PackedMatrix<T> packed;

 private:
  /// What multiply(b, y, options) writes to y, of shape (batch, tokens, outputs).
  template <class Multiply>
  Output multiplied(const Input& x, const Multiply& multiply) const {
    check(x);
    auto y = Output::uninitialized({x.extent(0), x.extent(1), weight.extent(0)});
    ProductOptions<T> options;
    if (bias) options.bias = bias->view();
    if (packed.empty()) {
      multiply(weight.view().permute({1, 0}), detail::as_rows(y), options);
    } else {
      multiply(packed, detail::as_rows(y), options);
    }
    return y;
  }
  void check(const Input& x) const {
    if (x.extent(2) != weight.extent(1)) {
      throw_shape_error("Linear: x is ", x.extents(), ", expected ", weight.extent(1),
                        " as the last extent");
    }
  }
};

}  // namespace heed
