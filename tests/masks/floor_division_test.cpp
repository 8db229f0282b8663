// SPDX-License-Identifier: MIT
#include <heed/masks/detail/positions.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed::masks {
namespace {

using namespace heed::detail;

TEST(FloorDivision, RoundsDownAlsoBelowZero) {
  for (Index b = 1; b <= 5; ++b) {
    for (Index a = -20; a <= 20; ++a) {
      const Index quotient = floor_divide(a, b);
      EXPECT_LE(quotient * b, a);
      EXPECT_GT((quotient + 1) * b, a);
      EXPECT_EQ(floor_modulo(a, b), a - quotient * b);
    }
  }
}

TEST(FloorDivision, FindsMultiplesInRanges) {
  for (Index step = 1; step <= 6; ++step) {
    for (Index first = -13; first <= 13; ++first) {
      for (Index last = first; last <= 13; ++last) {
        bool found = false;
        for (Index value = first; value <= last; ++value) found = found || value % step == 0;
        EXPECT_EQ(has_multiple(first, last, step), found);
      }
    }
  }
}

TEST(FloorDivision, RefusesWhatItCannotDivideBy) {
  EXPECT_THROW(floor_divide(5, 0), InvalidArgument);
  EXPECT_THROW(floor_modulo(5, -3), InvalidArgument);
}

TEST(FloorDivision, HugeDivisors) {
  constexpr Index huge = std::numeric_limits<Index>::max();
  EXPECT_EQ(floor_divide(-1, huge), -1);
  EXPECT_EQ(floor_modulo(-1, huge), huge - 1);
}

}  // namespace
}  // namespace heed::masks
