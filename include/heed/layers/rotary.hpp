// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/layers/positions.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// The pairs of elements of a head that rotate together: i and i + dims / 2 (half_split, as in
/// Llama's files), or 2i and 2i + 1 (interleaved, as in the paper).
enum class RotaryPairing { half_split, interleaved };

struct RotaryOptions {
  double base = 10000;
  /// Divides positions: above 1 it stretches a model to longer texts (Chen et al. 2023).
  double scaling = 1;
  RotaryPairing pairing = RotaryPairing::half_split;
  /// The number of elements of a head that rotate, from the first on; 0: all.
  Index dims = 0;
};

/// Rotary positions: pair i of a query or key at position p is rotated by the angle
/// p · base^(−2i / dims), so that scores depend on the distance of positions alone. Su et al. 2021.
class Rotary {
 public:
  Rotary() = default;
  /// Throws InvalidArgument for dims that are odd or more than head_dim, for a base or scaling that
  /// is not positive or not finite, and where they give no finite frequencies.
  Rotary(const RotaryOptions& options, Index head_dim) : options_(options) {
    if (options_.dims == 0) options_.dims = head_dim;
    const Index dims = options_.dims;
    if (dims < 2 || dims % 2 != 0 || dims > head_dim) {
      throw_invalid_argument("Rotary: ", dims, " elements of ", head_dim,
                             " rotate; expected an even number");
    }
    bool finite = std::isfinite(options_.base) && std::isfinite(options_.scaling);
    for (Index i = 0; i < dims / 2; ++i) {
      const double share = -2 * static_cast<double>(i) / static_cast<double>(dims);
      frequencies_.push_back(std::pow(options_.base, share) / options_.scaling);
      finite = finite && std::isfinite(frequencies_.back());
    }
    if (!finite || !(options_.base > 0 && options_.scaling > 0)) {
      throw_invalid_argument("Rotary: base ", options_.base, ", scaling ", options_.scaling,
                             "; expected more than 0, and finite");
    }
    for (Index step = 0; step < stretch; ++step) {
      for (const double frequency : frequencies_) steps_.emplace_back(step, frequency);
    }
  }

  /// Rotates queries or keys (batch, heads, tokens, head_dim) in place; leading axes may be left
  /// out. Throws ShapeError for positions of other tokens, and for a view of which elements share
  /// memory.
  template <Viewable X>
  void apply(X&& x, const Positions& positions = {}) const {
    rotate(detail::with_leading_axes<4>(view_of(x)), positions, 1);
  }
  /// Rotates them back, as the backward pass does with gradients.
  template <Viewable X>
  void undo(X&& x, const Positions& positions = {}) const {
    rotate(detail::with_leading_axes<4>(view_of(x)), positions, -1);
  }

 private:
  /// The rotation of one pair by the angle of a number of positions.
  struct Rotation {
    Rotation(Index positions, double frequency) {
      const double angle = static_cast<double>(positions) * frequency;
      cosine = std::cos(angle);
      sine = std::sin(angle);
    }
    /// Both rotations, one after the other.
    Rotation then(const Rotation& other) const {
      Rotation both = *this;
      both.cosine = detail::product(cosine, other.cosine) - detail::product(sine, other.sine);
      both.sine = detail::product(sine, other.cosine) + detail::product(cosine, other.sine);
      return both;
    }
    double cosine, sine;
  };

  // A sine and a cosine in double are costly: they are computed at multiples of `stretch` alone,
  // and the positions between follow by products. The rotation of a position, and its bits, depend
  // on the position alone.
  static constexpr Index stretch = 16;

  template <ModelScalar T>
  void rotate(const TensorView<T, 4>& x, const Positions& positions, double direction) const {
    const auto pairs = static_cast<Index>(frequencies_.size());
    if (x.extent(3) < 2 * pairs) {
      throw_shape_error("Rotary: heads of ", x.extent(3), ", expected ", 2 * pairs);
    }
    positions.check("Rotary", {x.extent(0), x.extent(2)});
    if (has_internal_overlap(x)) {
      throw_shape_error("Rotary: elements of a view of ", x.extents(), " share memory: strides ",
                        x.strides());
    }
    if (positions.are_columns()) return rotate_columns(x, positions.first(), direction);
    const Index tokens = x.extent(2), tasks = detail::parts_of(tokens, stretch);
    parallel_for(x.extent(0) * tasks, [&](Index at) {
      const Index row = at / tasks, begin = at % tasks * stretch;
      const auto own = x.slice(0, row, row + 1);
      std::vector<Rotation> start;
      std::vector<T> rotations(static_cast<std::size_t>(2 * pairs));
      Index from = -1;  // the position of `start`
      for (Index token = begin; token < std::min(begin + stretch, tokens); ++token) {
        const Index position = positions.at(row, token), step = position % stretch;
        if (position - step != from) start = starts(from = position - step);
        cosines_and_sines(start, step, direction, rotations.data());
        rotate_token(own, token, rotations.data(), pairs);
      }
    });
  }
  template <ModelScalar T>
  void rotate_columns(const TensorView<T, 4>& x, Index first, double direction) const {
    const auto pairs = static_cast<Index>(frequencies_.size());
    const Index tokens = x.extent(2), before = (first < 0 ? first - stretch + 1 : first) / stretch;
    const Index stretches = tokens == 0 ? 0 : (first + tokens - 1 - before * stretch) / stretch + 1;
    parallel_for(stretches, [&](Index at) {
      const Index begin = (before + at) * stretch;  // a position
      const auto start = starts(begin);
      std::vector<T> rotations(static_cast<std::size_t>(2 * pairs));
      const Index end = std::min(begin + stretch, first + tokens);
      for (Index position = std::max(begin, first); position < end; ++position) {
        cosines_and_sines(start, position - begin, direction, rotations.data());
        rotate_token(x, position - first, rotations.data(), pairs);
      }
    });
  }

  /// The rotations to a position, one a pair.
  std::vector<Rotation> starts(Index position) const {
    std::vector<Rotation> start;
    for (const double frequency : frequencies_) start.emplace_back(position, frequency);
    return start;
  }
  /// Cosines, then sines, one a pair, of the rotations `step` positions behind `start`.
  template <ModelScalar T>
  void cosines_and_sines(const std::vector<Rotation>& start, Index step, double direction,
                         T* rotations) const {
    const std::size_t pairs = start.size(), first = static_cast<std::size_t>(step) * pairs;
    for (std::size_t i = 0; i < pairs; ++i) {
      const Rotation rotation = start[i].then(steps_[first + i]);
      rotations[i] = static_cast<T>(rotation.cosine);
      rotations[pairs + i] = static_cast<T>(direction * rotation.sine);
    }
  }

  /// Rotates all heads of a token.
  template <ModelScalar T>
  void rotate_token(const TensorView<T, 4>& x, Index token, const T* rotations, Index pairs) const {
    const auto rotate_vectors = simd::row_kernels<T>().rotate;
    const bool vectors = options_.pairing == RotaryPairing::half_split && x.stride(3) == 1;
    for (Index item = 0; item < x.extent(0); ++item) {
      for (Index head = 0; head < x.extent(1); ++head) {
        T* row = &x(item, head, token, 0);
        if (vectors) {
          rotate_vectors(rotations, rotations + pairs, row, row + pairs, pairs);
        } else {
          rotate_row(row, x.stride(3), rotations, pairs);
        }
      }
    }
  }

  template <ModelScalar T>
  void rotate_row(T* row, Index stride, const T* rotations, Index pairs) const {
    const bool split = options_.pairing == RotaryPairing::half_split;
    const Index distance = (split ? pairs : 1) * stride;
    for (Index i = 0; i < pairs; ++i) {
      T& a = row[(split ? i : 2 * i) * stride];
      T& b = (&a)[distance];
      const T cosine = rotations[i], sine = rotations[pairs + i], before = a;
      a = detail::product(a, cosine) - detail::product(b, sine);
      b = detail::product(b, cosine) + detail::product(before, sine);
    }
  }

  RotaryOptions options_;
  std::vector<double> frequencies_;
  std::vector<Rotation> steps_;  // [step][pair], by 0 … stretch - 1 positions
};

}  // namespace heed
