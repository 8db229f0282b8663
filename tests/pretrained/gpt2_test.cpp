// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_model.hpp>

#include <heed/masks/intervals.hpp>

#include "pretrained/pretrained_files.hpp"

namespace heed::test {
namespace {

TEST(Gpt2, LogitsEqualTransformers) {
  const auto tokens = pretrained_tokens("gpt2/tokens");
  const auto golden = pretrained_array<float, 3>("gpt2/out");
  auto model = load_gpt2<float>(pretrained_golden("gpt2"));
  EXPECT_LT(largest_difference(model.forward(tokens, masks::Causal{}), golden), 1e-5);
  model.pack();
  EXPECT_LT(largest_difference(model.forward(tokens, masks::Causal{}), golden), 1e-5);
  const auto wide = load_gpt2<double>(pretrained_golden("gpt2"));
  EXPECT_LT(largest_difference(wide.forward(tokens, masks::Causal{}), golden), 1e-5);
}

TEST(Gpt2, RefusesWhatItHasNot) {
  const std::string sizes =
      R"({"vocab_size": 9, "n_embd": 4, "n_head": 2, "n_layer": 3, "n_positions": 5)";
  const auto options = gpt2_options(ModelConfig(sizes + "}", "config.json"));
  EXPECT_TRUE(options.tied_head);
  EXPECT_FALSE(
      gpt2_options(ModelConfig(sizes + R"(, "tie_word_embeddings": false})", "c")).tied_head);
  EXPECT_EQ(options.block.hidden_dim, 16);
  EXPECT_EQ(options.block.activation, ActivationKind::gelu_tanh);
  for (const char* more :
       {R"(, "scale_attn_weights": false)", R"(, "scale_attn_by_inverse_layer_idx": true)",
        R"(, "activation_function": "tanh")", R"(, "model_type": "gpt_neo")",
        R"(, "layer_norm_epsilon": 0)"}) {
    EXPECT_THROW(gpt2_options(ModelConfig(sizes + more + "}", "config.json")), FileError) << more;
  }
  const std::string endless =
      R"({"vocab_size": 9, "n_embd": 4, "n_head": 2, "n_layer": 3, "n_positions": 1e12})";
  EXPECT_THROW(gpt2_options(ModelConfig(endless, "config.json")), FileError);
  EXPECT_THROW(load_gpt2<float>(pretrained_golden("none")), FileError);
  EXPECT_THROW(load_gpt2<float>(pretrained_golden("llama")), FileError);
}

}  // namespace
}  // namespace heed::test
