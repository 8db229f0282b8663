// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <tuple>

#include <heed/attention/gradient_options.hpp>
#include <heed/attention/options.hpp>
#include <heed/attention/relative_bias.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/multi_head_attention_options.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>

namespace heed {

/// What attention adds to its scores by how far a key is from its query: numbers that are learned,
/// a mask that training makes (Shaw et al. 2018, Raffel et al. 2020), or ALiBi's slopes, which are
/// not (Press et al. 2022).
template <Scalar T>
struct ScoreBias {
  ScoreBias() = default;
  explicit ScoreBias(const MultiHeadAttentionOptions& options) {
    if (options.relative_reach > 0) {
      relative.emplace(Extents<2>{options.heads, 2 * options.relative_reach + 1});
    }
    if (options.alibi) slopes = alibi_slopes<T>(options.heads);
  }

  /// The kernel's options look at the numbers here.
  void apply(AttentionOptions<T>& kernel) const {
    if (relative) kernel.relative_bias = relative->view();
    kernel.alibi_slopes = OwnedArray<T>::borrowed(slopes);
  }
  /// Where a backward pass puts the gradient of the learned numbers; `buffer` gets their shape.
  GradientOptions<T> gradient_options(Tensor<T, 2>& buffer) const {
    GradientOptions<T> wanted;
    if (!relative) return wanted;
    buffer = Tensor<T, 2>(relative->extents());
    wanted.grad_relative_bias = buffer.view();
    return wanted;
  }
  void accumulate(const Tensor<T, 2>& buffer, ScoreBias& gradients) const {
    if (!relative) return;
    simd::row_kernels<T>().add(buffer.data(), gradients.relative->data(), buffer.size());
  }

  static auto members(auto& bias) { return std::tuple{member("relative_bias", bias.relative)}; }

  /// (heads, 2 · reach + 1): for distances key − query = −reach … reach, the ends for all beyond.
  /// They start at 0. `relative_bias(table, buckets)` makes them of T5's table.
  std::optional<Tensor<T, 2>> relative;
  Tensor<T, 1> slopes;  // one a head
};

}  // namespace heed
