// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/core/scalar.hpp>
#include <heed/tensor/detail/for_each_row.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A loss and what it asks of the predictions.
template <Scalar T, std::size_t Rank>
struct MeanSquaredError {
  double loss = 0;
  Tensor<T, Rank> grad_predictions;
};

/// The mean of (prediction − target)² over all elements, with its gradient: `auto [loss,
/// grad_predictions] = mean_squared_error(predictions, targets)`. Summed in double, in order; 0 for
/// no elements. Throws ShapeError when extents differ.
template <Viewable Predictions, Viewable Targets>
auto mean_squared_error(const Predictions& predictions, const Targets& targets) {
  using T = ValueOf<const Predictions>;
  constexpr std::size_t rank = ViewOf<const Predictions>::rank();
  static_assert(std::is_same_v<T, ValueOf<const Targets>> && rank == ViewOf<const Targets>::rank(),
                "mean_squared_error: predictions and targets must have one scalar type and rank");
  const TensorView<const T, rank> from = view_of(predictions), to = view_of(targets);
  if (from.extents() != to.extents()) {
    throw_shape_error("mean_squared_error: predictions are ", from.extents(), ", targets ",
                      to.extents());
  }
  MeanSquaredError<T, rank> result{0, Tensor<T, rank>(from.extents())};
  const auto count = static_cast<double>(from.size());
  T* gradient = result.grad_predictions.data();
  detail::for_each_row(from.extents(), [&](const Extents<rank>& at) {
    const auto predicted = detail::row_at(from, at), target = detail::row_at(to, at);
    for (Index i = 0; i < predicted.extent(0); ++i) {
      const double difference = static_cast<double>(predicted(i)) - static_cast<double>(target(i));
      result.loss += difference * difference;
      *gradient++ = static_cast<T>(2 * difference / count);
    }
  });
  if (from.size() > 0) result.loss /= count;
  return result;
}

}  // namespace heed
