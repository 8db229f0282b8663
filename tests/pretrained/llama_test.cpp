// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_model.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include <heed/generation/generate.hpp>
#include <heed/generation/session.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/file.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/training/optimizers.hpp>

#include "pretrained/golden_gguf.hpp"
#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"
#include "support/gguf_file.hpp"
#include "support/models.hpp"
#include "support/temporary_file.hpp"

namespace heed::test {
namespace {

TEST(Llama, LogitsEqualTransformers) {
  const auto tokens = pretrained_tokens("llama/tokens");
  const auto golden = pretrained_array<float, 3>("llama/out");
  const auto model = load_llama<float>(pretrained_golden("llama"));
  EXPECT_LT(largest_difference(model.forward(tokens, masks::Causal{}), golden), 1e-5);
  const auto wide = load_llama<double>(pretrained_golden("llama"));
  EXPECT_LT(largest_difference(wide.forward(tokens, masks::Causal{}), golden), 1e-5);
}

TEST(Llama, NamesMayLackThePrefixOfAModelWithAHead) {
  const Safetensors file = load_safetensors(pretrained_golden("llama/model.safetensors"));
  SafetensorsWriter writer;
  for (const auto& entry : file.entries()) {
    const std::string_view name = entry.name;
    writer.add_bytes(name.starts_with("model.") ? name.substr(6) : name, entry.type, entry.shape(),
                     file.bytes(name));
  }
  const TemporaryFile bare;
  writer.write(bare.path());
  const auto options = llama_options(ModelConfig::read(pretrained_golden("llama/config.json")));
  const auto model =
      load_weights<LanguageModel<float>>(weights_of(bare.path()), llama_names, options);
  EXPECT_LT(largest_difference(model.forward(pretrained_tokens("llama/tokens"), masks::Causal{}),
                               pretrained_array<float, 3>("llama/out")),
            1e-5);
}

TEST(Llama, AMissingHeadIsNamedAsFilesNameIt) {
  const Safetensors file = load_safetensors(pretrained_golden("llama/model.safetensors"));
  SafetensorsWriter writer;
  for (const auto& entry : file.entries()) {
    if (entry.name == "lm_head.weight") continue;
    writer.add_bytes(entry.name, entry.type, entry.shape(), file.bytes(entry.name));
  }
  const WeightFile headless(Safetensors(SharedBytes(writer.bytes()), "x"));
  const auto options = llama_options(ModelConfig::read(pretrained_golden("llama/config.json")));
  EXPECT_EQ(
      file_error_of([&] { load_weights<LanguageModel<float>>(headless, llama_names, options); }),
      "x: 1 weight of the model and the file differ: no 'lm_head.weight'");
}

TEST(Llama, WhatAFileDoesNotSay) {
  const auto config = [](const std::string& more) {
    return llama_options(ModelConfig(
        R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 1, "intermediate_size": 12, "max_position_embeddings": 16)" +
            more + "}",
        "config.json"));
  };
  EXPECT_FALSE(config("").tied_head);
  EXPECT_TRUE(config(R"(, "tie_word_embeddings": true)").tied_head);
  EXPECT_EQ(config("").block.rotary.base, 10000);
  const std::string base = R"(, "rope_theta": 7, "rope_scaling": {"rope_theta": 100})";
  EXPECT_EQ(config(base).block.rotary.base, 100) << "as transformers reads it";
  EXPECT_EQ(config("").block.kv_heads, 2);
  EXPECT_EQ(llama_options(golden_as_gguf({.has_base = false})).block.rotary.base, 10000);
}

TEST(Llama, GgufHoldsTheSameModel) {
  const auto model = load_llama<float>(golden_as_gguf());
  EXPECT_FALSE(model.options.tied_head);
  EXPECT_LT(largest_difference(model.forward(pretrained_tokens("llama/tokens"), masks::Causal{}),
                               pretrained_array<float, 3>("llama/out")),
            1e-5);
}

TEST(Llama, RefusesAGgufWithWhatItHasNot) {
  const auto refusal = [](const GgufChanges& changes) {
    return file_error_of([&] { load_llama<float>(golden_as_gguf(changes)); });
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_NE(refusal({.architecture = "mamba"}).find("mamba"), std::string::npos);
  EXPECT_NE(refusal({.context_length = 4294967295}).find("4294967295"), std::string::npos);
  for (const float epsilon : {0.f, -1.f, infinity, std::nanf("")}) {
    EXPECT_NE(refusal({.norm_epsilon = epsilon}).find("epsilon"), std::string::npos) << epsilon;
  }
  for (const float base : {0.f, infinity, std::nanf("")}) {
    EXPECT_NE(refusal({.rotary_base = base}).find("base"), std::string::npos) << base;
  }
  EXPECT_EQ(refusal({.other_type = "blk.1.ffn_up.weight"}),
            "golden.gguf: 1 weight of the model and the file differ: "
            "'blk.1.ffn_up.weight' is of type I32, which is not read");
}

TEST(Llama, NoFieldOfAGgufThatChangesTheComputationIsPassedOver) {
  struct Case {
    std::string_view key;
    std::uint32_t type;
    std::string neutral, other;
  };
  constexpr std::uint32_t u32 = 4, f32 = 6, flag = 7, text = 8;
  const auto none = gguf_text("none");
  const Case cases[] = {
      {"llama.attention.sliding_window", u32, raw(64u), raw(63u)},
      {"llama.attention.sliding_window", u32, raw(0u), raw(1u)},
      {"llama.attention.scale", f32, raw(0.5f), raw(0.25f)},  // head_dim is 4
      {"llama.attention.value_length", u32, raw(4u), raw(3u)},
      {"llama.attention.causal", flag, "\1", std::string(1, '\0')},
      {"llama.attention.clamp_kqv", f32, raw(0.f), raw(8.f)},
      {"llama.attention.max_alibi_bias", f32, raw(0.f), raw(8.f)},
      {"llama.attn_logit_softcapping", f32, raw(0.f), raw(50.f)},
      {"llama.final_logit_softcapping", f32, raw(0.f), raw(30.f)},
      {"llama.logit_scale", f32, raw(1.f), raw(0.5f)},
      {"llama.residual_scale", f32, raw(1.f), raw(std::nanf(""))},
      {"llama.embedding_scale", f32, raw(0.f), raw(12.f)},
      {"llama.expert_count", u32, raw(0u), raw(8u)},
      {"llama.expert_shared_count", u32, raw(0u), raw(1u)},
      {"llama.leading_dense_block_count", u32, raw(0u), raw(1u)},
      {"llama.use_parallel_residual", flag, std::string(1, '\0'), "\1"},
      {"llama.rope.scaling.type", text, none, gguf_text("yarn")},
      {"llama.rope.scaling.type", text, none, gguf_text("longrope")},
      {"llama.rope.scaling.attn_factor", f32, raw(1.f), raw(2.f)},
      {"llama.vocab_size", u32, raw(29u), raw(28u)},
      {"llama.expert_count", u32, raw(0u), ""},
  };
  const auto refusal = [](const Case& one, const std::string& value) {
    return file_error_of(
        [&] { llama_options(golden_as_gguf({.key = one.key, .type = one.type, .value = value})); });
  };
  for (const Case& one : cases) {
    EXPECT_EQ(refusal(one, one.neutral), "") << one.key;
    if (one.other.empty()) continue;
    const std::string said = refusal(one, one.other);
    EXPECT_EQ(said.find("golden.gguf: byte "), 0u) << said;
    EXPECT_NE(said.find("'" + std::string(one.key) + "' is "), std::string::npos) << said;
  }
  for (const Case& unknown : {Case{"llama.rope.dimension_sections", 9, "", raw(5u) + raw(0ull)},
                              Case{"llama.attention.temperature_length", u32, "", raw(1u)},
                              Case{"llama.expert_count", text, "", none}}) {
    EXPECT_NE(refusal(unknown, unknown.other).find(std::string(unknown.key)), std::string::npos);
  }
  EXPECT_EQ(refusal({"general.quantization_version", u32, "", ""}, raw(2u)), "");
}

TEST(Llama, RefusesWhatItHasNot) {
  const std::string sizes =
      R"({"vocab_size": 9, "hidden_size": 4, "intermediate_size": 5, "num_hidden_layers": 1,
          "num_attention_heads": 2, "max_position_embeddings": 8)";
  const auto options = llama_options(
      ModelConfig(sizes + R"(, "rope_theta": 5e5, "rope_scaling": null})", "config.json"));
  EXPECT_EQ(options.block.kv_heads, 2);
  EXPECT_EQ(options.block.rotary.base, 5e5);
  for (const char* more :
       {R"(, "rope_scaling": {"type": "dynamic", "factor": 2})", R"(, "attention_bias": true)",
        R"(, "rope_parameters": {"rope_type": "llama3"})", R"(, "mlp_bias": true)",
        R"(, "model_type": "mixtral")", R"(, "sliding_window": 7)",
        R"(, "sliding_window": 4, "use_sliding_window": true)", R"(, "partial_rotary_factor": 0.5)",
        R"(, "rope_parameters": {"partial_rotary_factor": 0.25})", R"(, "rms_norm_eps": 0)",
        R"(, "rope_theta": 0)", R"(, "layer_types": ["full_attention", "sliding_attention"])",
        R"(, "rope_scaling": {"factor": 2})", R"(, "final_logit_softcapping": 30.0)",
        R"(, "rope_parameters": {"rope_type": "default"}, "rope_scaling": {"type": "yarn"})"}) {
    EXPECT_THROW(llama_options(ModelConfig(sizes + more + "}", "config.json")), FileError) << more;
  }
  for (const char* more :
       {R"(, "model_type": "llama")", R"(, "sliding_window": null)", R"(, "sliding_window": 8)",
        R"(, "sliding_window": 4, "use_sliding_window": false)",
        R"(, "rope_parameters": {"rope_theta": 7}, "rope_scaling": {"rope_theta": 7})",
        R"(, "partial_rotary_factor": 1.0)", R"(, "layer_types": ["full_attention"])",
        R"(, "final_logit_softcapping": null, "num_experts": 0, "attention_bias": false)"}) {
    EXPECT_EQ(llama_options(ModelConfig(sizes + more + "}", "config.json")).max_length, 8) << more;
  }
  for (const auto& [more, words] :
       {std::pair{R"("rope_parameters": {"factor": 8, "rope_type": "longrope"})",
                  "'rope_parameters.rope_type' is 'longrope', expected default"},
        {R"("rope_scaling": {"factor": 2, "type": "dynamic"})", "'rope_scaling.type' is 'dynamic'"},
        {R"("rope_parameters": {"rope_theta": 7}, "rope_scaling": {"rope_theta": 3})",
         "'rope_parameters.rope_theta' is 7, and 'rope_scaling' has 3"}}) {
    const auto said = file_error_of(
        [&, m = more] { llama_options(ModelConfig(sizes + ", " + m + "}", "config.json")); });
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
  for (const char* length : {"0", "16777217", "1e12"}) {
    const std::string text = sizes.substr(0, sizes.rfind('8')) + length + "}";
    EXPECT_NE(
        file_error_of([&] { llama_options(ModelConfig(text, "config.json")); }).find("length"),
        std::string::npos)
        << length;
  }
  EXPECT_THROW(load_llama<float>(pretrained_golden("none")), FileError);
}

/// prompts, tokens and continuations of tests/golden/pretrained/smollm2.json.
struct Continuations {
  std::vector<std::vector<Index>> prompts, continuations;
};
Continuations golden_continuations() {
  const auto bytes = read_file(pretrained_golden("smollm2.json"));
  detail::JsonReader json({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                          "smollm2.json");
  Continuations golden;
  json.object([&](const std::string& key) {
    if (key == "prompts") return json.skip();
    auto& rows = key == "tokens" ? golden.prompts : golden.continuations;
    json.array([&] {
      rows.emplace_back();
      json.array([&] { rows.back().push_back(static_cast<Index>(json.integer())); });
    });
  });
  return golden;
}

double difference_from_golden(const Tensor<float, 1>& logits, const Tensor<float, 2>& golden,
                              Index row) {
  double most = 0;
  for (Index i = 0; i < golden.extent(1); ++i) {
    most = std::max(most, std::abs(static_cast<double>(logits(64 * i) - golden(row, i))));
  }
  return most;
}

/// Greedy continuations equal, and the largest difference of logits.
double check_continuations(const LanguageModel<float>& model) {
  const auto golden = golden_continuations();
  const auto logits = pretrained_array<float, 2>("smollm2_logits");
  EXPECT_EQ(golden.prompts.size(), 10u);
  double most = 0;
  for (std::size_t i = 0; i < golden.prompts.size(); ++i) {
    Session<float> session(model, {.max_length = 256});
    const auto count = static_cast<Index>(golden.continuations[i].size());
    EXPECT_GE(count, 24);
    Tensor<float, 1> last;
    Index calls = 0;
    const auto step = [&](std::span<const Index> tokens) {
      last = session(tokens);
      if (calls++ == 0) {
        most = std::max(most, difference_from_golden(last, logits, 2 * static_cast<Index>(i)));
      }
      return last;
    };
    Random random(1);
    const auto written = generate(step, golden.prompts[i], Sampler{samplers::Greedy{}},
                                  {.max_tokens = count}, random);
    EXPECT_EQ(written.tokens, golden.continuations[i]) << "prompt " << i;
    most = std::max(most, difference_from_golden(last, logits, 2 * static_cast<Index>(i) + 1));
  }
  return most;
}

LanguageModel<float> packed_smollm2(Products products) {
  return load_packed_llama(Gguf::open(model_file("smollm2.gguf")), products);
}

TEST(Llama, SmolLM2ContinuesAsTransformersDoes) {
  HEED_NEEDS_MODELS();
  const double most = check_continuations(packed_smollm2(Products::exact));
  EXPECT_LT(most, 2e-3);
  RecordProperty("largest_difference_of_logits", std::to_string(most));
}

TEST(Llama, SmolLM2WithInt16ProductsWritesTheSame) {
  HEED_NEEDS_MODELS();
  EXPECT_LT(check_continuations(packed_smollm2(Products::int16)), 2e-2);
}

/// SmolLM2 with its weights rounded to bfloat16, for products in bfloat16.
LanguageModel<float> smollm2_in_bfloat16() {
  auto model = load_llama<float>(Gguf::open(model_file("smollm2.gguf")));
  const Tokens tokens({1, 3}, {504, 3575, 282});
  set_products(model, Products::bfloat16);
  const auto rounded_in_the_call = model.forward(tokens, masks::Causal{});
  model.pack();
  EXPECT_TRUE(same_bits(model.forward(tokens, masks::Causal{}), rounded_in_the_call));
  return model;
}

/// Every token behind the ten prompts is the one that float writes, but for ties: bfloat16 has 8
/// bits.
TEST(Llama, SmolLM2WithBfloat16ProductsWritesTheSameButForTies) {
  HEED_NEEDS_MODELS();
  const auto golden = golden_continuations();
  const auto exact = packed_smollm2(Products::exact), narrow = smollm2_in_bfloat16();
  const SessionOptions options{.batch = 10, .max_length = 256};
  Session<float> session(exact, options), narrow_session(narrow, options);
  auto logits = session.prefill(golden.prompts),
       narrow_logits = narrow_session.prefill(golden.prompts);
  Index others = 0;
  for (std::size_t step = 0; step < 24; ++step) {
    std::vector<Index> next;
    for (Index item = 0; item < 10; ++item) {
      const Index token = golden.continuations[static_cast<std::size_t>(item)][step];
      const float* row = &narrow_logits(item, 0);
      const Index written = std::max_element(row, row + narrow_logits.extent(1)) - row;
      if (written != token) {
        EXPECT_LT(logits(item, token) - logits(item, written), 0.05f) << item << ", step " << step;
        ++others;
      }
      next.push_back(token);
    }
    logits = session.step(next);
    narrow_logits = narrow_session.step(next);
  }
  EXPECT_LE(others, 2);
}

/// Without `products`, packed as floats.
void check_cached(std::optional<Products> products) {
  const auto file = Gguf::open(model_file("smollm2.gguf"));
  auto model = products ? load_packed_llama(file, *products) : load_llama<float>(file);
  if (!products) model.pack();
  auto sequences = golden_continuations().prompts;
  sequences.resize(4);
  Session<float> session(model, {.batch = 4, .max_length = 256, .page_size = 96});
  auto logits = session.prefill(sequences);
  for (int turn = 0; turn < 4; ++turn) {
    std::vector<Index> next;
    for (std::size_t item = 0; item < 4; ++item) {
      auto& own = sequences[item];
      Tokens tokens({1, static_cast<Index>(own.size())});
      std::copy(own.begin(), own.end(), tokens.data());
      const auto whole = model.forward(tokens, masks::Causal{});
      const auto row = static_cast<Index>(item);
      ASSERT_TRUE(same_bits(
          Tensor<float, 1>::copy_of(whole.view().select(0, 0).select(0, tokens.extent(1) - 1)),
          Tensor<float, 1>::copy_of(std::as_const(logits).view().select(0, row))))
          << "sequence " << item << ", turn " << turn;
      const float* first = logits.data() + row * logits.extent(1);
      next.push_back(std::max_element(first, first + logits.extent(1)) - first);
      own.push_back(next.back());
    }
    logits = session.step(next);
  }
}

TEST(Llama, SmolLM2CachedEqualsFullPassAndBatchEqualsEachAlone) {
  HEED_NEEDS_MODELS();
  check_cached(std::nullopt);
}

TEST(Llama, SmolLM2WithInt16ProductsCachedEqualsFullPassToo) {
  HEED_NEEDS_MODELS();
  check_cached(Products::int16);
}

TEST(Llama, SmolLM2WithWeightsAsStoredHasTheBitsOfFloats) {
  HEED_NEEDS_MODELS();
  const auto file = Gguf::open(model_file("smollm2.gguf"));
  auto model = load_llama<float>(file);
  model.pack();
  const auto stored = load_packed_llama(file);
  EXPECT_TRUE(stored.input.embedding.packed.is_quantized());
  EXPECT_TRUE(stored.blocks[29].feed_forward.down.packed.is_quantized());
  Session<float> a(model, {.max_length = 64}), b(stored, {.max_length = 64});
  const auto prompt = golden_continuations().prompts[0];
  EXPECT_TRUE(same_bits(a(prompt), b(prompt)));
  for (const Index token : {5, 600, 49151}) {
    EXPECT_TRUE(same_bits(a(std::vector<Index>{token}), b(std::vector<Index>{token})));
  }
}

/// The golden Llama in a folder, its matrices of type `matrices`.
class LlamaFolder {
 public:
  explicit LlamaFolder(ElementType matrices) {
    std::filesystem::create_directory(path());
    std::filesystem::copy(pretrained_golden("llama/config.json"), path() + "/config.json");
    const auto model = load_llama<float>(pretrained_golden("llama"));
    const auto source = weights_of(pretrained_golden("llama/model.safetensors"));
    const detail::WeightMatch names(source, llama_names);
    SafetensorsWriter writer;
    for_each_parameter(
        [&](std::string_view name, const auto& parameter) {
          const bool matrix = parameter.rank() == 2;
          writer.add(names.name_of(name).name, parameter, matrix ? matrices : ElementType::f32);
        },
        model);
    writer.write(path() + "/model.safetensors");
  }
  ~LlamaFolder() {
    std::filesystem::remove(path() + "/config.json");
    std::filesystem::remove(path() + "/model.safetensors");
  }
  const std::string& path() const { return place_.path(); }

 private:
  TemporaryFile place_;
};

std::vector<const Linear<float>*> layers_of(const LanguageModel<float>& model) {
  std::vector<const Linear<float>*> layers;
  for (const auto& block : model.blocks) {
    const auto& projections = block.attention.projections;
    for (const auto* layer :
         {&*projections.query, &*projections.key, &*projections.value, &block.attention.out,
          &*block.feed_forward.gate, &block.feed_forward.up, &block.feed_forward.down}) {
      layers.push_back(layer);
    }
  }
  if (model.head.own) layers.push_back(&*model.head.own);
  return layers;
}

/// A packed model has the logits of the model with float weights, in a session too, and nothing
/// but the packed weights, which take `width` bytes each.
void check_packed(const LanguageModel<float>& packed, const LanguageModel<float>& model,
                  Index width) {
  const auto tokens = pretrained_tokens("llama/tokens");
  EXPECT_TRUE(
      same_bits(packed.forward(tokens, masks::Causal{}), model.forward(tokens, masks::Causal{})));
  Session<float> a(model, {.max_length = 16}), b(packed, {.max_length = 16});
  const std::vector<Index> prompt = {3, 1, 4, 1, 5};
  EXPECT_TRUE(same_bits(a(prompt), b(prompt)));
  for (const Index token : {9, 2, 6}) {
    EXPECT_TRUE(same_bits(a(std::vector<Index>{token}), b(std::vector<Index>{token})));
  }
  for (const auto* layer : layers_of(packed)) {
    EXPECT_TRUE(layer->weight.empty());
    const Index rows = layer->packed.rows(), whole = (rows + 31) / 32 * 32;
    const Index columns = (layer->packed.columns() + 63) / 64 * 64;  // whole panels
    EXPECT_EQ(layer->packed.byte_count(), columns * (width == 2 ? 2 * whole : 4 * rows));
  }
}

TEST(Llama, PackedWeightsOfEveryTypeHaveTheBitsOfFloats) {
  for (const auto& [type, width] :
       {std::pair{ElementType::bf16, 2}, {ElementType::f16, 2}, {ElementType::f32, 4}}) {
    SCOPED_TRACE(name_of(type));
    const LlamaFolder folder(type);
    check_packed(load_packed_llama(folder.path()), load_llama<float>(folder.path()), width);
  }
  for (const auto& [type, width] : {std::pair{30u, 2}, {1u, 2}, {0u, 4}}) {
    SCOPED_TRACE(type);
    for (const char* without : {"", "output.weight"}) {
      const auto file = golden_as_gguf({.without = without, .matrices = type});
      const auto packed = load_packed_llama(file);
      EXPECT_EQ(packed.options.tied_head, *without != 0);
      check_packed(packed, load_llama<float>(file), width);
    }
  }
}

TEST(Llama, Bfloat16ProductsAreCloseAndTheSameInAnyCall) {
  const LlamaFolder folder(ElementType::bf16);
  const auto rounded = load_packed_llama(folder.path(), Products::bfloat16);
  const auto tokens = pretrained_tokens("llama/tokens");
  const auto all = rounded.forward(tokens, masks::Causal{});
  const double difference =
      largest_difference(all, load_packed_llama(folder.path()).forward(tokens, masks::Causal{}));
  EXPECT_GT(difference, 1e-5);
  EXPECT_LT(difference, 2e-2);
  Session<float> session(rounded, {.max_length = 64});
  for (Index i = 0; i < tokens.extent(1); ++i) {
    EXPECT_TRUE(same_bits(session(std::vector<Index>{tokens(0, i)}),
                          Tensor<float, 1>::copy_of(all.view().select(0, 0).select(0, i))));
  }
}

TEST(Llama, PackedWeightsAreForInference) {
  const auto file = golden_as_gguf({.matrices = 30});
  auto packed = load_packed_llama(file);
  const auto expected = packed.forward(pretrained_tokens("llama/tokens"), masks::Causal{});
  EXPECT_THROW(parameter_count(packed), InvalidArgument);
  EXPECT_THROW(set_zero(packed), InvalidArgument);
  EXPECT_THROW(AdamW{packed}, InvalidArgument);
  packed.pack();
  EXPECT_TRUE(
      same_bits(packed.forward(pretrained_tokens("llama/tokens"), masks::Causal{}), expected));
  EXPECT_EQ(
      file_error_of([&] { load_packed_llama(golden_as_gguf({.without = "blk.1.ffn_up.weight"})); }),
      "golden.gguf: 1 weight of the model and the file differ: no 'blk.1.ffn_up.weight'");
}

}  // namespace
}  // namespace heed::test
