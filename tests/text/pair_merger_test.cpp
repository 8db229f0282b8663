// SPDX-License-Identifier: MIT
#include <heed/text/byte_pair_encoding.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <vector>

namespace heed::detail {
namespace {

/// The definition: find the pair of the lowest rank, leftmost; merge; again.
std::vector<std::int32_t> merged_slowly(const std::vector<PairMerge>& merges,
                                        std::vector<std::int32_t> tokens) {
  for (;;) {
    std::size_t best = merges.size(), where = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      for (std::size_t rank = 0; rank < best; ++rank) {
        if (merges[rank].left == tokens[i] && merges[rank].right == tokens[i + 1]) {
          best = rank;
          where = i;
        }
      }
    }
    if (best == merges.size()) return tokens;
    tokens[where] = merges[best].result;
    tokens.erase(tokens.begin() + static_cast<Index>(where) + 1);
  }
}

TEST(PairMerger, EqualsTheDefinition) {
  const std::uint64_t seed = 20261126;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto letters = static_cast<std::int32_t>(2 + bits() % 3);
    std::vector<PairMerge> merges;
    std::int32_t tokens = letters;
    for (std::uint64_t i = 0; i < bits() % 30; ++i) {
      const auto left = static_cast<std::int32_t>(bits() % static_cast<unsigned>(tokens));
      const auto right = static_cast<std::int32_t>(bits() % static_cast<unsigned>(tokens));
      bool there = false;
      for (const PairMerge& merge : merges)
        there = there || (merge.left == left && merge.right == right);
      if (!there) merges.push_back({left, right, tokens++});
    }
    std::shuffle(merges.begin(), merges.end(), bits);  // ranks need not follow how tokens are made
    const PairMerger merger(merges, tokens);
    std::vector<std::int32_t> text(bits() % 40);
    for (auto& token : text)
      token = static_cast<std::int32_t>(bits() % static_cast<unsigned>(letters));
    auto result = text;
    merger.merge(result);
    ASSERT_EQ(result, merged_slowly(merges, text)) << round;
  }
}

TEST(PairMerger, AMegabyteWithoutASpaceTakesASecondNotADay) {
  std::vector<PairMerge> merges;
  for (std::int32_t i = 0; i < 20; ++i) merges.push_back({i, i, i + 1});
  const PairMerger merger(merges, 21);
  std::vector<std::int32_t> text(1 << 20, 0);
  const auto start = std::chrono::steady_clock::now();
  merger.merge(text);
  EXPECT_EQ(text, std::vector<std::int32_t>{20});
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
}

}  // namespace
}  // namespace heed::detail
