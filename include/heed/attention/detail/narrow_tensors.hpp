// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/narrow_products.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::detail {

/// The tensors of a call that stores them in fewer bits than the T it computes in, behind an
/// AttentionProblem<T> whose own views have extents alone. An interface, so that programs without
/// such calls do not compile what stands behind it.
template <class T>
class NarrowTensors {
 public:
  /// Queries [first, first + count) of a head, widened; until this thread's next call.
  virtual simd::MatrixRef<T> query_rows(Index item, Index head, Index first, Index count) const = 0;
  /// Keys, or values, [first, first + count) of a key head, widened to `scratch`, (count, dim).
  virtual simd::MatrixRef<T> key_rows(Index item, Index head, Index first, Index count,
                                      T* scratch) const = 0;
  virtual simd::MatrixRef<T> value_rows(Index item, Index head, Index first, Index count,
                                        T* scratch) const = 0;
  /// Room for `count` rows of output, (count, value_dim), until this thread's next call …
  virtual T* out_rows(Index count) const = 0;
  /// … and its way, rounded, to the rows [first, first + count) of a head.
  virtual void put_out(Index item, Index head, Index first, Index count) const = 0;
  /// Products in the narrow type itself; null: queries, keys and values are widened.
  virtual const NarrowProducts<T>* products() const { return nullptr; }

 protected:
  ~NarrowTensors() = default;
};

/// The products of a call that may have no narrow tensors.
template <class T>
const NarrowProducts<T>* products_of(const NarrowTensors<T>* narrow) {
  return narrow != nullptr ? narrow->products() : nullptr;
}

}  // namespace heed::detail
