// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/matrix_ref.hpp>

namespace heed::simd {

/// The kernels between bfloat16, as bits, and T.
template <class T>
struct Bfloat16Kernels {
  /// to(row, column) = from(row, column), exactly; `to` is contiguous.
  void (*widen)(MatrixRef<std::uint16_t> from, Index rows, Index columns, T* to);
  /// to[i] = from[i], to the nearest, ties to even; NaN stays NaN. T = float alone.
  void (*narrow)(const T* from, Index count, std::uint16_t* to);
};

/// The bfloat16 kernels of the active instruction set.
template <class T>
const Bfloat16Kernels<T>& bfloat16_kernels();

}  // namespace heed::simd
