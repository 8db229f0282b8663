// SPDX-License-Identifier: MIT
#include <heed/layers/multi_head_attention_options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(MultiHeadAttentionOptions, ZerosStandForTheUsual) {
  const auto options = detail::completed({.model_dim = 12, .heads = 3});
  EXPECT_EQ(options.kv_heads, 3);
  EXPECT_EQ(options.head_dim, 4);
  EXPECT_EQ(options.kdim, 12);
  EXPECT_EQ(options.vdim, 12);
}

TEST(MultiHeadAttentionOptions, RefusesWhatCannotBe) {
  for (const MultiHeadAttentionOptions& bad :
       {MultiHeadAttentionOptions{.model_dim = 0},
        {.model_dim = 10, .heads = 3},
        {.model_dim = 12, .heads = 4, .kv_heads = 3},
        {.model_dim = 12, .heads = 0},
        {.model_dim = 12, .heads = 2, .kdim = 5, .fused = true}}) {
    EXPECT_THROW(detail::completed(bad), InvalidArgument);
  }
}

}  // namespace
}  // namespace heed
