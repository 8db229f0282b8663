// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

struct LinearOptions {
  Index inputs = 0;
  Index outputs = 0;
  bool bias = true;
};

template <ModelScalar T>
struct Linear;

/// What a layer does beside its product where several processes have some of its outputs each; see
/// tensor_parallel.
template <ModelScalar T>
struct LinearExchange {
  LinearExchange() = default;
  LinearExchange(const LinearExchange&) = delete;
  LinearExchange& operator=(const LinearExchange&) = delete;
  virtual ~LinearExchange() = default;
  /// All outputs of all processes for rows x of inputs, of which this one may have a part;
  /// `own.product` computes those of this one.
  virtual Tensor<T, 2> forward(const Linear<T>& own, const TensorView<const T, 2>& x) const = 0;
};

/// y = x · weightᵀ + bias along the last axis: x (…, inputs), a tensor or view of any rank and
/// strides, to a tensor (…, outputs). The weight is (outputs, inputs), as in PyTorch. The bits of a
/// row's output do not depend on the other rows.
template <ModelScalar T>
struct Linear {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 2> input;  // (rows, inputs)
  };

  Linear() = default;
  /// Weights and bias uniform in ±1/√inputs. Throws ShapeError for extents below 1.
  Linear(const LinearOptions& options, Random& random = detail::expect_random<T>()) {
    if (options.inputs < 1 || options.outputs < 1) {
      throw_shape_error("Linear: ", options.inputs, " inputs, ", options.outputs,
                        " outputs; expected 1 or more");
    }
    weight = Tensor<T, 2>::uninitialized({options.outputs, options.inputs});
    const double range = 1 / std::sqrt(static_cast<double>(options.inputs));
    const auto draw = [&] { return range * (2 * random.uniform() - 1); };
    detail::WeightDraws::fill(weight, random, draw);
    if (!options.bias) return;
    bias.emplace(Extents<1>{options.outputs});
    detail::WeightDraws::fill(*bias, random, draw);
  }

  Linear(Index inputs, Index outputs, Random& random = detail::expect_random<T>())
      : Linear(LinearOptions{inputs, outputs}, random) {}

  Index inputs() const { return weight.empty() ? packed.rows() : weight.extent(1); }
  Index outputs() const { return weight.empty() ? packed.columns() : weight.extent(0); }

  template <Viewable X>
  auto forward(const X& x) const {
    if (!exchange) return product(x);
    const detail::Rows<T> rows(x);
    auto y = exchange->forward(*this, rows.view());
    const Index width = y.extent(1);
    return std::move(y).reshaped(detail::with_width(view_of(x).extents(), width));
  }
  template <detail::Expression X>
  Output forward(const X&) const {
    return detail::expect_evaluated<X>(), Output();
  }
  /// `forward` without `exchange`. x may be in bfloat16 where products are.
  template <Viewable X>
  auto product(const X& x) const {
    const auto rows = detail::factor_rows<T>(x);
    return multiplied(x, [&](const auto& b, const TensorView<T, 2>& y, const auto& options) {
      matrix_product(rows.view(), b, y, options);
    });
  }
  /// Adds `product` to a group of products with x on the left; the result is written when the group
  /// runs.
  template <Viewable X>
  auto join(ProductGroup<T>& group, const X& x) const {
    return multiplied(x, [&](const auto& b, const TensorView<T, 2>& y, const auto& options) {
      group.add(b, y, options);
    });
  }
  template <class X>
  auto forward(X&& x, Saved& saved) const {
    auto y = forward(x);
    saved.input = detail::owned_rows<T>(std::forward<X>(x));
    return y;
  }

  /// Returns the gradient of x from grad (…, outputs); adds to `gradients`.
  template <Viewable G>
  auto backward(const G& grad, const Saved& saved, Linear& gradients) const {
    return backward(grad, saved.input, gradients);
  }
  /// The same for an input that the caller keeps, as layers do that share one; in bfloat16 too
  /// where products are.
  template <Viewable G, Viewable X>
  auto backward(const G& grad, const X& input, Linear& gradients) const {
    const detail::Rows<T> grads(grad);
    accumulate(grads.view(), input, gradients);
    auto grad_input = Tensor<T, ViewOf<const G>::rank()>::uninitialized(
        detail::with_width(view_of(grad).extents(), weight.extent(1)));
    matrix_product(grads.view(), weight, detail::as_rows(grad_input), {.products = products});
    return grad_input;
  }
  template <class... More>
  Input backward(const Saved&, const More&...) const {
    return detail::expect_gradient_first<Input, More...>(), Input();
  }
  /// Adds the gradients of the parameters alone.
  template <Viewable G, Viewable X>
  void accumulate(const G& grad, const X& input, Linear& gradients) const {
    const detail::Rows<T> grads(grad);
    const auto inputs = detail::factor_rows<T>(input);
    const auto& grad_rows = grads.view();
    detail::check_gradients(*this, gradients);
    detail::accumulate_weight<T>(grad_rows, inputs.view(), gradients.weight, products);
    if (bias) detail::accumulate_bias<T>(grad_rows, gradients.bias->view());
  }

  /// Makes a copy of the weight in the order in which inference reads it, which makes single tokens
  /// fast; for products in bfloat16 (see set_products) the copy is in bfloat16. `members` drops the
  /// copy as soon as it hands the parameters out for writing; call again after writing to `weight`
  /// directly. Does nothing where the weight is only packed.
  void pack() {
    if (!weight.empty()) packed = PackedMatrix<T>(weight.view().transpose(), products);
  }

  /// Throws InvalidArgument where the weight is only packed: it can neither be read nor changed.
  static auto members(auto& layer) {
    if (layer.weight.empty() && !layer.packed.empty()) {
      throw_invalid_argument(
          "Linear: the weight is only packed, for inference; load the model "
          "with float weights to read or change them");
    }
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(layer)>>) {
      layer.packed = {};
      layer.packed_parts.clear();
    }
    return Members{member("weight", layer.weight), member("bias", layer.bias)};
  }

  Tensor<T, 2> weight;  // empty where it is only packed, as a loader for inference leaves it
  std::optional<Tensor<T, 1>> bias;
  PackedMatrix<T> packed;
  std::vector<PackedMatrix<T>> packed_parts;  // of some outputs each, where only they are asked for
  Products products = Products::exact;        // of the unpacked weight; see set_products
  detail::Shared<LinearExchange<T>> exchange;  // where processes share the outputs

 private:
  /// A new tensor (…, outputs), written by multiply(b, y, options): y its rows, b the weight.
  template <class X, class Multiply>
  auto multiplied(const X& x, const Multiply& multiply) const {
    const auto extents = view_of(x).extents();
    if (extents.back() != inputs()) {
      throw_shape_error("Linear: x is ", extents, ", expected ", inputs(), " as the last extent");
    }
    auto y =
        Tensor<T, ViewOf<const X>::rank()>::uninitialized(detail::with_width(extents, outputs()));
    ProductOptions<T> options{.products = products};
    if (bias) options.bias = bias->view();
    if (packed.empty()) {
      multiply(weight.view().transpose(), detail::as_rows(y), options);
    } else {
      multiply(packed, detail::as_rows(y), options);
    }
    return y;
  }
};

/// Sets how the layers of a model multiply from now on, forward and backward: each Linear, the head
/// and attention. With Products::bfloat16 they round both factors of their products to bfloat16,
/// for mixed precision: weights and gradients stay float, and so does everything between products
/// but numbers that products alone read, which are kept rounded for the backward pass.
/// A copy of the model keeps the setting, a checkpoint does not. Drops packed weights; throws
/// InvalidArgument for weights that have no such products.
template <HasMembers Model>
void set_products(Model& model, Products products) {
  static_assert(!std::is_const_v<Model>, "set_products changes the model, which is const here");
  const auto check = [&](std::string_view, const auto& parameter) {
    detail::check_products<typename std::remove_cvref_t<decltype(parameter)>::value_type>(products);
  };
  for_each_parameter(check, std::as_const(model));
  detail::for_each_layer(model, [&](auto& layer) {
    if constexpr (requires { layer.products = products; }) layer.products = products;
  });
}

HEED_LINKED_LAYER(Linear)

}  // namespace heed
