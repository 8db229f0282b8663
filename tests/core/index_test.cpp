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

TEST(Scalar, IsAPlainFloatOrDouble) {
  static_assert(Scalar<float> && Scalar<double> && !Scalar<long double> && !Scalar<int>);
  static_assert(!Scalar<const float>);
}

}  // namespace
}  // namespace heed
