// SPDX-License-Identifier: MIT
#include <heed/masks/combine.hpp>

#include <gtest/gtest.h>

#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>

namespace user {

using namespace heed;
struct Diagonal {
  bool allows(Position at) const { return at.key == at.query; }
};
auto either(const Diagonal& mask) { return (mask & mask) | ~(mask | ~mask); }

}  // namespace user

namespace heed::masks {
namespace {

TEST(Combine, CoverageFollowsFromTheParts) {
  const Tile above{0, 0, 0, 3, 8, 9}, below{0, 0, 8, 9, 0, 3}, on{0, 0, 0, 3, 0, 3};
  const Causal causal;
  const Full full;
  EXPECT_EQ((causal & full).coverage(above), Coverage::none);
  EXPECT_EQ((causal & full).coverage(below), Coverage::full);
  EXPECT_EQ((causal | full).coverage(above), Coverage::full);
  EXPECT_EQ((causal | ~full).coverage(on), Coverage::partial);
  EXPECT_EQ((~causal).coverage(above), Coverage::full);
  EXPECT_EQ((~causal).coverage(below), Coverage::none);
}

TEST(Combine, LaneWordsOfMoreKeysThanOnePiece) {
  std::uint64_t words[200];
  (Causal{} & ~Padding({150})).lane_words({0, 0, 170, 171, 0, 199}, words);
  EXPECT_EQ(words[149] & 3, 0u);
  EXPECT_EQ(words[150] & 3, 3u);
  EXPECT_EQ(words[171] & 3, 2u);
  EXPECT_EQ(words[172] & 3, 0u);
}

TEST(Combine, ChecksAndHeadsReachTheParts) {
  EXPECT_THROW((Causal{} | ~Padding({3})).check({2, 1, 4, 4}), ShapeError);
  EXPECT_FALSE(heed::depends_on_head(Causal{} & ~Full{}));
}

TEST(Combine, AUsersMasksWithoutALibraryMaskBeside) {
  const ::user::Diagonal diagonal;
  EXPECT_TRUE(::user::either(diagonal).allows({0, 0, 4, 4}));
  EXPECT_FALSE(::user::either(diagonal).allows({0, 0, 4, 5}));
  const Mask erased = Mask(Causal{}) & diagonal;
  EXPECT_FALSE(erased.allows({0, 0, 4, 3}));
}

struct Unsaid {
  bool allows(Position at) const { return at.key != at.query; }
};

TEST(Combine, AskingEveryScoreIsInheritedFromAPart) {
  EXPECT_TRUE(asks_every_score(Causal{} & ~Unsaid{}));
  EXPECT_FALSE(asks_every_score(Causal{} & Padding({3})));
}

}  // namespace
}  // namespace heed::masks
