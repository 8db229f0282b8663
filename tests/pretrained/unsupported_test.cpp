// SPDX-License-Identifier: MIT
#include <heed/pretrained/model_config.hpp>

#include <string>

#include <heed/pretrained/load_model.hpp>

#include "pretrained/pretrained_files.hpp"

namespace heed::test {
namespace {

/// `{"outer": {"inner": value}}` for a key of two parts.
std::string config_text(const std::string& key, const std::string& value) {
  const auto dot = key.find('.');
  if (dot == key.npos) return "{\"" + key + "\": " + value + "}";
  return "{\"" + key.substr(0, dot) + "\": " + config_text(key.substr(dot + 1), value) + "}";
}
std::string refusal(const std::string& key, const std::string& value) {
  const ModelConfig config(config_text(key, value), "config.json");
  return file_error_of([&] { detail::refuse_unsupported(config); });
}

TEST(Unsupported, EveryEntryOfAConfigHasItsNeutralValues) {
  for (const auto& [entry, neutral, also] : detail::neutral_config_entries) {
    const std::string key(entry);
    EXPECT_EQ(refusal(key, detail::message(neutral)), "");
    EXPECT_EQ(refusal(key, detail::message(also)), "");
    EXPECT_EQ(refusal(key, neutral == 0 ? "false" : "true"), "");
    EXPECT_EQ(refusal(key, "null"), "");
    const std::string said = refusal(key, "7.5");
    EXPECT_EQ(said.find("config.json: byte "), 0u) << said;
    EXPECT_NE(said.find("'" + key + "' is 7.5"), std::string::npos) << said;
    EXPECT_NE(refusal(key, neutral == 0 ? "true" : "false"), "") << key;
    EXPECT_NE(refusal(key, "\"x\""), "") << key;
  }
  for (const std::string_view entry : detail::unsupported_config_entries) {
    const std::string key(entry);
    EXPECT_EQ(refusal(key, "null"), "");
    EXPECT_NE(refusal(key, "1").find("'" + key + "' is given"), std::string::npos) << key;
  }
  EXPECT_EQ(refusal("layer_types", "[]"), "");
  EXPECT_EQ(refusal("layer_types", R"(["full_attention", "full_attention"])"), "");
  for (const char* types : {R"(["sliding_attention", "full_attention"])", "[1]", "[[]]"}) {
    EXPECT_EQ(refusal("layer_types", types),
              "config.json: byte 16: 'layer_types' names others than full_attention");
  }
  EXPECT_NE(refusal("layer_types", "7"), "");
}

TEST(Unsupported, EveryKindOfModelAsks) {
  const ModelConfig config(R"({"logit_scale": 2, "add_cross_attention": true})", "config.json");
  for (const std::string& said :
       {file_error_of([&] { bert_options(config); }), file_error_of([&] { gpt2_options(config); }),
        file_error_of([&] { llama_options(config); })}) {
    EXPECT_EQ(said, "config.json: byte 42: 'add_cross_attention' is 1, expected 0");
  }
}

TEST(Unsupported, Gpt2AndBertNameTheEntry) {
  const auto says = [](const auto& options, const std::string& text, const std::string& words) {
    const std::string said = file_error_of([&] { options(ModelConfig(text, "c")); });
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  says(gpt2_options, R"({"scale_attn_weights": false})", "c: byte 23: 'scale_attn_weights' is");
  says(gpt2_options, R"({"tie_word_embeddings": false})", "'tie_word_embeddings' is false");
  says(gpt2_options, R"({"scale_attn_by_inverse_layer_idx": true})",
       "'scale_attn_by_inverse_layer_idx' is true");
  says(bert_options, R"({"is_decoder": true})", "'is_decoder' is true");
  says(bert_options, R"({"position_embedding_type": "relative_key"})", "'relative_key'");
}

}  // namespace
}  // namespace heed::test
