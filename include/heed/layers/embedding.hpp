// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Tokens, (batch, tokens), as indices into a vocabulary.
using Tokens = Tensor<Index, 2>;

namespace detail {

/// Draws weights from the normal distribution around 0. Throws InvalidArgument for a deviation that
/// is negative or not finite.
template <class T>
void draw_weights(const char* layer, double init_std, Random& random, Tensor<T, 2>& weights) {
  if (!(init_std >= 0) || !std::isfinite(init_std)) {
    throw_invalid_argument(layer, ": init_std ", init_std, ", expected 0 or more, and finite");
  }
  WeightDraws::fill(weights, random, [&] { return init_std * random.normal(); });
}

/// Refuses what is given where tokens belong.
template <class X>
void expect_tokens() {
  static_assert(
      std::is_same_v<X, Tokens>,
      "models and Embedding take Tokens, (batch, tokens): Tokens({1, length}, list) makes "
      "them of a list, and Tokens::copy_of(view) of a view");
}

}  // namespace detail

struct EmbeddingOptions {
  Index vocab_size = 0;
  Index dim = 0;
  double init_std = 1;  // of the normal distribution that weights start from
};

/// Each token replaced by its row in a learned table: (batch, tokens) to (batch, tokens, dim).
template <ModelScalar T>
struct Embedding {
  using Input = Tokens;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tokens tokens;
  };

  Embedding() = default;
  Embedding(const EmbeddingOptions& options, Random& random = detail::expect_random<T>()) {
    if (options.vocab_size < 1 || options.dim < 1) {
      throw_invalid_argument("Embedding: vocabulary ", options.vocab_size, ", dim ", options.dim,
                             "; expected 1 or more");
    }
    weight = Tensor<T, 2>({options.vocab_size, options.dim});
    detail::draw_weights("Embedding", options.init_std, random, weight);
  }
  Embedding(Index vocab_size, Index dim, Random& random = detail::expect_random<T>())
      : Embedding({.vocab_size = vocab_size, .dim = dim}, random) {}

  /// Throws InvalidArgument for a token outside the vocabulary.
  Output forward(const Tokens& tokens) const {
    const Index dim = weight.extent(1);
    check(tokens);
    auto y = Output::uninitialized({tokens.extent(0), tokens.extent(1), dim});
    for (Index i = 0; i < tokens.size(); ++i) {
      std::copy_n(weight.data() + tokens.data()[i] * dim, dim, y.data() + i * dim);
    }
    return y;
  }
  template <class X, class... More>
  Output forward(const X&, const More&...) const
      requires(!std::is_convertible_v<const X&, Tokens>) {
    return detail::expect_tokens<X>(), Output();
  }
  Output forward(const Tokens& tokens, Saved& saved) const {
    saved.tokens = tokens;
    return forward(tokens);
  }

  /// Adds to the gradient of the table, in the order of the tokens. Tokens have no gradient.
  void backward(const Output& grad, const Saved& saved, Embedding& gradients) const {
    const Index dim = weight.extent(1);
    const auto& tokens = saved.tokens;
    detail::check_gradients(*this, gradients);
    detail::check_gradient("Embedding", grad.extents(), {tokens.extent(0), tokens.extent(1), dim});
    check(tokens);
    const auto add = simd::row_kernels<T>().add;
    for (Index i = 0; i < tokens.size(); ++i) {
      add(grad.data() + i * dim, gradients.weight.data() + tokens.data()[i] * dim, dim);
    }
  }

  /// Throws InvalidArgument for a token outside the vocabulary.
  void check(const Tokens& tokens) const {
    for (const Index token : tokens) {
      if (token >= 0 && token < weight.extent(0)) continue;
      throw_invalid_argument("Embedding: token ", token, ", the vocabulary has ", weight.extent(0));
    }
  }

  static auto members(auto& layer) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(layer)>>) layer.packed = {};
    return Members{member("weight", layer.weight)};
  }

  Tensor<T, 2> weight;     // (vocabulary, dim)
  PackedMatrix<T> packed;  // its transpose, for the head that shares it; see OutputHead::pack
};

struct LearnedPositionsOptions {
  Index max_length = 0;
  Index dim = 0;
  double init_std = 0.02;  // of the normal distribution that weights start from
};

/// Learned positions: each token plus the vector of its position. x is (batch, tokens, dim).
template <ModelScalar T>
struct LearnedPositions {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Positions positions;
    Extents<3> extents{};  // of x
  };

  LearnedPositions() = default;
  LearnedPositions(const LearnedPositionsOptions& options,
                   Random& random = detail::expect_random<T>())
      : weight({options.max_length, options.dim}) {
    detail::draw_weights("LearnedPositions", options.init_std, random, weight);
  }

  /// Throws ShapeError where the positions do not fit x or the table.
  Output forward(Input x, const Positions& positions = {}) const {
    check(x.extents(), positions);
    const auto add = simd::row_kernels<T>().add;
    for_each_run(x, positions, [&](Index first, T* rows, Index size) {
      add(weight.data() + first * weight.extent(1), rows, size);
    });
    return x;
  }
  Output forward(Input x, Saved& saved, const Positions& positions = {}) const {
    saved = {positions, x.extents()};
    return forward(std::move(x), positions);
  }

  Input backward(Output grad, const Saved& saved, LearnedPositions& gradients) const {
    detail::check_gradients(*this, gradients);
    detail::check_gradient("LearnedPositions", grad.extents(), saved.extents);
    check(grad.extents(), saved.positions);
    const auto add = simd::row_kernels<T>().add;
    for_each_run(grad, saved.positions, [&](Index first, const T* rows, Index size) {
      add(rows, gradients.weight.data() + first * weight.extent(1), size);
    });
    return grad;
  }

  /// Throws ShapeError where positions of x, of these extents, do not fit it or the table.
  void check(const Extents<3>& x, const Positions& positions) const {
    const Index tokens = x[1], length = weight.extent(0), first = positions.first();
    if (x[2] != weight.extent(1)) {
      throw_shape_error("LearnedPositions: x is ", x, ", the table ", weight.extents());
    }
    if (positions.are_columns()) {
      if (first >= 0 && tokens <= length - first) return;
      throw_shape_error("LearnedPositions: ", tokens, " tokens from position ", first,
                        " where max_length is ", length);
    }
    positions.check("LearnedPositions", {x[0], tokens});
    for (Index item = 0; item < x[0]; ++item) {
      for (Index token = 0; token < tokens; ++token) {
        if (positions.at(item, token) < length) continue;
        throw_shape_error("LearnedPositions: token ", token, " of row ", item, " at position ",
                          positions.at(item, token), " where max_length is ", length);
      }
    }
  }

  static auto members(auto& layer) { return Members{member("weight", layer.weight)}; }

  Tensor<T, 2> weight;  // (max_length, dim)

 private:
  /// Calls run(position, values, count) for each stretch of tokens at consecutive positions: a
  /// whole row of x where positions are columns, else each token.
  template <class Run>
  static void for_each_run(Input& x, const Positions& positions, const Run& run) {
    const Index tokens = x.extent(1), dim = x.extent(2);
    const Index together = positions.are_columns() ? tokens : 1;
    for (Index item = 0; item < x.extent(0); ++item) {
      for (Index token = 0; token < tokens; token += together) {
        run(positions.at(item, token), x.data() + (item * tokens + token) * dim, together * dim);
      }
    }
  }
};

/// Sinusoidal positions: the token at position p plus sin(p / base^(2i / dim)) in element 2i and
/// the cosine of the same in element 2i + 1. Vaswani et al. 2017. No parameters.
template <ModelScalar T>
struct SinusoidalPositions {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {};

  SinusoidalPositions() = default;
  explicit SinusoidalPositions(std::floating_point auto given) : base(given) {}
  explicit SinusoidalPositions(std::integral auto) {
    static_assert(detail::never<T>,
                  "positions have the width of what they are added to: "
                  "SinusoidalPositions<float>(), or the base as a double");
  }

  /// The vectors of `length` positions from `first` on, (length, dim).
  Tensor<T, 2> table(Index length, Index dim, Index first = 0) const {
    Tensor<T, 2> rows({length, dim});
    for (Index i = 0; i < dim; ++i) {
      const double frequency =
          std::pow(base, -static_cast<double>(i - i % 2) / static_cast<double>(dim));
      for (Index p = 0; p < length; ++p) {
        const double angle = static_cast<double>(first + p) * frequency;
        rows(p, i) = static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
    return rows;
  }

  /// Throws ShapeError where the positions do not fit x.
  Output forward(Input x, const Positions& positions = {}) const {
    const Index tokens = x.extent(1), dim = x.extent(2);
    positions.check("SinusoidalPositions", {x.extent(0), tokens});
    const auto add = simd::row_kernels<T>().add;
    if (positions.are_columns()) {
      const auto rows = table(tokens, dim, positions.first());
      for (Index item = 0; item < x.extent(0); ++item) {
        add(rows.data(), x.data() + item * rows.size(), rows.size());
      }
      return x;
    }
    Index last = 0;
    for (Index i = 0; i < x.extent(0) * tokens; ++i) {
      last = std::max(last, positions.at(i / tokens, i % tokens));
    }
    const bool few = last < x.extent(0) * tokens;  // then every sine is computed once
    const auto rows = table(few ? last + 1 : 0, dim);
    for (Index i = 0; i < x.extent(0) * tokens; ++i) {
      const Index at = positions.at(i / tokens, i % tokens);
      add(few ? rows.data() + at * dim : table(1, dim, at).data(), x.data() + i * dim, dim);
    }
    return x;
  }
  Output forward(Input x, Saved&, const Positions& positions = {}) const {
    return forward(std::move(x), positions);
  }
  Input backward(Output grad, const Saved&, SinusoidalPositions&) const { return grad; }

  static auto members(auto&) { return Members{}; }

  double base = 10000;
};

HEED_LINKED_LAYER(Embedding)
HEED_LINKED_LAYER(LearnedPositions)
HEED_LINKED_LAYER(SinusoidalPositions)

}  // namespace heed
