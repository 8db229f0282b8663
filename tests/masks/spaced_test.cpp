// SPDX-License-Identifier: MIT
#include <heed/masks/detail/mask_ref.hpp>

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <heed/masks.hpp>

namespace heed::masks {
namespace {

/// Coverage and lane words of queries `step` apart, beside what the mask allows.
void expect_spaced(const Mask& mask, const Tile& tile, Index step) {
  const MaskRef reference(mask);
  ASSERT_TRUE(reference.knows_steps());
  std::vector<std::uint64_t> words(static_cast<std::size_t>(tile.keys()));
  reference.lane_words(tile, step, words.data());
  bool any = false, all = true;
  for (Index key = tile.first_key; key <= tile.last_key; ++key) {
    for (Index lane = 0; lane < tile.queries(); ++lane) {
      const Index query = tile.first_query + lane * step;
      const bool allowed = mask.allows({tile.batch, tile.head, query, key});
      const std::uint64_t word = words[static_cast<std::size_t>(key - tile.first_key)];
      ASSERT_EQ((word >> lane & 1) != 0, allowed) << "query " << query << ", key " << key;
      any = any || allowed;
      all = all && allowed;
    }
  }
  const Coverage coverage = reference.coverage(tile, step);
  ASSERT_FALSE(coverage == Coverage::none && any);
  ASSERT_FALSE(coverage == Coverage::full && !all);
}

TEST(Spaced, SaysWhatTheMaskAllows) {
  const auto odd = [](Index, Index key) { return key % 2 == 1; };
  const std::vector<Mask> all = {Strided{2},
                                 Strided{3},
                                 Causal{} & Strided{2},
                                 Mask(Causal{}) & Mask(Strided{5}),
                                 Strided{4} & odd & last_n(40),
                                 Strided{2} & Strided{6} & Padding({70, 90}),
                                 (Causal{} | Prefix(20)) & Strided{2}};
  std::mt19937_64 bits(71);
  const auto upto = [&](Index n) { return static_cast<Index>(bits() % static_cast<unsigned>(n)); };
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (int round = 0; round < 60; ++round) {
      const Index query = upto(120) - 20, key = upto(100), step = 1 + upto(7);
      SCOPED_TRACE("mask " + std::to_string(i) + ", seed 71, round " + std::to_string(round));
      const Tile tile{upto(2), 0, query, query + upto(64), key, key + upto(96)};
      expect_spaced(all[i], tile, step);
    }
  }
}

TEST(Spaced, TheStepIsThatOfTheMask) {
  EXPECT_EQ(query_step(Strided{3}), 3);
  EXPECT_EQ(query_step(Causal{} & Strided{3}), 3);
  EXPECT_EQ(query_step(Strided{2} & Strided{6}), 6);
  EXPECT_EQ(query_step(Strided{2} & Strided{3}), 1) << "no step suits both";
  EXPECT_EQ(query_step(Causal{} | Strided{3}), 1);
  EXPECT_EQ(query_step(Mask(Causal{})), 1);
  EXPECT_EQ(query_step(Mask(Strided{4})), 4);
}

}  // namespace
}  // namespace heed::masks
