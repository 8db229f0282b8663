// SPDX-License-Identifier: MIT
#include <heed/core/index.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed {
namespace {

TEST(Index, SmallerAndLarger) {
  static_assert(detail::smaller(-2, 7) == -2 && detail::smaller(7, -2) == -2);
  static_assert(detail::larger(-2, 7) == 7 && detail::larger(7, -2) == 7);
}

TEST(Index, SumsStopAtTheLargest) {
  constexpr Index most = std::numeric_limits<Index>::max();
  static_assert(detail::sum_or_most(3, 4) == 7);
  static_assert(detail::sum_or_most(most - 4, 4) == most);
  static_assert(detail::sum_or_most(most - 4, 5) == most);
  static_assert(detail::sum_or_most(most, most) == most);
}

template <class T>
const char* computed_by(T) {
  if constexpr (Scalar<T>) {
    return "kernels";
  } else if constexpr (ReferenceScalar<T>) {
    return "reference";
  } else {
    return "nobody";
  }
}

TEST(Scalar, KernelsTakeFloatAndDoubleTheReferenceLongDoubleToo) {
  EXPECT_STREQ(computed_by(1.0f), "kernels");
  EXPECT_STREQ(computed_by(1.0), "kernels");
  EXPECT_STREQ(computed_by(1.0L), "reference");
  EXPECT_STREQ(computed_by(1), "nobody");
  static_assert(!Scalar<const float>, "a scalar is a plain value type");
}

}  // namespace
}  // namespace heed
