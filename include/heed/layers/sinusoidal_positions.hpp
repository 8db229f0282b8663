// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>

#include <heed/core/scalar.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Adds sin(p / 10000^(2i / dim)) to element 2i and the cosine to element 2i + 1 of the token at
/// position p. Vaswani et al. 2017. No parameters.
template <Scalar T>
struct SinusoidalPositions {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {};

  /// (length, dim), what is added to positions `first` and on.
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

  /// Throws ShapeError for positions that do not fit x.
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

  static auto members(auto&) { return std::tuple{}; }

  double base = 10000;
};

}  // namespace heed
