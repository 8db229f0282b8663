// SPDX-License-Identifier: MIT
#include <heed/masks/tokens.hpp>

#include <gtest/gtest.h>

#include <heed/masks/sparse.hpp>

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

TEST(Groups, ListsInBracesAreThoseInParentheses) {
  EXPECT_TRUE((Groups{1, 2, 1, 2}.allows({0, 0, 0, 2})));
  EXPECT_TRUE((GlobalTokens{0, 3}.allows({0, 0, 1, 3})));
  EXPECT_FALSE((GlobalTokens{0, 3}.allows({0, 0, 1, 2})));
  EXPECT_FALSE((MaskedToken{1}.allows({0, 0, 1, 1})));
  EXPECT_TRUE((MaskedToken{1}.allows({0, 0, 0, 0})));
  EXPECT_FALSE(ValidKeys({true, true, false}).allows({0, 0, 0, 2}));
  EXPECT_TRUE(ValidKeys({1, 1, 0}).allows({0, 0, 0, 1}));
}

TEST(Groups, InAnyOrder) {
  const Groups speakers({1, 2, 1, 2});
  EXPECT_TRUE(speakers.allows({0, 0, 0, 2}));
  EXPECT_FALSE(speakers.allows({0, 0, 0, 1}));
  EXPECT_EQ(speakers.coverage({0, 0, 0, 0, 1, 1}), Coverage::none);
}

}  // namespace
}  // namespace heed::masks
