// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>

#include <heed/core/config.hpp>

namespace heed {

/// The type of all extents, strides, offsets and token positions. Signed and 64 bits wide:
/// differences of positions need no casts, and offsets may exceed 2^31 elements.
using Index = std::ptrdiff_t;

/// The types that the kernels compute in.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double>;

namespace detail {

/// False, once the types are known: for a static_assert in what must not be called.
template <class...>
inline constexpr bool never = false;

template <class T>
constexpr bool expect_model_scalar() {
  static_assert(Scalar<T>,
                "layers, models and losses are of float or double: for bfloat16, use a model of "
                "float after set_products(model, Products::bfloat16), or load_packed_model, which "
                "keeps a file's weights in it");
  return Scalar<T>;
}

// std::min and std::max need <algorithm>: a tenth of the compile time of attention.hpp.
constexpr Index smaller(Index a, Index b) { return b < a ? b : a; }
constexpr Index larger(Index a, Index b) { return a < b ? b : a; }
/// How many parts of `size`, the last of which may be smaller, hold `count`.
constexpr Index parts_of(Index count, Index size) { return (count + size - 1) / size; }
/// The sum of two counts, or the largest Index where that is less.
constexpr Index sum_or_most(Index a, Index b) {
  Index sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? static_cast<Index>(~std::size_t{0} >> 1) : sum;
}

/// A number of things that an object holds: moving them away leaves 0.
class HeldCount {
 public:
  constexpr HeldCount(Index count = 0)  // NOLINT(google-explicit-constructor): it is a number
      : count_(count) {}
  constexpr HeldCount(const HeldCount&) = default;
  constexpr HeldCount& operator=(const HeldCount&) = default;
  constexpr HeldCount(HeldCount&& other) noexcept : count_(other.count_) { other.count_ = 0; }
  constexpr HeldCount& operator=(HeldCount&& other) noexcept {
    const Index count = other.count_;
    other.count_ = 0;
    count_ = count;
    return *this;
  }
  constexpr operator Index() const { return count_; }  // NOLINT(google-explicit-constructor)

 private:
  Index count_;
};

}  // namespace detail

/// Scalar for the parameter of a class: any other type is not a choice between overloads but an
/// error, with a sentence.
template <class T>
concept ModelScalar = detail::expect_model_scalar<T>();

}  // namespace heed
