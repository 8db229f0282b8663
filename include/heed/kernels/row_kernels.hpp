// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/index.hpp>

namespace heed::simd {

/// Activation functions between linear layers: max(0, x); x Φ(x) with the normal distribution Φ,
/// exact or by tanh (Hendrycks and Gimpel 2016); x / (1 + e⁻ˣ).
enum class ActivationKind { relu, gelu, gelu_tanh, silu };

/// The numbers that activation dropout keeps: those whose Philox draw (core/philox.hpp) is at least
/// `least`.
template <class T>
struct DropRun {
  std::uint32_t stream = 0;
  std::uint32_t key[2] = {0, 0};
  std::uint32_t least = 0;
  T scale = 1;  // on numbers that are kept
};

/// Layer functions on rows of contiguous numbers. An element's bits do not depend on its place in
/// the row or in memory.
template <class T>
struct RowKernels {
  /// to += x
  void (*add)(const T* x, T* to, Index count);
  /// out = a · b
  void (*multiply)(const T* a, const T* b, T* out, Index count);
  /// out = (x − shift) · factor
  void (*shift_scale)(const T* x, T shift, T factor, T* out, Index count);
  /// (a, b) = (a · cosine − b · sine, b · cosine + a · sine), products and sums rounded
  void (*rotate)(const T* cosines, const T* sines, T* a, T* b, Index count);
  /// The same for neighbors, (x[2i], x[2i + 1]), of an even number: every element has its cosine,
  /// and its sine, which is negative for the first of two.
  void (*rotate_neighbors)(const T* cosines, const T* sines, T* x, Index count);
  /// out = f(x), and slopes = f'(x) unless null; one of them may be x
  void (*activate)(ActivationKind f, const T* x, T* out, T* slopes, Index count);
  /// x[i] = x[i] · scale if it is kept, else +0; decided by word i % 4 of the counter {four + i / 4
  /// in two halves, stream, 0}.
  void (*drop)(const DropRun<T>& run, std::uint64_t four, T* x, Index count);
};

/// Normalizes rows of `width` numbers to mean 0 (if centered) and mean square 1: n = (x − mean) ·
/// factor with factor = 1 / √(mean (x − mean)² + epsilon), then y = n · weight + bias. Ba et al.
/// 2016; not centered, Zhang and Sennrich 2019.
template <class T>
struct NormRun {
  Index width;
  const T* weight;
  const T* bias;  // null: none
  T epsilon;
  bool centered;
};

/// Inputs and outputs of the backward pass of a norm, rows of contiguous numbers.
template <class T>
struct NormGradientRun {
  const T* grad;        // of y
  const T* normalized;  // n
  const T* factors;
  T* grad_x;
  T* grad_weight;               // added to, like grad_bias
  T* grad_bias;                 // null: none
  const T* residual = nullptr;  // added to grad_x
};

/// Norms of contiguous rows. A row's bits do not depend on the other rows.
template <class T>
struct NormKernels {
  /// Writes y; and n and the factors unless they are null.
  void (*forward)(const NormRun<T>& run, Index rows, const T* x, T* normalized, T* factors, T* y);
  /// With h = grad · weight: grad_x = factor · (h − mean(h) − n · mean(h · n)), without mean(h) if
  /// not centered; grad_weight += Σ grad · n and grad_bias += Σ grad, row by row. A row of grad
  /// that is all 0 gives 0 and adds nothing, whatever its n.
  void (*backward)(const NormRun<T>& run, Index rows, const NormGradientRun<T>& gradients);
};

/// The constants of one step of Adam, the same for all weights.
template <class T>
struct AdamUpdate {
  T factor;        // on gradients
  T added;         // weight decay added to the gradient
  T keep1;         // 1 − β1
  T beta2, keep2;  // β2, 1 − β2
  T inverse_root;  // 1 / √(1 − β2ᵗ)
  T epsilon;
  T rate;    // learning rate / (1 − β1ᵗ)
  T shrink;  // on weights: 1 − learning rate · decoupled decay
};

/// The constants of one step of gradient descent, the same for all weights.
template <class T>
struct SgdUpdate {
  T factor;  // on gradients
  T decay;   // weight decay added to the gradient
  T momentum;
  T rate;
  bool nesterov;
};

/// Training functions on arrays of contiguous numbers. An element's bits do not depend on its place
/// in the array or in memory; every sum has one order, given by `count` alone.
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
  void (*sgd)(const SgdUpdate<T>& update, T* weights, const T* gradient, T* velocity, Index count);
};

// The kernels of the active instruction set.

template <class T>
const RowKernels<T>& row_kernels();
template <class T>
const NormKernels<T>& norm_kernels();
template <class T>
const TrainingKernels<T>& training_kernels();

}  // namespace heed::simd
