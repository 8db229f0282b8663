// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

namespace heed::simd {

/// Functions applied to one number at a time between linear layers: max(0, x); x Φ(x) with the
/// normal distribution Φ, exactly or by tanh (Hendrycks and Gimpel 2016); x / (1 + e⁻ˣ).
enum class Activation { relu, gelu, gelu_tanh, silu };

/// Which numbers dropout keeps: of the draws of Philox (core/philox.hpp), those of at least
/// `least`.
template <class T>
struct DropRun {
  std::uint32_t stream = 0;
  std::uint32_t key[2] = {0, 0};
  std::uint32_t least = 0;
  T scale = 1;  // of what is kept
};

/// What layers do with rows of contiguous numbers. An element's bits do not depend on where in a
/// row or in memory it stands.
template <class T>
struct RowKernels {
  /// to += x
  void (*add)(const T* x, T* to, Index count);
  /// out = a · b
  void (*multiply)(const T* a, const T* b, T* out, Index count);
  /// out = (x − shift) · factor
  void (*shift_scale)(const T* x, T shift, T factor, T* out, Index count);
  /// (a, b) = (a · cosine − b · sine, b · cosine + a · sine), products and sums rounded
  void (*turn)(const T* cosines, const T* sines, T* a, T* b, Index count);
  /// out = f(x), and slopes = f'(x) unless null; out may be x
  void (*activate)(Activation f, const T* x, T* out, T* slopes, Index count);
  /// x[i] = x[i] · scale where it is kept, else +0: by word i % 4 of the counter
  /// {four + i / 4 in two halves, stream, 0}.
  void (*drop)(const DropRun<T>& run, std::uint64_t four, T* x, Index count);
};

/// The kernels of the active instruction set.
template <class T>
const RowKernels<T>& row_kernels();

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
