// SPDX-License-Identifier: MIT
#include <heed/layers/blocks.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(BlockOptions, ReachThePartsOfABlock) {
  const BlockOptions options{.model_dim = 8,
                             .heads = 2,
                             .kv_heads = 1,
                             .norm = NormKind::rms,
                             .bias = false,
                             .positions = PositionKind::rotary,
                             .rotary = {.base = 7},
                             .dropout = 0.5};
  const auto attention = detail::attention_options(options);
  EXPECT_EQ(attention.kv_heads, 1);
  EXPECT_FALSE(attention.bias || attention.output_bias);
  EXPECT_EQ(attention.positions, PositionKind::rotary);
  EXPECT_EQ(attention.rotary.base, 7);
  const auto cross = detail::cross_attention_options(options);
  EXPECT_EQ(cross.positions, PositionKind::none);
  EXPECT_TRUE(cross.top_left);
  const auto feed_forward = detail::feed_forward_options(options);
  EXPECT_EQ(feed_forward.hidden_dim, 32);
  EXPECT_EQ(feed_forward.dropout, 0.5);
  EXPECT_EQ(detail::norm_options(options).kind, NormKind::rms);
}

}  // namespace
}  // namespace heed
