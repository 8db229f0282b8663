// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/activation.hpp>
#include <heed/layers/detail/live_rows.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/linear.hpp>
#include <heed/tensor/arithmetic.hpp>
#include <heed/tensor/product_group.hpp>

namespace heed {

struct FeedForwardOptions {
  Index model_dim = 0;
  Index hidden_dim = 0;
  ActivationKind activation = ActivationKind::relu;
  /// activation(gate · x) ⊙ (up · x) inside: SwiGLU with silu, GeGLU with gelu. Shazeer 2020.
  bool gated = false;
  bool bias = true;
  double dropout = 0;  // after the activation
};

/// down(activation(up(x))), or down(activation(gate(x)) ⊙ up(x)): what a block does to each token
/// alone.
template <Scalar T>
struct FeedForward {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Input input;
    typename Activation<T>::Saved activation;
    Tensor<T, 3> activated;  // gated only, as is `up`
    Tensor<T, 3> up;
    typename Dropout<T>::Saved dropout;
    typename Linear<T>::Saved down;
  };

  FeedForward() = default;
  FeedForward(const FeedForwardOptions& options, Random& random)
      : up({options.model_dim, options.hidden_dim, options.bias}, random),
        down({options.hidden_dim, options.model_dim, options.bias}, random),
        activation(options.activation),
        dropout(options.dropout, random) {
    if (options.gated)
      gate.emplace(LinearOptions{up.weight.extent(1), up.weight.extent(0), options.bias}, random);
  }

  Output forward(const Input& x) const {
    if (!gate) return down.forward(activation.forward(up.forward(x)));
    auto [raised, gates] = raised_and_gates(x);
    activate_and_multiply(gates, raised);
    return down.forward(gates);
  }
  Output forward(Input x, const Noise& noise, Saved& saved) const {
    Tensor<T, 3> hidden;
    if (gate) {
      std::tie(saved.up, hidden) = raised_and_gates(x);
      hidden = activation.forward(std::move(hidden), saved.activation);
      saved.activated = hidden;
      multiply(hidden, saved.up, hidden);
    } else {
      hidden = activation.forward(up.forward(x), saved.activation);
    }
    saved.input = std::move(x);
    return down.forward(dropout.forward(std::move(hidden), noise, saved.dropout), saved.down);
  }
  Output forward(Input x, Saved& saved) const { return forward(std::move(x), Noise{}, saved); }

  Input backward(const Output& grad, const Saved& saved, FeedForward& gradients) const {
    auto grad_hidden = down.backward(grad, saved.down, gradients.down);
    grad_hidden = dropout.backward(std::move(grad_hidden), saved.dropout, gradients.dropout);
    Input grad_x;
    if (gate) {
      auto grad_up = Tensor<T, 3>::uninitialized(grad_hidden.extents());
      detail::multiply_live(grad_hidden, saved.activated, grad_up);
      detail::multiply_live(grad_hidden, saved.up, grad_hidden);
      grad_x = up.backward(grad_up, saved.input, gradients.up);
    }
    grad_hidden =
        activation.backward(std::move(grad_hidden), saved.activation, gradients.activation);
    if (!gate) return up.backward(grad_hidden, saved.input, gradients.up);
    grad_x += gate->backward(grad_hidden, saved.input, *gradients.gate);
    return grad_x;
  }

  void pack() {
    up.pack();
    down.pack();
    if (gate) gate->pack();
  }

  static auto members(auto& layer) {
    return std::tuple{member("up", layer.up), member("gate", layer.gate),
                      member("down", layer.down)};
  }

  Linear<T> up;
  std::optional<Linear<T>> gate;
  Linear<T> down;
  Activation<T> activation;
  Dropout<T> dropout;

 private:
  /// up(x) and gate(x), computed together.
  std::pair<Tensor<T, 3>, Tensor<T, 3>> raised_and_gates(const Tensor<T, 3>& x) const {
    ProductGroup<T> group(detail::as_rows(x));
    std::pair both{up.join(group, x), gate->join(group, x)};
    group.run();
    return both;
  }
  /// gates = activation(gates) ⊙ raised, row by row: a row stays in the first-level cache.
  void activate_and_multiply(Tensor<T, 3>& gates, const Tensor<T, 3>& raised) const {
    const Index width = gates.extent(2);
    const auto& kernels = simd::row_kernels<T>();
    detail::for_row_runs(gates.extent(0) * gates.extent(1), 8 * width, [&](Index row, Index last) {
      for (; row < last; ++row) {
        T* gate_row = gates.data() + row * width;
        kernels.activate(activation.kind, gate_row, gate_row, nullptr, width);
        kernels.multiply(gate_row, raised.data() + row * width, gate_row, width);
      }
    });
  }
  static void multiply(const Tensor<T, 3>& a, const Tensor<T, 3>& b, Tensor<T, 3>& out) {
    const Index width = a.extent(2);
    detail::for_row_runs(a.extent(0) * a.extent(1), width, [&](Index first, Index last) {
      const Index at = first * width;
      simd::row_kernels<T>().multiply(a.data() + at, b.data() + at, out.data() + at,
                                      (last - first) * width);
    });
  }
};

}  // namespace heed
