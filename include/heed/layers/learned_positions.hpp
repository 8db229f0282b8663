// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

struct LearnedPositionsOptions {
  Index max_length = 0;
  Index dim = 0;
  double deviation = 0.02;  // of the normal distribution that weights start from
};

/// Adds a learned vector for its position to every token.
template <Scalar T>
struct LearnedPositions {
  using Input = Tensor<T, 3>;
  using Output = Tensor<T, 3>;
  struct Saved {
    Index first = 0;
  };

  LearnedPositions() = default;
  LearnedPositions(const LearnedPositionsOptions& options, Random& random)
      : weight({options.max_length, options.dim}) {
    for (T& value : weight) value = static_cast<T>(options.deviation * random.normal());
  }

  /// `first`: the position of the first token. Throws ShapeError for positions past the table.
  Output forward(Input x, Index first = 0) const {
    const Index tokens = x.extent(1), dim = weight.extent(1);
    if (x.extent(2) != dim || first < 0 || tokens > weight.extent(0) - first) {
      throw_shape_error("LearnedPositions: x is ", x.extents(), " from position ", first,
                        ", the table ", weight.extents());
    }
    const auto add = simd::row_kernels<T>().add;
    for (Index item = 0; item < x.extent(0); ++item) {
      add(weight.data() + first * dim, x.data() + item * tokens * dim, tokens * dim);
    }
    return x;
  }
  Output forward(Input x, Saved& saved, Index first = 0) const {
    saved.first = first;
    return forward(std::move(x), first);
  }

  Input backward(Output grad, const Saved& saved, LearnedPositions& gradients) const {
    const Index size = grad.extent(1) * grad.extent(2);
    const auto add = simd::row_kernels<T>().add;
    T* to = gradients.weight.data() + saved.first * grad.extent(2);
    for (Index item = 0; item < grad.extent(0); ++item) add(grad.data() + item * size, to, size);
    return grad;
  }

  static auto members(auto& layer) { return std::tuple{member("weight", layer.weight)}; }

  Tensor<T, 2> weight;  // (max_length, dim)
};

}  // namespace heed
