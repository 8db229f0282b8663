// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/masks/policy.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// The mask in the additive form of other libraries: (queries, keys) of 0 where a query may look
/// and −inf where it may not, to be added to the scores. The last query lines up with the last key;
/// the mask is evaluated for batch item 0, head 0. masks::Dense reads the result back. Throws
/// ShapeError for a mask that does not fit.
template <class T, class M>
Tensor<T, 2> additive(const M& mask, Index queries, Index keys) {
  Tensor<T, 2> result(queries, keys);
  if constexpr (detail::expect_mask<M>()) {
    check_mask(mask, {MaskShape::unknown, MaskShape::unknown, queries, keys});
    const Index first = keys - queries;
    const auto hidden = static_cast<T>(-std::numeric_limits<float>::infinity());
    for (Index row = 0; row < queries; ++row) {
      for (Index key = 0; key < keys; ++key) {
        if (!allows(mask, {0, 0, first + row, key, first})) result(row, key) = hidden;
      }
    }
  }
  return result;
}

}  // namespace heed
