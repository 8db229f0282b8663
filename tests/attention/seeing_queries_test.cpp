// SPDX-License-Identifier: MIT
#include <heed/attention/seeing_queries.hpp>

#include <gtest/gtest.h>

#include <heed/masks/causal.hpp>
#include <heed/masks/full.hpp>

namespace heed::detail {
namespace {

TEST(KeysSeenBy, LeavesOutQueriesThatSawNothing) {
  std::uint64_t words[simd::key_block];
  const masks::Full full;
  const masks::Causal causal;
  const Tile tile{0, 0, 0, 3, 0, 5};
  EXPECT_EQ(keys_seen_by(MaskRef(full), tile, true, 0b1111, words).words, nullptr);
  auto seen = keys_seen_by(MaskRef(full), tile, true, 0b1011, words);
  ASSERT_EQ(seen.count, 6);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(seen.words[i], 0b1011u);
  seen = keys_seen_by(MaskRef(causal), tile, false, 0b0111, words);
  ASSERT_EQ(seen.count, 4);
  EXPECT_EQ(seen.words[0], 0b0111u);
  EXPECT_EQ(seen.words[2], 0b0100u);
  EXPECT_EQ(seen.words[3], 0u);
  EXPECT_EQ(keys_seen_by(MaskRef(causal), tile, false, 0, words).count, 0);
}

}  // namespace
}  // namespace heed::detail
