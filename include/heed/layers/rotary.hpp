// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
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

/// Slows the pairs that turn slowly and keeps the others, by which Llama 3.1 reaches longer texts.
/// A pair that turns less than `low_turns` times in `original_length` positions has its frequency
/// divided by `factor`, one of more than `high_turns` keeps it, and what is between them lies on
/// the line from one to the other.
struct LowFrequencyScaling {
  double factor = 1;  // 1: all keep theirs
  double low_turns = 1, high_turns = 4;
  /// The length of the texts from which the model learned before.
  double original_length = 8192;

  /// What becomes of a frequency, the angle of one position.
  double scaled(double frequency) const {
    if (factor == 1) return frequency;
    constexpr double whole_turn = 6.283185307179586;
    const double turns = original_length * frequency / whole_turn;
    const double kept = std::clamp((turns - low_turns) / (high_turns - low_turns), 0., 1.);
    return detail::product(kept, frequency) + detail::product(1 - kept, frequency) / factor;
  }
};

struct RotaryOptions {
  double base = 10000;
  /// Divides positions: above 1 it stretches a model to longer texts (Chen et al. 2023).
  double scaling = 1;
  RotaryPairing pairing = RotaryPairing::half_split;
  /// The number of elements of a head that rotate, from the first on; 0: all.
  Index dims = 0;
  LowFrequencyScaling low_frequencies = {};
  /// Divide the frequencies, one a pair, as `rope_freqs.weight` of GGUF files; none: by 1.
  std::vector<double> divisors = {};
};

/// Rotary positions: pair i of a query or key at position p is rotated by the angle
/// p · base^(−2i / dims), which the options may scale, so that scores depend on the distance of
/// positions alone. Su et al. 2021.
class Rotary {
 public:
  Rotary() = default;
  /// Throws InvalidArgument for dims that are odd or more than head_dim, for divisors of another
  /// number of pairs, for numbers that are not positive or not finite, for low_turns that are not
  /// below high_turns, and where they give no finite frequencies.
  Rotary(const RotaryOptions& options, Index head_dim) : options_(options) {
    if (options_.dims == 0) options_.dims = head_dim;
    const Index dims = options_.dims;
    if (dims < 2 || dims % 2 != 0 || dims > head_dim) {
      throw_invalid_argument("Rotary: ", dims, " elements of ", head_dim,
                             " rotate; expected an even number");
    }
    check_scaling();
    bool finite = is_positive(options_.base) && is_positive(options_.scaling);
    for (Index i = 0; i < dims / 2; ++i) {
      const double share = -2 * static_cast<double>(i) / static_cast<double>(dims);
      const double frequency = options_.low_frequencies.scaled(std::pow(options_.base, share));
      const auto& divisors = options_.divisors;
      const double divisor = divisors.empty() ? 1 : divisors[static_cast<std::size_t>(i)];
      frequencies_.push_back(frequency / options_.scaling / divisor);
      finite = finite && std::isfinite(frequencies_.back());
    }
    if (!finite) {
      throw_invalid_argument("Rotary: base ", options_.base, ", scaling ", options_.scaling,
                             "; expected more than 0, and finite");
    }
    for (Index step = 0; step < stretch; ++step) {
      for (const double frequency : frequencies_) steps_.emplace_back(step, frequency);
    }
  }

  /// Rotates queries or keys (batch, heads, tokens, head_dim) in place; leading axes may be left
  /// out. Throws ShapeError for positions of other tokens, and for a view of which elements share
  /// memory; InvalidArgument for a Rotary without a head_dim.
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
  static bool is_positive(double number) { return number > 0 && std::isfinite(number); }
  void check_scaling() const {
    const LowFrequencyScaling& low = options_.low_frequencies;
    if (!is_positive(low.factor) || !is_positive(low.low_turns) || !is_positive(low.high_turns) ||
        !is_positive(low.original_length) || low.low_turns >= low.high_turns) {
      throw_invalid_argument("Rotary: low frequencies with factor ", low.factor, ", turns ",
                             low.low_turns, " to ", low.high_turns, ", original length ",
                             low.original_length,
                             "; expected finite numbers above 0, and fewer low turns than high");
    }
    const auto pairs = static_cast<std::size_t>(options_.dims / 2);
    if (options_.divisors.empty()) return;
    if (options_.divisors.size() != pairs) {
      throw_invalid_argument("Rotary: ", options_.divisors.size(), " divisors for ", pairs,
                             " pairs");
    }
    for (const double divisor : options_.divisors) {
      if (!is_positive(divisor)) {
        throw_invalid_argument("Rotary: a divisor of ", divisor,
                               "; expected more than 0, and finite");
      }
    }
  }

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
    if (pairs == 0) throw_invalid_argument("Rotary: made without a head_dim: Rotary({}, head_dim)");
    if (x.extent(3) < 2 * pairs) {
      throw_shape_error("Rotary: heads of ", x.extent(3), ", expected ", 2 * pairs);
    }
    positions.check("Rotary", {x.extent(0), x.extent(2)});
    if (has_internal_overlap(x)) {
      throw_shape_error("Rotary: elements of a view of ", x.extents(), " share memory: strides ",
                        x.strides());
    }
    // Rows that share their positions rotate together, and a task has the positions from one
    // multiple of `stretch` to the next.
    const bool shared = positions.are_columns();
    const Index tokens = x.extent(2), before = shared ? within_stretch(positions.first()) : 0;
    const Index tasks = detail::parts_of(tokens + before, stretch);
    parallel_for((shared ? 1 : x.extent(0)) * tasks, [&](Index at) {
      const Index row = at / tasks, begin = at % tasks * stretch - before;
      const auto own = shared ? x : x.slice(0, row, row + 1);
      std::vector<Rotation> start;
      std::vector<T> memory(static_cast<std::size_t>(6 * pairs));
      Index from = 0;  // the position of `start`
      const Index end = std::min(begin + stretch, tokens);
      for (Index token = std::max(begin, Index{0}); token < end; ++token) {
        const Index position = positions.at(row, token), step = within_stretch(position);
        if (start.empty() || position - step != from) start = starts(from = position - step);
        cosines_and_sines(start, step, direction, memory.data());
        rotate_token(own, token, memory.data(), pairs);
      }
    });
  }
  /// How far a position, which may be negative, is behind a multiple of `stretch`.
  static Index within_stretch(Index position) { return (position % stretch + stretch) % stretch; }

  /// The rotations to a position, one a pair.
  std::vector<Rotation> starts(Index position) const {
    std::vector<Rotation> start;
    for (const double frequency : frequencies_) start.emplace_back(position, frequency);
    return start;
  }
  bool split() const { return options_.pairing == RotaryPairing::half_split; }

  /// Of the rotations `step` positions behind `start`: 2 · pairs cosines, then as many sines. One a
  /// pair, or one an element for neighbors, as the kernels take them.
  template <ModelScalar T>
  void cosines_and_sines(const std::vector<Rotation>& start, Index step, double direction,
                         T* cosines) const {
    const std::size_t pairs = start.size(), first = static_cast<std::size_t>(step) * pairs;
    T* sines = cosines + 2 * pairs;
    for (std::size_t i = 0; i < pairs; ++i) {
      const Rotation rotation = start[i].then(steps_[first + i]);
      const auto cosine = static_cast<T>(rotation.cosine);
      const auto sine = static_cast<T>(direction * rotation.sine);
      if (split()) {
        cosines[i] = cosine;
        sines[i] = sine;
      } else {
        cosines[2 * i] = cosines[2 * i + 1] = cosine;
        sines[2 * i] = -sine;
        sines[2 * i + 1] = sine;
      }
    }
  }

  /// Rotates all heads of a token. `memory` has cosines, sines, and room for a row.
  template <ModelScalar T>
  void rotate_token(const TensorView<T, 4>& x, Index token, T* memory, Index pairs) const {
    const auto& kernels = simd::row_kernels<T>();
    const Index count = 2 * pairs, stride = x.stride(3);
    const T *cosines = memory, *sines = memory + count;
    for (Index item = 0; item < x.extent(0); ++item) {
      for (Index head = 0; head < x.extent(1); ++head) {
        T* row = &x(item, head, token, 0);
        T* run = stride == 1 ? row : memory + 2 * count;
        for (Index i = 0; run != row && i < count; ++i) run[i] = row[i * stride];
        if (split()) {
          kernels.rotate(cosines, sines, run, run + pairs, pairs);
        } else {
          kernels.rotate_neighbors(cosines, sines, run, count);
        }
        for (Index i = 0; run != row && i < count; ++i) row[i * stride] = run[i];
      }
    }
  }

  RotaryOptions options_;
  std::vector<double> frequencies_;
  std::vector<Rotation> steps_;  // [step][pair], by 0 … stretch - 1 positions
};

}  // namespace heed
