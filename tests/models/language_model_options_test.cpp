// SPDX-License-Identifier: MIT
#include <heed/models/language_model_options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(LanguageModelOptions, LlamaHasNoBiasAndTurnsItsHeads) {
  auto options = LanguageModelOptions::llama();
  options.model_dim = 8;
  options.rotary.base = 500;
  const auto block = detail::block_options(options);
  EXPECT_EQ(block.norm, NormKind::rms);
  EXPECT_TRUE(block.gated && !block.bias && block.norm_before);
  EXPECT_EQ(block.rotary->base, 500);
  EXPECT_FALSE(detail::block_options(LanguageModelOptions{}).rotary.has_value());
}

TEST(LanguageModelOptions, GPTAddsLearnedPositions) {
  const LanguageModelOptions options;
  EXPECT_EQ(detail::token_input_options(options).positions, PositionKind::learned);
  EXPECT_EQ(detail::token_input_options(options).max_length, 1024);
}

}  // namespace
}  // namespace heed
