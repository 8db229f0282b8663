// SPDX-License-Identifier: MIT
// Llamas whose files stretch rotary positions, and Mistrals, which are Llamas, perhaps with a
// window.
#include <heed/pretrained/load_model.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/generation/session.hpp>
#include <heed/masks/intervals.hpp>

#include "pretrained/golden_gguf.hpp"
#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

/// The weights of the golden Llama `rotary` with another golden config.
class RotaryFolder : public Folder {
 public:
  explicit RotaryFolder(const std::string& kind) : Folder("rotary") {
    std::filesystem::copy(pretrained_golden("rotary/" + kind + "/config.json"),
                          path() + "/config.json",
                          std::filesystem::copy_options::overwrite_existing);
  }
};

TEST(RotaryKinds, LogitsEqualTransformers) {
  const auto tokens = pretrained_tokens("rotary/tokens");
  const auto plain = pretrained_array<float, 3>("rotary/out");
  EXPECT_LT(
      largest_difference(load_llama<double>(pretrained_golden("rotary")).forward(tokens), plain),
      1e-5);
  for (const std::string kind : {"linear", "llama3", "mistral", "window"}) {
    SCOPED_TRACE(kind);
    const RotaryFolder folder(kind);
    const auto golden = pretrained_array<float, 3>("rotary/" + kind + "/out");
    EXPECT_EQ(largest_difference(golden, plain) > 0.1, kind != "mistral") << "the golden tells";
    const auto model = load_llama<float>(folder.path());
    const auto logits = model.forward(tokens, masks::Causal{});
    EXPECT_LT(largest_difference(logits, golden), 1e-5);
    EXPECT_LT(largest_difference(load_llama<double>(folder.path()).forward(tokens), golden), 1e-5);
    EXPECT_TRUE(same_bits(load_packed_llama(folder.path()).forward(tokens), logits));
    Session<float> session(model);
    session.prefill(std::vector<std::vector<Index>>{{tokens.data(), tokens.data() + 30}});
    EXPECT_TRUE(same_bits(session.logits(std::span(tokens.data() + 30, 10)),
                          Tensor<float, 3>::copy_of(logits.slice(0, 0, 1).slice(1, 30, 40))));
    auto loaded = load_model(folder.path());
    EXPECT_EQ(loaded.architecture, "llama");
    EXPECT_TRUE(same_bits(loaded.language_model().forward(tokens), logits));
  }
}

LanguageModelOptions options_of(const std::string& more) {
  return llama_options(ModelConfig(
      R"({"vocab_size": 9, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
          "intermediate_size": 12, "max_position_embeddings": 8192)" +
          more + "}",
      "config.json"));
}
std::string refusal_of(const std::string& more) {
  return file_error_of([&] { options_of(more); });
}
void expect_refusal(const std::string& more, const std::string& words) {
  const std::string said = refusal_of(more);
  EXPECT_NE(said.find(words), std::string::npos) << said;
}

TEST(RotaryKinds, LinearScalingOfEverySpelling) {
  EXPECT_EQ(options_of("").block.rotary.scaling, 1);
  for (const char* object : {"rope_scaling", "rope_parameters"}) {
    for (const char* name : {"rope_type", "type"}) {
      const std::string text = std::string(", \"") + object + "\": {\"" + name;
      EXPECT_EQ(options_of(text + R"(": "linear", "factor": 4})").block.rotary.scaling, 4) << text;
      EXPECT_EQ(options_of(text + R"(": "default", "factor": 1})").block.rotary.scaling, 1);
    }
  }
  EXPECT_EQ(
      options_of(R"(, "rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 3})")
          .block.rotary.scaling,
      3);
}

TEST(RotaryKinds, Llama3OfEverySpelling) {
  const std::string numbers =
      R"("factor": 8.0, "low_freq_factor": 1.5, "high_freq_factor": 3.0, "rope_theta": 5e5)";
  for (const char* object : {"rope_scaling", "rope_parameters"}) {
    for (const bool own : {false, true}) {
      SCOPED_TRACE(object);
      const char* length = own ? R"(, "original_max_position_embeddings": 64})" : "}";
      const auto rotary = options_of(std::string(", \"") + object +
                                     R"(": {"rope_type": "llama3", )" + numbers + length)
                              .block.rotary;
      EXPECT_EQ(rotary.base, 5e5);
      EXPECT_EQ(rotary.scaling, 1);
      EXPECT_EQ(rotary.low_frequencies.factor, 8);
      EXPECT_EQ(rotary.low_frequencies.low_turns, 1.5);
      EXPECT_EQ(rotary.low_frequencies.high_turns, 3);
      EXPECT_EQ(rotary.low_frequencies.original_length, own ? 64 : 8192) << "as transformers";
    }
  }
  EXPECT_EQ(options_of(R"(, "rope_scaling": {"type": "llama3", )" + numbers +
                       R"(}, "original_max_position_embeddings": 32)")
                .block.rotary.low_frequencies.original_length,
            32);
  const auto refused = [&](std::string text, const std::string& from, const std::string& to,
                           const std::string& words) {
    text.replace(text.find(from), from.size(), to);
    expect_refusal(R"(, "rope_scaling": {"rope_type": "llama3", )" + text + "}", words);
  };
  refused(numbers, "\"factor", "\"x", "no 'rope_scaling.factor'");
  refused(numbers, "low_freq", "x", "no 'rope_scaling.low_freq_factor'");
  refused(numbers, "high_freq", "x", "no 'rope_scaling.high_freq_factor'");
  refused(numbers, "3.0", "1.5", "config.json: Rotary: ");
  refused(numbers, "8.0", "-8", "config.json: Rotary: ");
}

TEST(RotaryKinds, RefusesKindsThatAreUnknownOrUnclear) {
  expect_refusal(R"(, "rope_scaling": {"type": "linear"})", "no 'rope_scaling.factor'");
  for (const char* factor : {"0", "-2", "1e999"}) {
    EXPECT_NE(refusal_of(R"(, "rope_scaling": {"type": "linear", "factor": )" +
                         std::string(factor) + "}"),
              "");
  }
  expect_refusal(R"(, "rope_scaling": {"type": "linear", "factor": 0})",
                 "config.json: Rotary: base 10000, scaling 0");
  expect_refusal(R"(, "rope_scaling": {"type": "dynamic", "factor": 2})",
                 "'rope_scaling.type' is 'dynamic', expected default");
  expect_refusal(R"(, "rope_scaling": {"type": "linear", "rope_type": "default", "factor": 2})",
                 "'rope_scaling.type' is 'linear', and 'rope_scaling.rope_type' is 'default'");
  expect_refusal(R"(, "rope_scaling": {"factor": 2})", "'rope_scaling.factor' is 2, expected 1");
  expect_refusal(R"(, "rope_scaling": {"factor": 2},
                     "rope_parameters": {"rope_type": "linear", "factor": 2})",
                 "'rope_scaling.factor' is 2, expected 1");
}

TEST(RotaryKinds, AMistralHasAWindowUnlessItSaysNull) {
  const std::string mistral = R"(, "model_type": "mistral")";
  const auto window_of = [&](const std::string& more) {
    return options_of(mistral + more).block.window;
  };
  EXPECT_EQ(window_of(R"(, "sliding_window": null)"), 0);
  EXPECT_EQ(window_of(R"(, "sliding_window": 8192)"), 8192) << "texts may be longer";
  EXPECT_EQ(window_of(R"(, "sliding_window": 4095)"), 4095);
  EXPECT_EQ(window_of(R"(, "sliding_window": 4095, "use_sliding_window": false)"), 4095);
  EXPECT_EQ(window_of(""), 4096);
  expect_refusal(mistral + R"(, "sliding_window": 0)", "'sliding_window' is 0, expected null");
  expect_refusal(mistral + R"(, "sliding_window": -1)", "'sliding_window' is -1");
  expect_refusal(R"(, "sliding_window": 4095)", "'sliding_window' is 4095, expected null");
  expect_refusal(R"(, "model_type": "mixtral")",
                 "is 'mixtral', expected llama, mistral, qwen2 or qwen3");
}

TEST(RotaryKinds, LinearScalingOfAGguf) {
  constexpr std::uint32_t f32 = 6, text = 8;
  const auto scaling = [&](std::string_view type, float factor, const char* key) {
    GgufFile more;
    if (!type.empty()) more.field("llama.rope.scaling.type", text, gguf_text(type));
    more.field(key, f32, raw(factor));
    return llama_options(golden_as_gguf({.more = more.fields, .more_count = more.field_count}))
        .block.rotary.scaling;
  };
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    EXPECT_EQ(scaling("linear", 4, key), 4);
    EXPECT_EQ(scaling("", 4, key), 4) << "linear is the default of llama.cpp";
    EXPECT_EQ(scaling("linear", 0, key), 1);
    EXPECT_EQ(scaling("none", 4, key), 1);
    EXPECT_THROW(scaling("linear", -1, key), FileError);
  }
  EXPECT_THROW(scaling("yarn", 4, "llama.rope.scaling.factor"), FileError);
}

/// The golden Llama's heads have two pairs.
TEST(RotaryKinds, AGgufHasADivisorForEachPair) {
  const auto tokens = pretrained_tokens("llama/tokens");
  auto options = llama_options(ModelConfig::read(pretrained_golden("llama/config.json")));
  options.block.rotary.divisors = {2, 0.25};
  const auto expected =
      load_weights<LanguageModel<float>>(weights_of(pretrained_golden("llama/model.safetensors")),
                                         llama_names, options)
          .forward(tokens);
  EXPECT_GT(largest_difference(expected, pretrained_array<float, 3>("llama/out")), 0.1);
  const auto file = golden_as_gguf({.rotary_divisors = {2, 0.25f}});
  const auto model = load_llama<float>(file);
  EXPECT_EQ(model.options.block.rotary.divisors, (std::vector<double>{2, 0.25}));
  EXPECT_LT(largest_difference(model.forward(tokens), expected), 1e-5);
  EXPECT_TRUE(same_bits(load_packed_llama(file).forward(tokens), model.forward(tokens)));
}

TEST(RotaryKinds, RefusesDivisorsOfAGgufThatAreNotTheHeads) {
  const auto refusal = [](std::vector<float> divisors) {
    return file_error_of(
        [&] { load_llama<float>(golden_as_gguf({.rotary_divisors = std::move(divisors)})); });
  };
  for (const std::vector<float>& bad : {std::vector<float>{1}, {1, 1, 1}, {1, 0}, {-1, 1}}) {
    EXPECT_EQ(refusal(bad).find("golden.gguf: Rotary: "), 0u) << refusal(bad);
  }
  EXPECT_EQ(refusal(std::vector<float>(1025, 1)),
            "golden.gguf: 'rope_freqs.weight' is (1025), expected a list of at most 1024");
}

}  // namespace
}  // namespace heed::test
