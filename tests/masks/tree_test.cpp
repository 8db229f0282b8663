// SPDX-License-Identifier: MIT
#include <heed/masks/tokens.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <heed/core/random.hpp>

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
  EXPECT_THROW(Tree(0, {0}), InvalidArgument);
  EXPECT_THROW(Tree(0, {-1, 2}), InvalidArgument);
  EXPECT_THROW(Tree(-1, {}), InvalidArgument);
  EXPECT_THROW(Tree(std::numeric_limits<Index>::max(), {-1, 0}), InvalidArgument);
}

/// Compares all answers with walks from nodes up to their roots.
void check_answers(Index cached, const std::vector<Index>& parents) {
  const Tree tree(cached, parents);
  const Index end = cached + static_cast<Index>(parents.size());
  for (Index query = 0; query < end + 3; ++query) {
    std::vector<bool> seen(static_cast<std::size_t>(end + 3));
    for (Index key = 0; key < cached && query < end; ++key) {
      seen[static_cast<std::size_t>(key)] = key <= query;
    }
    for (Index node = query < end ? query - cached : -1; node >= 0;
         node = parents[static_cast<std::size_t>(node)]) {
      seen[static_cast<std::size_t>(cached + node)] = true;
    }
    for (Index key = 0; key < end + 3; ++key) {
      ASSERT_EQ(tree.allows({0, 0, query, key}), seen[static_cast<std::size_t>(key)])
          << query << ' ' << key;
    }
  }
}

TEST(Tree, SeesAsWalksUpTheParentsDo) {
  for (Index number = 0; number < 720; ++number) {  // all trees of six nodes
    std::vector<Index> parents;
    for (Index node = 0, rest = number; node < 6; rest /= ++node) {
      parents.push_back(rest % (node + 1) - 1);
      check_answers(number % 3, parents);
    }
  }
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    std::vector<Index> parents;
    const Index bushy = 1 + random.integer(90);
    for (Index node = 0; node < 90; ++node) {
      parents.push_back(std::max(random.integer(node + 1), node - bushy) - 1);
    }
    check_answers(random.integer(9), parents);
  }
  check_answers(3, {});
}

TEST(Tree, LaneWordsAreWhatItAllowsForAnyTree) {
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Index> parents;
    for (Index node = 0; node < 1 + random.integer(40); ++node) {
      parents.push_back(random.integer(node + 1) - 1);
    }
    const Index cached = random.integer(9), total = cached + static_cast<Index>(parents.size());
    const Tree tree(cached, parents);
    for (Index first_key = 0; first_key < total; first_key += 1 + random.integer(7)) {
      const Index last_key = first_key + random.integer(total - first_key);
      const Index first_query = random.integer(total);
      const Tile tile{0, 0, first_query, first_query + 63, first_key, last_key};
      std::vector<std::uint64_t> words(static_cast<std::size_t>(tile.keys()));
      tree.lane_words(tile, words.data());
      for (Index key = first_key; key <= last_key; ++key) {
        for (Index lane = 0; lane < 64; ++lane) {
          const std::uint64_t word = words[static_cast<std::size_t>(key - first_key)];
          ASSERT_EQ(word >> lane & 1, tree.allows({0, 0, first_query + lane, key})) << key;
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::masks
