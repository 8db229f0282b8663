// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

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
#include <heed/layers/parameters.hpp>
#include <heed/tensor/arithmetic.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// relu: max(0, x); gelu: x Φ(x), exact; gelu_tanh: GELU by its tanh approximation, as GPT-2 has
/// it; silu: x / (1 + e⁻ˣ).
using simd::ActivationKind;

/// A function of each number of a tensor or view of any rank: ReLU, GELU in both forms, SiLU. No
/// parameters.
template <ModelScalar T>
struct Activation {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 2> slopes;  // (rows, width): the derivative at each input
  };

  Activation() = default;
  explicit Activation(ActivationKind which) : kind(which) {}

  template <class X>
  auto forward(X&& x) const {
    auto y = detail::owned<T>(std::forward<X>(x));
    activate(detail::as_rows(y), nullptr);
    return y;
  }
  template <class X>
  auto forward(X&& x, Saved& saved) const {
    auto y = detail::owned<T>(std::forward<X>(x));
    saved.slopes = Tensor<T, 2>::uninitialized(detail::row_extents(y.extents()));
    activate(detail::as_rows(y), saved.slopes.data());
    return y;
  }
  template <class G>
  auto backward(G&& grad, const Saved& saved, Activation&) const {
    auto grad_x = detail::owned<T>(std::forward<G>(grad));
    detail::multiply_live(grad_x, saved.slopes, grad_x);
    return grad_x;
  }

  static auto members(auto&) { return Members{}; }

  ActivationKind kind = ActivationKind::relu;

 private:
  void activate(const TensorView<T, 2>& x, T* slopes) const {
    const Index width = x.extent(1);
    detail::for_row_runs(x.extent(0), 8 * width, [&](Index first, Index last) {
      T* at = x.data_handle() + first * width;
      simd::row_kernels<T>().activate(kind, at, at, slopes ? slopes + first * width : nullptr,
                                      (last - first) * width);
    });
  }
};

struct FeedForwardOptions {
  Index model_dim = 0;
  Index hidden_dim = 0;  // 0: 4 · model_dim
  ActivationKind activation = ActivationKind::relu;
  /// activation(gate · x) ⊙ (up · x) in the middle: SwiGLU with silu, GeGLU with gelu. Shazeer
  /// 2020.
  bool gated = false;
  bool bias = true;
  double dropout = 0;  // after the activation
};

/// The part of a block that sees each token alone: down(activation(up(x))), or gated
/// down(activation(gate(x)) ⊙ up(x)). x (…, model_dim) is a tensor or view of any rank; the result
/// has its shape.
template <ModelScalar T>
struct FeedForward {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 2> input;  // (rows, model_dim)
    typename Activation<T>::Saved activation;
    Tensor<T, 2> activated, up;  // where gated
    typename Dropout<T>::Saved dropout;
    typename Linear<T>::Saved down;
    std::optional<Tensor<bfloat16, 2>> narrow;  // (rows, hidden_dim), instead of down.input
  };

  FeedForward() = default;
  FeedForward(const FeedForwardOptions& options, Random& random = detail::expect_random<T>())
      : up({options.model_dim, hidden_dim_of(options), options.bias}, random),
        down({up.weight.extent(0), options.model_dim, options.bias}, random),
        activation(options.activation),
        dropout(options.dropout, random) {
    if (options.gated)
      gate.emplace(LinearOptions{up.weight.extent(1), up.weight.extent(0), options.bias}, random);
  }
  FeedForward(Index model_dim, Index hidden_dim, Random& random = detail::expect_random<T>())
      : FeedForward({.model_dim = model_dim, .hidden_dim = hidden_dim}, random) {}

  template <Viewable X>
  auto forward(const X& x) const {
    const detail::Rows<T> rows(x);
    return shaped(rows_forward(rows.view()), view_of(x).extents());
  }
  template <class X>
  auto forward(X&& x, const Noise& noise, Saved& saved) const {
    const auto extents = view_of(x).extents();
    return shaped(rows_forward(detail::owned_rows<T>(std::forward<X>(x)), noise, saved), extents);
  }
  template <class X>
  auto forward(X&& x, Saved& saved) const {
    return forward(std::forward<X>(x), Noise{}, saved);
  }

  template <Viewable G>
  auto backward(const G& grad, const Saved& saved, FeedForward& gradients) const {
    const detail::Rows<T> rows(grad);
    return shaped(rows_backward(rows.view(), saved, gradients), view_of(grad).extents());
  }
  template <class... More>
  Input backward(const Saved&, const More&...) const {
    return detail::expect_gradient_first<Input, More...>(), Input();
  }

  /// Throws ShapeError unless `saved` can be from a forward pass over so many rows.
  void check_saved(const Saved& saved, Index rows) const {
    const Extents<2> hidden{rows, up.weight.extent(0)}, gated = gate ? hidden : Extents<2>{};
    detail::check_saved(
        "FeedForward",
        saved.input.extents() == Extents<2>{rows, up.weight.extent(1)} &&
            saved.activation.slopes.extents() == hidden && saved.activated.extents() == gated &&
            saved.up.extents() == gated &&
            (saved.narrow ? saved.narrow->extents() : saved.down.input.extents()) == hidden);
  }

  /// Lays the weights out for inference; see Linear::pack.
  void pack() {
    up.pack();
    down.pack();
    if (gate) gate->pack();
  }

  static auto members(auto& layer) {
    return Members{member("up", layer.up), member("gate", layer.gate), member("down", layer.down),
                   member("", layer.dropout)};
  }

  Linear<T> up;
  std::optional<Linear<T>> gate;
  Linear<T> down;
  Activation<T> activation;
  Dropout<T> dropout;

 private:
  static Index hidden_dim_of(const FeedForwardOptions& options) {
    Index hidden = options.hidden_dim;
    if (hidden == 0 && __builtin_mul_overflow(Index{4}, options.model_dim, &hidden)) {
      throw_invalid_argument("FeedForward: model_dim ", options.model_dim, ", of which the hidden ",
                             "dimension is four times as much");
    }
    return hidden;
  }
  /// The rows in the shape of `extents`, but for their width.
  template <std::size_t Rank>
  static Tensor<T, Rank> shaped(Tensor<T, 2> rows, const Extents<Rank>& extents) {
    const Index width = rows.extent(1);
    return std::move(rows).reshaped(detail::with_width(extents, width));
  }
  Tensor<T, 2> rows_forward(const TensorView<const T, 2>& x) const {
    if (!gate) return down.forward(activation.forward(up.forward(x)));
    auto [raised, gates] = raised_and_gates(x);
    activate_and_multiply(gates, raised);
    return down.forward(gates);
  }
  Tensor<T, 2> rows_forward(Tensor<T, 2> x, const Noise& noise, Saved& saved) const {
    if constexpr (std::is_same_v<T, float>) {
      if (narrows(noise)) return narrow_forward(std::move(x), noise, saved);
    }
    Tensor<T, 2> hidden;
    if (gate) {
      std::tie(saved.up, hidden) = raised_and_gates(x);
      hidden = activation.forward(std::move(hidden), saved.activation);
      saved.activated = hidden;
      multiply(hidden, saved.up, hidden);
    } else {
      hidden = activation.forward(up.forward(x), saved.activation);
      saved.up = saved.activated = Tensor<T, 2>();  // another layer's, perhaps
    }
    saved.input = std::move(x);
    saved.narrow.reset();
    return down.forward(dropout.forward(std::move(hidden), noise, saved.dropout), saved.down);
  }

  /// Whether `down` can read bfloat16. Where its products are in bfloat16, that changes no bit, and
  /// halves what is written and read of the widest tensor of a block.
  bool narrows(const Noise& noise) const {
    return down.products == Products::bfloat16 && down.packed.empty() && !down.exchange &&
           !dropout.drops(noise);
  }
  template <std::same_as<float> = T>
  Tensor<T, 2> narrow_forward(Tensor<T, 2> x, const Noise& noise, Saved& saved) const {
    const auto& kernels = simd::row_kernels<T>();
    Tensor<T, 2> raised, hidden, activated;
    if (gate) {
      std::tie(raised, hidden) = raised_and_gates(x);
      activated = Tensor<T, 2>::uninitialized(hidden.extents());
    } else {
      hidden = up.forward(x);
    }
    saved.narrow = detail::narrowed<T>(hidden.extents(), [&](Index at, Index count, T* space) {
      T* slopes = hidden.data() + at;  // which take the place of what was activated
      T* to = gate ? activated.data() + at : space;
      kernels.activate(activation.kind, slopes, to, slopes, count);
      if (gate) kernels.multiply(to, raised.data() + at, space, count);
      return space;
    });
    saved.input = std::move(x);
    saved.activation.slopes = std::move(hidden);
    saved.activated = std::move(activated);
    saved.up = std::move(raised);
    saved.dropout = noise;
    saved.down.input = Tensor<T, 2>();
    return down.product(*saved.narrow);
  }
  Tensor<T, 2> rows_backward(const TensorView<const T, 2>& grad, const Saved& saved,
                             FeedForward& gradients) const {
    detail::check_gradients(*this, gradients);
    detail::check_gradient("FeedForward", grad.extents(), saved.input.extents());
    check_saved(saved, grad.extent(0));
    auto grad_hidden = down_backward(grad, saved, gradients);
    grad_hidden = dropout.backward(std::move(grad_hidden), saved.dropout, gradients.dropout);
    Tensor<T, 2> grad_x;
    if (gate) {
      auto grad_up = Tensor<T, 2>::uninitialized(grad_hidden.extents());
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
  Tensor<T, 2> down_backward(const TensorView<const T, 2>& grad, const Saved& saved,
                             FeedForward& gradients) const {
    if constexpr (std::is_same_v<T, float>) {
      if (saved.narrow && down.products == Products::bfloat16) {
        return down.backward(grad, *saved.narrow, gradients.down);
      }
      if (saved.narrow) {  // set_products was called in between
        return down.backward(grad, Tensor<T, 2>::copy_of(*saved.narrow), gradients.down);
      }
    }
    return down.backward(grad, saved.down, gradients.down);
  }
  /// up(x) and gate(x), computed together.
  std::pair<Tensor<T, 2>, Tensor<T, 2>> raised_and_gates(const TensorView<const T, 2>& x) const {
    ProductGroup<T> group(x);
    std::pair both{up.join(group, x), gate->join(group, x)};
    if (both.first.extents() != both.second.extents()) {
      throw_shape_error("FeedForward: gate has ", both.second.extent(1), " outputs, up ",
                        both.first.extent(1));
    }
    group.run();
    return both;
  }
  /// gates = activation(gates) ⊙ raised, one row at a time, since a row fits the first-level cache.
  void activate_and_multiply(Tensor<T, 2>& gates, const Tensor<T, 2>& raised) const {
    const Index width = gates.extent(1);
    const auto& kernels = simd::row_kernels<T>();
    detail::for_row_runs(gates.extent(0), 8 * width, [&](Index row, Index last) {
      for (; row < last; ++row) {
        T* gate_row = gates.data() + row * width;
        kernels.activate(activation.kind, gate_row, gate_row, nullptr, width);
        kernels.multiply(gate_row, raised.data() + row * width, gate_row, width);
      }
    });
  }
  static void multiply(const Tensor<T, 2>& a, const Tensor<T, 2>& b, Tensor<T, 2>& out) {
    const Index width = a.extent(1);
    detail::for_row_runs(a.extent(0), width, [&](Index first, Index last) {
      const Index at = first * width;
      simd::row_kernels<T>().multiply(a.data() + at, b.data() + at, out.data() + at,
                                      (last - first) * width);
    });
  }
};

HEED_LINKED_LAYER(Activation)
HEED_LINKED_LAYER(FeedForward)

}  // namespace heed
