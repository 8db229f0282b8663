// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/half.hpp>

namespace heed {

/// The upper half of a float: its range, 8 bits of precision, half the memory. For storing; numbers
/// are computed with as floats.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  /// To the nearest, ties to even; NaN stays NaN.
  explicit bfloat16(float value) : bits(bfloat16_of_float(value)) {}
  /// Exact.
  operator float() const { return float_of_bfloat16(bits); }  // NOLINT: as built-in types
};

namespace detail {
template <class T>
struct ComputedInType {
  using type = T;
};
template <>
struct ComputedInType<bfloat16> {
  using type = float;
};
}  // namespace detail

/// What numbers stored as T are computed in: float for bfloat16, else T itself.
template <class T>
using ComputedIn = typename detail::ComputedInType<T>::type;

}  // namespace heed
