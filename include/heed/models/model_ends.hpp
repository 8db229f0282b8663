// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/product_kernels.hpp>
#include <heed/layers/detail/rows.hpp>
#include <heed/layers/dropout.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/linear.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/tensor.hpp>

// The two ends of a model, before its first block and after its last.
namespace heed {

/// The options of TokenInput, which models fill in.
struct TokenInputOptions {
  Index vocab_size = 0;
  Index model_dim = 0;
  PositionKind positions = PositionKind::none;
  Index max_length = 0;    // of learned positions
  double init_std = 0.02;  // of the normal distribution that weights start from
  double factor = 1;       // on the embeddings; √model_dim in the original transformer
  double dropout = 0;
};

/// The input of the first block: embeddings of the tokens, plus learned or sinusoidal positions.
template <ModelScalar T>
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
      : embedding(table_options(options), random),
        dropout(options.dropout, random),
        factor(options.factor) {
    if (!std::isfinite(static_cast<T>(factor))) {
      throw_invalid_argument("TokenInput: a factor of ", factor,
                             " on the embeddings; expected a finite number");
    }
    if (options.positions == PositionKind::learned) {
      positions.emplace(
          LearnedPositionsOptions{options.max_length, options.model_dim, options.init_std}, random);
    }
    if (options.positions == PositionKind::sinusoidal) sinusoidal.emplace();
  }

  /// Throws ShapeError for positions that do not fit the tokens, whatever the kind of positions.
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
    saved.positions = {at, x.extents()};
    return dropout.forward(std::move(x), noise, saved.dropout);
  }
  Output forward(const Tokens& tokens, const Noise& noise, Saved& saved) const {
    return forward(tokens, {}, noise, saved);
  }

  void backward(Output grad, const Saved& saved, TokenInput& gradients) const {
    detail::check_gradients(*this, gradients);
    check_saved(saved, grad.extents());
    grad = dropout.backward(std::move(grad), saved.dropout, gradients.dropout);
    if (positions) {
      grad = positions->backward(std::move(grad), saved.positions, *gradients.positions);
    }
    embedding.backward(scaled(std::move(grad)), saved.embedding, gradients.embedding);
  }

  /// Throws unless `saved` can be from a forward pass to x of these extents: ShapeError, and
  /// InvalidArgument for a token outside the vocabulary.
  void check_saved(const Saved& saved, const Extents<3>& x) const {
    const auto& tokens = saved.embedding.tokens;
    detail::check_gradient("TokenInput", x,
                           {tokens.extent(0), tokens.extent(1), embedding.weight.extent(1)});
    embedding.check(tokens);
    if (!positions) return;
    detail::check_gradient("TokenInput", x, saved.positions.extents);
    positions->check(x, saved.positions.positions);
  }

  static auto members(auto& input) {
    return Members{member("embedding", input.embedding), member("positions", input.positions),
                   member("", input.dropout)};
  }

  Embedding<T> embedding;
  std::optional<LearnedPositions<T>> positions;
  std::optional<SinusoidalPositions<T>> sinusoidal;
  Dropout<T> dropout;
  double factor = 1;

 private:
  static EmbeddingOptions table_options(const TokenInputOptions& options) {
    if (options.vocab_size < 1 || options.model_dim < 1) {
      throw_invalid_argument("a model with vocab_size ", options.vocab_size,
                             " and block.model_dim ", options.model_dim, "; expected 1 or more");
    }
    return {options.vocab_size, options.model_dim, options.init_std};
  }
  Output scaled(Output x) const {
    if (factor == 1) return x;
    for (T& value : x) value *= static_cast<T>(factor);
    return x;
  }
};

namespace detail {

/// Throws InvalidArgument for sizes of a model below 0.
inline void check_sizes(const char* model, Index layers, Index max_length) {
  if (layers >= 0 && max_length >= 0) return;
  throw_invalid_argument(model, ": layers ", layers, ", max_length ", max_length,
                         "; expected 0 or more");
}
/// Throws ShapeError where the backward pass of a model cannot begin: gradients of another shape,
/// or a gradient or `saved` that is not of a forward pass over these tokens.
template <class Model>
void check_backward(const char* name, const Model& model, const Model& gradients,
                    const typename Model::Output& grad, const typename Model::Saved& saved,
                    Index width) {
  const auto& tokens = saved.input.embedding.tokens;
  check_gradients(model, gradients);
  check_gradient(name, grad.extents(), {tokens.extent(0), tokens.extent(1), width});
  model.check_saved(saved);
}
/// Throws ShapeError unless what the blocks and the last norm of a model saved can be from a
/// forward pass over x of these extents. `memory`: its extents, for blocks that have one.
template <class Model, class... Memory>
void check_saved_blocks(const char* name, const Model& model, const typename Model::Saved& saved,
                        const Extents<3>& x, const Memory&... memory) {
  check_saved(name, saved.blocks.size() == model.blocks.size());
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    model.blocks[i].check_saved(saved.blocks[i], x, memory...);
  }
  if (model.norm) model.norm->check_saved(saved.norm, x[0] * x[1]);
}

}  // namespace detail

/// Logits from the output of the last block, one per token of the vocabulary, by a weight of its
/// own or, tied, by the table of embeddings (Press and Wolf 2017). A tied head gets the table in
/// every call, so the table has one owner and one name.
template <ModelScalar T>
struct OutputHead {
  using Output = Tensor<T, 3>;
  struct Saved {
    Tensor<T, 3> input;
  };

  OutputHead() = default;
  OutputHead(Index model_dim, Index vocabulary, bool tied, Random& random) {
    if (!tied) own.emplace(LinearOptions{model_dim, vocabulary, false}, random);
  }

  Output forward(const Tensor<T, 3>& x, const Embedding<T>& embedding) const {
    if (own) return own->forward(x);
    auto logits = Output::uninitialized({x.extent(0), x.extent(1), embedding.weight.extent(0)});
    if (!reads_packed || embedding.packed.empty()) {
      matrix_product(detail::as_rows(x), embedding.weight.view().transpose(),
                     detail::as_rows(logits), {.products = products});
    } else {
      matrix_product(detail::as_rows(x), embedding.packed, detail::as_rows(logits));
    }
    return logits;
  }
  Output forward(Tensor<T, 3> x, const Embedding<T>& embedding, Saved& saved) const {
    auto logits = forward(x, embedding);
    saved.input = std::move(x);
    return logits;
  }

  Tensor<T, 3> backward(const Output& grad, const Embedding<T>& embedding, const Saved& saved,
                        OutputHead& gradients, Embedding<T>& grad_embedding) const {
    detail::check_gradients(*this, gradients);
    detail::check_gradients(embedding, grad_embedding);
    if (own) return own->backward(grad, saved.input, *gradients.own);
    detail::accumulate_weight<T>(detail::as_rows(grad), detail::as_rows(saved.input),
                                 grad_embedding.weight, products);
    auto grad_x = Tensor<T, 3>::uninitialized(saved.input.extents());
    matrix_product(detail::as_rows(grad), embedding.weight, detail::as_rows(grad_x),
                   {.products = products});
    return grad_x;
  }

  void initialize(double deviation, Random& random) {
    if (!own) return;
    detail::WeightDraws::fill(own->weight, random, [&] { return deviation * random.normal(); });
  }
  /// Lays the weight out for inference; see Linear::pack. The copy of a table is beside it.
  void pack(Embedding<T>& embedding) {
    if (own) {
      own->pack();
      return;
    }
    if (products != Products::exact || !reads_packed || !embedding.packed.is_quantized()) {
      embedding.packed = PackedMatrix<T>(embedding.weight.view().transpose(), products);
    }
    reads_packed = true;
  }

  static auto members(auto& head) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(head)>>) {
      head.reads_packed = false;
    }
    return Members{member("", head.own)};
  }

  std::optional<Linear<T>> own;
  // Of a tied head:
  bool reads_packed = false;  // the table's copy, where there is one
  Products products = Products::exact;
};

HEED_LINKED_LAYER(TokenInput)
HEED_LINKED_LAYER(OutputHead)

}  // namespace heed
