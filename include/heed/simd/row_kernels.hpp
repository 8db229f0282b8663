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

}  // namespace heed::simd
