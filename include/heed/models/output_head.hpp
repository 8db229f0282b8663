// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/embedding.hpp>
#include <heed/layers/linear.hpp>

namespace heed {

/// From the last block to logits, one per token of the vocabulary: by a weight of its own or, tied,
/// by the embeddings' table (Press and Wolf 2017), which is handed in and keeps its one name.
template <Scalar T>
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
    if (packed.empty()) {
      matrix_product(detail::as_rows(x), embedding.weight.view().permute({1, 0}),
                     detail::as_rows(logits));
    } else {
      matrix_product(detail::as_rows(x), packed, detail::as_rows(logits));
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
    if (own) return own->backward(grad, saved.input, *gradients.own);
    detail::accumulate_weight<T>(detail::as_rows(grad), detail::as_rows(saved.input),
                                 grad_embedding.weight);
    auto grad_x = Tensor<T, 3>::uninitialized(saved.input.extents());
    matrix_product(detail::as_rows(grad), embedding.weight, detail::as_rows(grad_x));
    return grad_x;
  }

  void initialize(double deviation, Random& random) {
    if (!own) return;
    for (T& value : own->weight) value = static_cast<T>(deviation * random.normal());
  }
  /// Lays the weight out for inference; see Linear::pack.
  void pack(const Embedding<T>& embedding) {
    if (own) {
      own->pack();
    } else if (!packed.is_quantized()) {
      packed = PackedMatrix<T>(embedding.weight.view().permute({1, 0}));
    }
  }

  static auto members(auto& head) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(head)>>) head.packed = {};
    return std::tuple{member("", head.own)};
  }

  std::optional<Linear<T>> own;
  PackedMatrix<T> packed;  // of a tied head
};

}  // namespace heed
