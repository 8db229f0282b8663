// SPDX-License-Identifier: MIT
#include <heed/masks/mask.hpp>

#include <gtest/gtest.h>

#include <utility>

#include <heed/masks/intervals.hpp>

namespace heed::masks {
namespace {

struct Counted {
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  Counted(const Counted& other) : alive_(other.alive_) { ++*alive_; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --*alive_; }
  bool allows(Position) const { return true; }
  int* alive_;
};

TEST(Mask, HoldsAnyMaskAndCopiesShareIt) {
  int alive = 0;
  {
    Mask mask = Counted(&alive);
    EXPECT_EQ(alive, 1);
    Mask copy = mask;
    Mask other = Causal{};
    other = copy;
    Mask& self = other;
    other = self;
    EXPECT_EQ(alive, 1) << "shared, not copied";
    EXPECT_TRUE(other.allows({0, 0, 0, 5}));
    mask = Full{};
    copy = Full{};
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Mask, IsAMaskOfItsOwn) {
  static_assert(TiledMaskPolicy<Mask> && LaneMaskPolicy<Mask> && CheckedMaskPolicy<Mask>);
  const Mask mask = Causal{};
  EXPECT_EQ(mask.coverage({0, 0, 0, 3, 8, 9}), Coverage::none);
  EXPECT_FALSE(mask.depends_on_head());
}

}  // namespace
}  // namespace heed::masks
