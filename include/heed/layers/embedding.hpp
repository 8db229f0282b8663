// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Token numbers, (batch, tokens).
using Tokens = Tensor<Index, 2>;

struct EmbeddingOptions {
  Index vocab_size = 0;
  Index dim = 0;
  double init_std = 1;  // of the normal distribution that weights start from
};

/// A row of its table for every token: (batch, tokens) to (batch, tokens, dim).
template <Scalar T>
struct Embedding {
  using Input = Tokens;
  using Output = Tensor<T, 3>;
  struct Saved {
    Tokens tokens;
  };

  Embedding() = default;
  Embedding(const EmbeddingOptions& options, Random& random)
      : weight({options.vocab_size, options.dim}) {
    if (options.vocab_size < 1 || options.dim < 1) {
      throw_invalid_argument("Embedding: vocabulary ", options.vocab_size, ", dim ", options.dim,
                             "; expected 1 or more");
    }
    for (T& value : weight) value = static_cast<T>(options.init_std * random.normal());
  }

  /// Throws InvalidArgument for a token outside the vocabulary.
  Output forward(const Tokens& tokens) const {
    const Index dim = weight.extent(1);
    for (const Index token : tokens) {
      if (token < 0 || token >= weight.extent(0)) {
        throw_invalid_argument("Embedding: token ", token, ", expected 0 to ",
                               weight.extent(0) - 1);
      }
    }
    auto y = Output::uninitialized({tokens.extent(0), tokens.extent(1), dim});
    for (Index i = 0; i < tokens.size(); ++i) {
      const T* row = weight.data() + tokens.data()[i] * dim;
      for (Index d = 0; d < dim; ++d) y.data()[i * dim + d] = row[d];
    }
    return y;
  }
  Output forward(const Tokens& tokens, Saved& saved) const {
    saved.tokens = tokens;
    return forward(tokens);
  }

  /// Tokens have no gradient: only the table's accumulates, in the order of the tokens.
  void backward(const Output& grad, const Saved& saved, Embedding& gradients) const {
    const Index dim = weight.extent(1);
    const auto add = simd::row_kernels<T>().add;
    for (Index i = 0; i < saved.tokens.size(); ++i) {
      add(grad.data() + i * dim, gradients.weight.data() + saved.tokens.data()[i] * dim, dim);
    }
  }

  static auto members(auto& layer) { return std::tuple{member("weight", layer.weight)}; }

  Tensor<T, 2> weight;  // (vocabulary, dim)
};

}  // namespace heed
