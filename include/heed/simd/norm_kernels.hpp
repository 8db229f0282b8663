// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

namespace heed::simd {

/// Rows of `width` numbers brought to mean 0 (if centered) and mean square 1:
/// n = (x − mean) · factor with factor = 1 / √(mean (x − mean)² + epsilon), then
/// y = n · weight + bias. Ba et al. 2016; not centered, Zhang and Sennrich 2019.
template <class T>
struct NormRun {
  Index width;
  const T* weight;
  const T* bias;  // null: none
  T epsilon;
  bool centered;
};

/// What the backward pass of a norm reads and writes, rows of contiguous numbers.
template <class T>
struct NormGradientRun {
  const T* grad;        // of y
  const T* normalized;  // n
  const T* factors;
  T* grad_x;
  T* grad_weight;  // added to, as is grad_bias
  T* grad_bias;    // null: none
};

/// Norms of contiguous rows. A row's bits do not depend on the other rows.
template <class T>
struct NormKernels {
  /// Writes y, and n and the factors where they are not null.
  void (*forward)(const NormRun<T>& run, Index rows, const T* x, T* normalized, T* factors, T* y);
  /// With h = grad · weight: grad_x = factor · (h − mean(h) − n · mean(h · n)), without mean(h)
  /// where not centered; grad_weight += Σ grad · n and grad_bias += Σ grad, row after row. A row of
  /// grad that is all 0 gives 0 and adds nothing, whatever n is there.
  void (*backward)(const NormRun<T>& run, Index rows, const NormGradientRun<T>& gradients);
};

/// The kernels of the active instruction set.
template <class T>
const NormKernels<T>& norm_kernels();

}  // namespace heed::simd
