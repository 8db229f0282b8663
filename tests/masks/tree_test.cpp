// SPDX-License-Identifier: MIT
#include <heed/masks/tree.hpp>

#include <gtest/gtest.h>

namespace heed::masks {
namespace {

TEST(Tree, NodesSeeTheTextAndTheirAncestors) {
  //       0
  //     1   2      over 10 cached tokens
  //     3
  const Tree tree(10, {-1, 0, 0, 1});
  EXPECT_TRUE(tree.allows({0, 0, 13, 0}));
  EXPECT_TRUE(tree.allows({0, 0, 13, 10}));
  EXPECT_TRUE(tree.allows({0, 0, 13, 11}));
  EXPECT_FALSE(tree.allows({0, 0, 13, 12})) << "a sibling's child";
  EXPECT_TRUE(tree.allows({0, 0, 13, 13}));
  EXPECT_FALSE(tree.allows({0, 0, 11, 13})) << "a descendant";
  EXPECT_FALSE(tree.allows({0, 0, 14, 3})) << "no such node";
  EXPECT_EQ(tree.coverage({0, 0, 10, 13, 0, 9}), Coverage::full);
  EXPECT_THROW(Tree(0, {0}), ShapeError);
  EXPECT_THROW(Tree(0, {-1, 2}), ShapeError);
  EXPECT_THROW(Tree(-1, {}), ShapeError);
}

}  // namespace
}  // namespace heed::masks
