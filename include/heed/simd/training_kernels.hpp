// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

namespace heed::simd {

/// The numbers of one step of Adam, the same for all weights.
template <class T>
struct AdamUpdate {
  T factor;        // of gradients
  T added;         // weight decay that is added to the gradient
  T keep1;         // 1 − β1
  T beta2, keep2;  // β2, 1 − β2
  T inverse_root;  // 1 / √(1 − β2ᵗ)
  T epsilon;
  T rate;    // learning rate / (1 − β1ᵗ)
  T shrink;  // of weights: 1 − learning rate · decoupled decay
};

/// What training does with runs of contiguous numbers. An element's bits do not depend on where in
/// a run or in memory it stands; every sum has one order, given by `count` alone.
template <class T>
struct TrainingKernels {
  /// Σ x² in double.
  double (*sum_of_squares)(const T* x, Index count);
  /// Σ x in double.
  double (*sum)(const T* x, Index count);
  /// The largest element that is not NaN; −inf if there is none.
  T (*maximum)(const T* x, Index count);
  /// out = e^(x − shift): exactly 0 for −inf, NaN for NaN. `out` may be `x`.
  void (*exponentials)(const T* x, T shift, T* out, Index count);
  void (*adam)(const AdamUpdate<T>& update, T* weights, const T* gradient, T* first, T* second,
               Index count);
};

/// The kernels of the active instruction set.
template <class T>
const TrainingKernels<T>& training_kernels();

}  // namespace heed::simd
