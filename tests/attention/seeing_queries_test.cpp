// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <gtest/gtest.h>

#include <heed/masks/intervals.hpp>

namespace heed::detail {
namespace {

TEST(KeysSeenBy, LeavesOutQueriesThatSawNothing) {
  std::uint64_t words[simd::key_block];
  const masks::Causal causal;
  const Tile tile{0, 0, 0, 3, 0, 5};
  const VisibleKeys all{0, 6, nullptr, false};
  const auto visible = [&] { return visible_keys(MaskRef(causal), tile, words); };
  EXPECT_EQ(keys_seen_by(all, 4, 0b1111, words).words, nullptr);
  auto seen = keys_seen_by(all, 4, 0b1011, words);
  ASSERT_EQ(seen.count, 6);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(seen.words[i], 0b1011u);
  seen = keys_seen_by(visible(), 4, 0b0111, words);
  ASSERT_EQ(seen.count, 4);
  EXPECT_EQ(seen.words[0], 0b0111u);
  EXPECT_EQ(seen.words[2], 0b0100u);
  EXPECT_EQ(seen.words[3], 0u);
  EXPECT_EQ(keys_seen_by(visible(), 4, 0, words).count, 0);
}

}  // namespace
}  // namespace heed::detail
