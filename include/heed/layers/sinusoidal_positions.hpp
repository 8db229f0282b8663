// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <tuple>

#include <heed/core/scalar.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/row_kernels.hpp>
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

  Output forward(Input x, Index first = 0) const {
    const Index size = x.extent(1) * x.extent(2);
    const auto rows = table(x.extent(1), x.extent(2), first);
    const auto add = simd::row_kernels<T>().add;
    for (Index item = 0; item < x.extent(0); ++item) add(rows.data(), x.data() + item * size, size);
    return x;
  }
  Output forward(Input x, Saved&, Index first = 0) const { return forward(std::move(x), first); }
  Input backward(Output grad, const Saved&, SinusoidalPositions&) const { return grad; }

  static auto members(auto&) { return std::tuple{}; }

  double base = 10000;
};

}  // namespace heed
