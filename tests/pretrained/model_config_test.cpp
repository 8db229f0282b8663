// SPDX-License-Identifier: MIT
#include <heed/pretrained/model_config.hpp>

#include "pretrained/pretrained_files.hpp"

namespace heed::test {
namespace {

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
  for (const char* text : {"", "[]", "{", R"({"a": 1, "a": 2})", R"({"a": {"b": 1}, "a.b": 2})",
                           R"({"a": 1} x)", R"({"a": nil})"}) {
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
