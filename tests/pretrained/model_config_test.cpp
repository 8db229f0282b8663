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
  says(gpt2_options, R"({"scale_attn_by_inverse_layer_idx": true})",
       "'scale_attn_by_inverse_layer_idx' is true");
  says(bert_options, R"({"is_decoder": true})", "'is_decoder' is true");
  says(bert_options, R"({"position_embedding_type": "relative_key"})", "'relative_key'");
}

ModelConfig config_of(const char* text) { return {text, "config.json"}; }

TEST(ModelConfig, ReadsValuesByName) {
  const auto config = config_of(
      R"({"size": 12, "eps": 1e-5, "act": "gelu_new", "tied": true, "none": null,
          "list": [1, {"a": 2}], "rope": {"theta": 5e4, "kind": {"name": "plain"}}})");
  EXPECT_EQ(config.integer("size"), 12);
  EXPECT_EQ(config.integer("none", 7), 7);
  EXPECT_EQ(config.real("eps"), 1e-5);
  EXPECT_EQ(config.real("missing", 2.5), 2.5);
  EXPECT_EQ(config.text("act", ""), "gelu_new");
  EXPECT_EQ(config.text("rope.kind.name", ""), "plain");
  EXPECT_TRUE(config.flag("tied", false));
  EXPECT_TRUE(config.flag("other", true));
  EXPECT_FALSE(config.has("none"));
  EXPECT_TRUE(config.is_null("none"));
  EXPECT_FALSE(config.is_null("missing"));
  EXPECT_FALSE(config.is_null("size"));
  EXPECT_EQ(file_error_of([&] { config.real("none"); }), "config.json: no 'none'");
  EXPECT_TRUE(config.has("list"));
  EXPECT_EQ(config.real("rope.theta"), 5e4);
  EXPECT_EQ(config.activation("act", "relu"), ActivationKind::gelu_tanh);
  EXPECT_EQ(config.activation("missing", "swish"), ActivationKind::silu);
}

TEST(ModelConfig, RefusesWhatIsSomethingElse) {
  const auto config =
      config_of(R"({"half": 0.5, "less": -1, "much": 1e13, "text": "x", "list": []})");
  for (const char* key : {"half", "less", "much", "text", "list", "missing"}) {
    EXPECT_NE(file_error_of([&] { config.integer(key); }).find(key), std::string::npos) << key;
  }
  EXPECT_THROW(config.real("text"), FileError);
  EXPECT_THROW(config.text("half", ""), FileError);
  EXPECT_THROW(config.flag("half", true), FileError);
  EXPECT_THROW(config.activation("text", "gelu"), FileError);
  for (const char* text : {"", "[]", "{", R"({"a": 1, "a": 2})", R"({"a": null, "a": 2})",
                           R"({"a": {"b": 1}, "a.b": 2})", R"({"a": 1} x)", R"({"a": nil})"}) {
    EXPECT_THROW(config_of(text), FileError) << text;
  }
  EXPECT_THROW(ModelConfig::read(pretrained_golden("missing.json")), FileError);
}

TEST(ModelConfig, NamesAndEntriesTakeNoMoreMemoryThanAConfigNeeds) {
  const auto refusal = [](const std::string& text) {
    return file_error_of([&] { ModelConfig(text, "config.json"); });
  };
  const std::string name(64, 'n');
  ModelConfig(R"({")" + name + R"(": {")" + name.substr(1) + R"(": 1}})", "config.json");
  EXPECT_NE(refusal(R"({")" + name + R"(": {")" + name + R"(": 1}})").find("128 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(R"({")" + name + name + R"(n": [1]})").find("128 bytes"), std::string::npos);
  std::string many = "{";
  for (int i = 0; i < 2000; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  ModelConfig(many + "}", "config.json");
  EXPECT_NE(refusal(many + R"(,"x":1})").find("2000 entries"), std::string::npos);
  const std::string much = R"({"a": ")" + std::string((1 << 20) - 9, 'a') + R"("})";
  ModelConfig(much, "config.json");
  const std::string path = ::testing::TempDir() + "model_config_test.json";
  const auto written = [&](const std::string& text) {
    write_file(path, std::as_bytes(std::span(text.data(), text.size())));
    return file_error_of([&] { ModelConfig::read(path); });
  };
  EXPECT_EQ(written(much), "");
  EXPECT_NE(refusal(much + " ").find("1048577 bytes"), std::string::npos);
  EXPECT_NE(written(much + " ").find("1048577 bytes"), std::string::npos);
}

TEST(ModelConfig, NumbersOfFlagsAndListsOfOneText) {
  const auto config = config_of(
      R"({"on": true, "off": false, "half": 0.5, "same": ["a", "a"], "no": ["a", 1], "none": []})");
  EXPECT_EQ(config.number("on"), 1);
  EXPECT_EQ(config.number("off"), 0);
  EXPECT_EQ(config.number("half"), 0.5);
  EXPECT_TRUE(config.is_list_of("same", "a"));
  EXPECT_FALSE(config.is_list_of("same", "b"));
  EXPECT_FALSE(config.is_list_of("no", "a"));
  EXPECT_TRUE(config.is_list_of("none", "a"));
  EXPECT_EQ(file_error_of([&] { config.number("same"); }),
            "config.json: byte 48: 'same' is not a number");
  EXPECT_EQ(file_error_of([&] { config.is_list_of("on", "a"); }),
            "config.json: byte 7: 'on' is not a list");
}

TEST(ModelConfig, KindOfModel) {
  config_of("{}").expect_kind("llama");
  config_of(R"({"model_type": "llama"})").expect_kind("llama");
  EXPECT_EQ(file_error_of([] { config_of(R"({"model_type": "granite"})").expect_kind("llama"); }),
            "config.json: byte 15: 'model_type' is 'granite', expected llama");
}

}  // namespace
}  // namespace heed::test
