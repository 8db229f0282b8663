// SPDX-License-Identifier: MIT
#include <heed/models/encoder_decoder_options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(EncoderDecoderOptions, ReachEncoderInputAndBlocks) {
  const EncoderDecoderOptions options{.source_vocab_size = 5,
                                      .target_vocab_size = 7,
                                      .model_dim = 16,
                                      .encoder_layers = 3,
                                      .positions = PositionKind::rotary,
                                      .dropout = 0.1};
  EXPECT_EQ(detail::encoder_options(options).vocab_size, 5);
  EXPECT_EQ(detail::encoder_options(options).layers, 3);
  EXPECT_EQ(detail::target_input_options(options).vocab_size, 7);
  EXPECT_EQ(detail::target_input_options(options).factor, 4);
  EXPECT_EQ(detail::target_input_options(options).init_std, 0.25) << "embeddings start at about 1";
  EXPECT_EQ(detail::encoder_options(options).embedding_factor, 4);
  EXPECT_EQ(detail::encoder_options(options).init_std, 0.25);
  EXPECT_TRUE(detail::block_options(options).rotary.has_value());
  EXPECT_EQ(detail::block_options(options).dropout, 0.1);
}

}  // namespace
}  // namespace heed
