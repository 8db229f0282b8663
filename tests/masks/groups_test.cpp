// SPDX-License-Identifier: MIT
#include <heed/masks/tokens.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Groups, TurnsOfADialogue) {
  const Groups turns = consecutive_groups({5, 8, 6, 10});
  EXPECT_TRUE(turns.allows({0, 0, 0, 4}));
  EXPECT_FALSE(turns.allows({0, 0, 4, 5}));
  EXPECT_TRUE(turns.allows({0, 0, 28, 19}));
  EXPECT_FALSE(turns.allows({0, 0, 29, 29})) << "outside";
  EXPECT_THROW(consecutive_groups({3, -1}), InvalidArgument);
}

TEST(Groups, InAnyOrder) {
  const Groups speakers({1, 2, 1, 2});
  EXPECT_TRUE(speakers.allows({0, 0, 0, 2}));
  EXPECT_FALSE(speakers.allows({0, 0, 0, 1}));
  EXPECT_EQ(speakers.coverage({0, 0, 0, 0, 1, 1}), Coverage::none);
}

}  // namespace
}  // namespace heed::masks
