// SPDX-License-Identifier: MIT
#include <heed/masks/detail/positions.hpp>

#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace heed::masks {
namespace {

using detail::PositionSet;

TEST(PositionSet, SortsAndDropsRepeats) {
  const PositionSet set({5, 1, 5, -3, 1});
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set[0], -3);
  EXPECT_EQ(set[1], 1);
  EXPECT_EQ(set[2], 5);
}

TEST(PositionSet, AgreesWithAPlainSet) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 bits(seed);
    std::vector<Index> values(bits() % 70);
    for (Index& value : values) value = static_cast<Index>(bits() % 100) - 10;
    const std::set<Index> plain(values.begin(), values.end());
    const PositionSet set(values);
    ASSERT_EQ(set.size(), static_cast<Index>(plain.size()));
    for (Index first = -12; first < 95; first += 3) {
      EXPECT_EQ(set.has(first), plain.contains(first));
      EXPECT_EQ(set.rank(first), std::distance(plain.begin(), plain.lower_bound(first)));
      for (Index last = first - 2; last < 95; last += 7) {
        Index count = 0;
        for (const Index value : plain) count += first <= value && value <= last;
        EXPECT_EQ(set.count(first, last), count);
      }
    }
  }
}

TEST(PositionSet, FarPositionsCostNoMemory) {
  constexpr Index far = std::numeric_limits<Index>::max();
  const PositionSet set({far, 0});
  EXPECT_TRUE(set.has(far));
  EXPECT_EQ(set.count(1, far), 1);
  EXPECT_EQ(set.count(0, far), 2);
}

}  // namespace
}  // namespace heed::masks
