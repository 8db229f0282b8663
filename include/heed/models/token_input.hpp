// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/positions.hpp>

namespace heed {

struct TokenInputOptions {
  Index vocab_size = 0;
  Index model_dim = 0;
  PositionKind positions = PositionKind::none;
  Index max_length = 0;    // of learned positions
  double init_std = 0.02;  // that weights start from
  double factor = 1;       // on the embeddings; the original transformer has √model_dim
  double dropout = 0;
};

/// What goes into the first block: embeddings of the tokens and where they stand.
template <Scalar T>
struct TokenInput {
  using Input = Tokens;
  using Output = Tensor<T, 3>;
  struct Saved {
    typename Embedding<T>::Saved embedding;
    typename LearnedPositions<T>::Saved positions;
    typename Dropout<T>::Saved dropout;
  };

  TokenInput() = default;
  TokenInput(const TokenInputOptions& options, Random& random)
      : embedding({options.vocab_size, options.model_dim, options.init_std}, random),
        dropout(options.dropout, random),
        factor(options.factor) {
    if (options.positions == PositionKind::learned) {
      positions.emplace(
          LearnedPositionsOptions{options.max_length, options.model_dim, options.init_std}, random);
    }
    if (options.positions == PositionKind::sinusoidal) sinusoidal.emplace();
  }

  /// Throws ShapeError for positions that do not fit the tokens, whatever their kind here.
  Output forward(const Tokens& tokens, const Positions& at = {}) const {
    at.check("TokenInput", tokens.extents());
    auto x = scaled(embedding.forward(tokens));
    if (positions) x = positions->forward(std::move(x), at);
    if (sinusoidal) x = sinusoidal->forward(std::move(x), at);
    return x;
  }
  Output forward(const Tokens& tokens, const Positions& at, const Noise& noise,
                 Saved& saved) const {
    auto x = forward(tokens, at);
    saved.embedding.tokens = tokens;
    saved.positions.positions = at;
    return dropout.forward(std::move(x), noise, saved.dropout);
  }
  Output forward(const Tokens& tokens, const Noise& noise, Saved& saved) const {
    return forward(tokens, {}, noise, saved);
  }

  void backward(Output grad, const Saved& saved, TokenInput& gradients) const {
    grad = dropout.backward(std::move(grad), saved.dropout, gradients.dropout);
    if (positions) {
      grad = positions->backward(std::move(grad), saved.positions, *gradients.positions);
    }
    embedding.backward(scaled(std::move(grad)), saved.embedding, gradients.embedding);
  }

  static auto members(auto& input) {
    return std::tuple{member("embedding", input.embedding), member("positions", input.positions)};
  }

  Embedding<T> embedding;
  std::optional<LearnedPositions<T>> positions;
  std::optional<SinusoidalPositions<T>> sinusoidal;
  Dropout<T> dropout;
  double factor = 1;

 private:
  Output scaled(Output x) const {
    if (factor == 1) return x;
    for (T& value : x) value *= static_cast<T>(factor);
    return x;
  }
};

}  // namespace heed
