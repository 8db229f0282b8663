// SPDX-License-Identifier: MIT
// Qwen2, a Llama with biases of queries, keys and values, here with weights in several files, and
// Qwen3, one with norms of queries and keys, here with a tied head.
#include <heed/pretrained/load_model.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/generation/generate.hpp>
#include <heed/generation/session.hpp>
#include <heed/masks/intervals.hpp>

#include "pretrained/golden_gguf.hpp"
#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

const std::string both[] = {"qwen2", "qwen3"};

TEST(Qwen, LogitsEqualTransformers) {
  for (const std::string& name : both) {
    SCOPED_TRACE(name);
    const std::string folder = pretrained_golden(name);
    EXPECT_EQ(std::filesystem::exists(folder + "/model.safetensors"), name == "qwen3");
    const auto tokens = pretrained_tokens(name + "/tokens");
    const auto golden = pretrained_array<float, 3>(name + "/out");
    const auto model = load_llama<float>(folder);
    EXPECT_EQ(model.options.tied_head, name == "qwen3");
    const auto logits = model.forward(tokens);
    EXPECT_LT(largest_difference(logits, golden), 1e-5);
    EXPECT_LT(largest_difference(load_llama<double>(folder).forward(tokens), golden), 1e-5);
    EXPECT_TRUE(same_bits(load_packed_llama(folder).forward(tokens), logits));
    for (auto& loaded : {load_model(folder), load_packed_model(folder)}) {
      EXPECT_EQ(loaded.architecture, "llama");
      EXPECT_TRUE(same_bits(loaded.language_model().forward(tokens), logits));
    }
  }
}

TEST(Qwen, GreedyTextsAreThoseOfTransformers) {
  for (const std::string& name : both) {
    const auto tokens = pretrained_tokens(name + "/tokens");
    const auto greedy = pretrained_tokens(name + "/greedy");
    for (const bool packed : {false, true}) {
      const std::string folder = pretrained_golden(name);
      const auto model = packed ? load_packed_llama(folder) : load_llama<float>(folder);
      for (Index row = 0; row < tokens.extent(0); ++row) {
        const auto prompt = tokens.select(0, row), text = greedy.select(0, row);
        const std::vector<Index> expected(text.begin(), text.end());
        Session<float> session(model, {.max_length = 64});
        const auto written =
            generate(session, prompt, {.max_tokens = static_cast<Index>(expected.size())});
        EXPECT_EQ(written.tokens, expected) << name << " " << packed << " " << row;
      }
    }
  }
}

/// A golden as a GGUF file.
Gguf gguf_of(const std::string& name, std::string_view key = "", std::uint32_t value = 0,
             std::uint32_t matrices = 0, std::string_view without = "") {
  return golden_as_gguf({.architecture = name.c_str(),
                         .norm_epsilon = 1e-6f,
                         .rotary_base = name == "qwen2" ? 50000.f : 10000.f,
                         .key = key,
                         .value = raw(value),
                         .without = without,
                         .matrices = matrices,
                         .golden = name});
}

TEST(Qwen, GgufHoldsTheSameModel) {
  for (const std::string& name : both) {
    SCOPED_TRACE(name);
    const auto tokens = pretrained_tokens(name + "/tokens");
    const auto file = gguf_of(name);
    const auto model = load_llama<float>(file);
    EXPECT_EQ(model.options.block.rotary.pairing, RotaryPairing::half_split);
    EXPECT_EQ(model.options.tied_head, name == "qwen3");
    EXPECT_TRUE(same_bits(model.forward(tokens),
                          load_llama<float>(pretrained_golden(name)).forward(tokens)));
    EXPECT_TRUE(same_bits(load_packed_llama(file).forward(tokens), model.forward(tokens)));
    const auto narrow = gguf_of(name, "", 0, 30);
    EXPECT_TRUE(same_bits(load_packed_llama(narrow).forward(tokens),
                          load_llama<float>(narrow).forward(tokens)));
  }
}

TEST(Qwen, RefusesAGgufWithWhatItHasNot) {
  for (const std::string& name : both) {
    const std::string part = name == "qwen2" ? "blk.1.attn_k.bias" : "blk.1.attn_k_norm.weight";
    EXPECT_EQ(file_error_of([&] { load_llama<float>(gguf_of(name, "", 0, 0, part)); }),
              "golden.gguf: 1 weight of the model and the file differ: no '" + part + "'");
    for (const auto& [field, neutral, other] : {std::tuple{"attention.sliding_window", 64u, 63u},
                                                {"attention.value_length", 4u, 3u},
                                                {"expert_count", 0u, 8u},
                                                {"vocab_size", 29u, 28u}}) {
      const std::string key = name + "." + field;
      EXPECT_NO_THROW(llama_options(gguf_of(name, key, neutral)));
      const auto said = file_error_of([&, n = other] { llama_options(gguf_of(name, key, n)); });
      EXPECT_NE(said.find("'" + key + "' is "), said.npos) << said;
    }
    const std::string unknown = name + ".attention.temperature_length";
    const auto said = file_error_of([&] { llama_options(gguf_of(name, unknown, 1)); });
    EXPECT_NE(said.find("'" + unknown + "' is not a field that heed knows"), said.npos) << said;
    EXPECT_NO_THROW(llama_options(gguf_of(name, "llama.attention.sliding_window", 1)));
  }
}

/// The weights of a golden in one file, with matrices in bfloat16, and all that `keep` names.
template <class Keep>
class BrainFolder : public Folder {
 public:
  BrainFolder(const std::string& name, const Keep& keep) : Folder(name) {
    const WeightFile weights = detail::weights_in(path());
    SafetensorsWriter writer;
    for (const auto& weight : weights.names()) {
      if (!keep(weight)) continue;
      if (weights.shape(weight).size() == 2) {
        writer.add(weight, weights.tensor<float, 2>(weight), ElementType::bf16);
      } else {
        writer.add(weight, weights.tensor<float, 1>(weight));
      }
    }
    writer.write(path() + "/model.safetensors");
  }
};

TEST(Qwen, PackedWeightsInBfloat16KeepBiasesAndNorms) {
  for (const std::string& name : both) {
    const BrainFolder folder(name, [](std::string_view) { return true; });
    const auto packed = load_packed_llama(folder.path());
    const auto& attention = packed.blocks[1].attention;
    EXPECT_TRUE(attention.projections.query->packed.is_quantized());
    EXPECT_EQ(attention.projections.value->bias.has_value(), name == "qwen2");
    EXPECT_EQ(attention.key_norm.has_value(), name == "qwen3");
    EXPECT_FALSE(attention.out.bias || packed.blocks[0].feed_forward.up.bias);
    const auto tokens = pretrained_tokens(name + "/tokens");
    const auto logits = load_llama<float>(folder.path()).forward(tokens);
    EXPECT_TRUE(same_bits(packed.forward(tokens), logits));
  }
}

TEST(Qwen, NamesBiasesAndNormsThatAreMissingOrTooMany) {
  for (const auto& [name, part] : {std::pair{"qwen2", "layers.1.self_attn.k_proj.bias"},
                                   {"qwen3", "layers.1.self_attn.k_norm.weight"}}) {
    const std::string weight = std::string("model.") + part;
    const BrainFolder without(name, [&](std::string_view other) { return other != weight; });
    const auto start = without.path() + "/model.safetensors: ";
    EXPECT_EQ(file_error_of([&] { load_llama<float>(without.path()); }),
              start + "1 weight of the model and the file differ: no '" + weight + "'");
    EXPECT_EQ(file_error_of([&] { load_packed_llama(without.path()); }),
              start + "1 weight of the model and the file differ: no '" + weight + "'");
    const BrainFolder folder(name, [](std::string_view) { return true; });
    folder.write("config.json", R"({"model_type": "llama", "vocab_size": 29, "hidden_size": 12,
        "num_attention_heads": )" + std::string(name == both[0] ? "3" : "6") +
                                    R"(, "num_key_value_heads": )" + (name == both[0] ? "1" : "2") +
                                    R"(, "head_dim": 4,
        "num_hidden_layers": 2, "intermediate_size": 19, "max_position_embeddings": 64,
        "tie_word_embeddings": )" + (name == both[0] ? "false}" : "true}"));
    const auto said = file_error_of([&] { load_llama<float>(folder.path()); });
    EXPECT_NE(said.find(name == both[0] ? ": 6 weights" : ": 4 weights"), said.npos) << said;
    EXPECT_NE(said.find("'" + weight + "' is not the model's"), said.npos) << said;
  }
}

LanguageModelOptions options_of(const std::string& kind, const std::string& more) {
  return llama_options(ModelConfig(
      R"({"vocab_size": 9, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
          "intermediate_size": 12, "max_position_embeddings": 8192, "model_type": ")" +
          kind + "\"" + more + "}",
      "config.json"));
}

TEST(Qwen, WhatAFileDoesNotSay) {
  const auto qwen2 = options_of("qwen2", "").block, qwen3 = options_of("qwen3", "").block;
  EXPECT_EQ(qwen2.head_dim, 0);
  EXPECT_EQ(qwen3.head_dim, 128) << "as in transformers";
  EXPECT_FALSE(qwen2.bias || qwen3.bias || qwen3.query_key_value_bias);
  EXPECT_TRUE(qwen2.query_key_value_bias.value());
  EXPECT_FALSE(qwen2.query_key_norm);
  EXPECT_EQ(qwen3.query_key_norm, NormKind::rms);
  EXPECT_EQ(qwen3.norm_epsilon, 1e-6);
  const auto llama = options_of("llama", "").block;
  EXPECT_FALSE(llama.query_key_value_bias || llama.query_key_norm);
}

TEST(Qwen, RefusesWhatItHasNot) {
  for (const std::string& kind : both) {
    SCOPED_TRACE(kind);
    for (const char* more :
         {R"(, "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 0)",
          R"(, "sliding_window": 4096)", R"(, "use_sliding_window": true, "sliding_window": null)",
          R"(, "use_sliding_window": true, "sliding_window": 8192)",
          R"(, "layer_types": ["full_attention"], "attention_bias": false)"}) {
      EXPECT_EQ(options_of(kind, more).max_length, 8192) << more;
    }
    for (const auto& [more, words] :
         {std::pair{R"(, "use_sliding_window": true, "sliding_window": 4095)",
                    "'sliding_window' is 4095, expected null, or max_position_embeddings or more"},
          {R"(, "use_sliding_window": true)", "'sliding_window' is 4096 unless given"},
          {R"(, "layer_types": ["sliding_attention"])", "'layer_types' names others"},
          {R"(, "attention_bias": true)", "'attention_bias' is 1, expected 0"},
          {R"(, "num_experts": 8)", "'num_experts' is 8"},
          {R"(, "rope_scaling": {"type": "yarn", "factor": 4})", "'rope_scaling.type' is 'yarn'"},
          {R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 4})", "is 'dynamic'"},
          {R"(, "hidden_act": "tanh")", "'hidden_act' is 'tanh'"}}) {
      const auto said = file_error_of([&, m = more] { options_of(kind, m); });
      EXPECT_NE(said.find(words), said.npos) << more << ": " << said;
    }
  }
  for (const char* kind : {"qwen", "qwen2_moe", "qwen2_vl", "qwen3_moe", "qwen3_next", "Qwen2"}) {
    const auto said = file_error_of([&] { options_of(kind, ""); });
    EXPECT_NE(said.find("expected llama, mistral, qwen2 or qwen3"), said.npos) << said;
  }
}

}  // namespace
}  // namespace heed::test
