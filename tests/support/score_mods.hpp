// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <heed/attention/relative_bias.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {

/// A user's change of scores, with its derivative.
struct Bend {
  template <class T>
  T value(T score, Position at) const {
    return score + score * score / 8 + static_cast<T>((at.query + 3 * at.key + at.head) % 5) / 4;
  }
  template <class T>
  T derivative(T score, Position) const {
    return 1 + score / 4;
  }
};

/// The arrays behind every change of scores, and options that ask for some of them.
template <class T>
struct Changes {
  enum : unsigned {
    softcap = 1,
    alibi = 2,
    relative = 4,
    bias = 8,
    function = 16,
    sinks = 32,
    dropout = 64,
    all = 127
  };

  Changes(const Shape& shape, std::uint64_t seed, Extents<4> bias_extents) {
    std::mt19937_64 bits(seed);
    const auto of_heads = alibi_slopes<T>(shape.heads);
    slopes.assign(of_heads.begin(), of_heads.end());
    sink_scores = random_tensor<T, 1>({shape.heads}, bits, 2);
    relative_table = random_tensor<T, 2>({shape.heads, 2 * 9 + 1}, bits, 1);
    bias_table = random_tensor<T, 4>(bias_extents, bits, 2);
  }
  Changes(const Shape& shape, std::uint64_t seed)
      : Changes(shape, seed, {shape.batch, shape.heads, shape.queries, shape.keys}) {}
  Changes() = default;

  /// The same numbers in a wider type.
  template <class W>
  Changes<W> as() const {
    Changes<W> wide;
    wide.slopes.assign(slopes.begin(), slopes.end());
    wide.sink_scores = converted<W>(sink_scores);
    wide.relative_table = converted<W>(relative_table);
    wide.bias_table = converted<W>(bias_table);
    return wide;
  }

  AttentionOptions<T> options(unsigned which) const {
    AttentionOptions<T> result;
    if (which & softcap) result.softcap = T{3};
    if (which & alibi) result.alibi_slopes = slopes;
    if (which & relative) result.relative_bias = relative_table.view();
    if (which & bias) result.bias = bias_table;
    if (which & function) result.score_function = bend;
    if (which & sinks) result.sinks = sink_scores;
    if (which & dropout) result.dropout = {.probability = 0.25f, .seed = 7, .layer = 3};
    return result;
  }

  std::vector<T> slopes;
  Tensor<T, 1> sink_scores;
  Tensor<T, 2> relative_table;
  Tensor<T, 4> bias_table;
  Bend bend;
};

}  // namespace heed::test
