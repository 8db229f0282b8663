// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/layers/positions.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/detail/definitions.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

struct LearnedPositionsOptions {
  Index max_length = 0;
  Index dim = 0;
  double init_std = 0.02;  // of the normal distribution that weights start from
};

/// Adds a learned vector for its position to every token.
template <Scalar T>
struct LearnedPositions {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Positions positions;
  };

  LearnedPositions() = default;
  LearnedPositions(const LearnedPositionsOptions& options, Random& random)
      : weight({options.max_length, options.dim}) {
    for (T& value : weight) value = static_cast<T>(options.init_std * random.normal());
  }

  /// Throws ShapeError for positions that do not fit x or the table.
  Output forward(Input x, const Positions& positions = {}) const {
    check(x, positions);
    const auto add = simd::row_kernels<T>().add;
    for_each_run(x, positions, [&](Index first, T* rows, Index size) {
      add(weight.data() + first * weight.extent(1), rows, size);
    });
    return x;
  }
  Output forward(Input x, Saved& saved, const Positions& positions = {}) const {
    saved.positions = positions;
    return forward(std::move(x), positions);
  }

  Input backward(Output grad, const Saved& saved, LearnedPositions& gradients) const {
    const auto add = simd::row_kernels<T>().add;
    for_each_run(grad, saved.positions, [&](Index first, const T* rows, Index size) {
      add(rows, gradients.weight.data() + first * weight.extent(1), size);
    });
    return grad;
  }

  static auto members(auto& layer) { return std::tuple{member("weight", layer.weight)}; }

  Tensor<T, 2> weight;  // (max_length, dim)

 private:
  void check(const Input& x, const Positions& positions) const {
    const Index tokens = x.extent(1), length = weight.extent(0), first = positions.first();
    if (x.extent(2) != weight.extent(1)) {
      throw_shape_error("LearnedPositions: x is ", x.extents(), ", the table ", weight.extents());
    }
    if (positions.are_columns()) {
      if (first >= 0 && tokens <= length - first) return;
      throw_shape_error("LearnedPositions: ", tokens, " tokens from position ", first,
                        " where max_length is ", length);
    }
    positions.check("LearnedPositions", {x.extent(0), tokens});
    for (Index item = 0; item < x.extent(0); ++item) {
      for (Index token = 0; token < tokens; ++token) {
        if (positions.at(item, token) < length) continue;
        throw_shape_error("LearnedPositions: token ", token, " of row ", item, " at position ",
                          positions.at(item, token), " where max_length is ", length);
      }
    }
  }
  /// `run(position, rows, numbers)` for every row of x, or every token where these are numbered.
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

}  // namespace heed
