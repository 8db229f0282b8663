// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_weights.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include <heed/io/safetensors.hpp>
#include <heed/pretrained/load_model.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"
#include "support/gguf_file.hpp"

namespace heed::test {
namespace {

TEST(WeightFile, OneFaceForBothFormats) {
  const auto safetensors = weights_of(pretrained_golden("llama/model.safetensors"));
  const WeightFile gguf(Gguf::open(std::string(HEED_TEST_DATA) + "/gguf/all_types.gguf"));
  for (const auto* file : {&safetensors, &gguf}) {
    ASSERT_FALSE(file->names().empty());
    for (const auto& name : file->names()) {
      EXPECT_TRUE(file->contains(name));
      EXPECT_FALSE(file->shape(name).empty()) << name;
      EXPECT_FALSE(file->type(name).empty()) << name;
    }
    EXPECT_FALSE(file->contains("no such weight"));
    EXPECT_THROW(file->shape("no such weight"), FileError);
    EXPECT_GT(file->bytes(), 100u);
  }
  EXPECT_NE(gguf.name().find("all_types.gguf"), std::string::npos);
  const auto norm = safetensors.tensor<float, 1>("model.norm.weight");
  EXPECT_EQ(norm.extents(), (Extents<1>{12}));
  EXPECT_NE(norm(0), 0);
}

TEST(WeightFile, SaysWhichTypesItReads) {
  const WeightFile gguf(Gguf::open(std::string(HEED_TEST_DATA) + "/gguf/all_types.gguf"));
  int readable = 0;
  for (const auto& name : gguf.names()) {
    if (gguf.shape(name).size() != 2) continue;
    readable += gguf.is_readable<double>(name) ? 1 : 0;
    EXPECT_EQ(file_error_of([&] { gguf.tensor<double, 2>(name); }).empty(),
              gguf.is_readable<double>(name))
        << gguf.type(name);
  }
  EXPECT_GT(readable, 2);
  const auto safetensors = weights_of(pretrained_golden("llama/model.safetensors"));
  EXPECT_EQ(safetensors.type("model.norm.weight"), "F32");
  EXPECT_TRUE(safetensors.is_readable<double>("model.norm.weight"));
  EXPECT_FALSE(safetensors.is_readable<std::int64_t>("model.norm.weight"));
}

/// A GGUF file of one tensor.
WeightFile gguf_with(std::initializer_list<std::uint64_t> shape, std::uint32_t type,
                     const std::string& data) {
  GgufFile file;
  file.tensor("t", shape, type, 0);
  file.data = data;
  return WeightFile(Gguf(SharedBytes(bytes_of(file.text())), "x"));
}

TEST(WeightFile, FindsWeightsThatAreNotFiniteWhenAsked) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto data = [](Index count, Index at, float value) {
    std::string text;
    for (Index i = 0; i < count; ++i) text += raw(i == at ? value : 1.f);
    return text;
  };
  for (const Index at : {0, 1, 1023, 1024, 2999}) {
    const auto bad = gguf_with({1000, 3}, 0, data(3000, at, std::nanf("")));
    EXPECT_EQ(file_error_of([&] { bad.check_finite(); }),
              "x: byte " + std::to_string(96 + 4 * at) + ": tensor 't': a weight is nan");
  }
  EXPECT_EQ(file_error_of([&] { gguf_with({30}, 0, data(30, -1, 0)).check_finite(); }), "");
  EXPECT_EQ(file_error_of([&] { gguf_with({30}, 26, data(30, 1, infinity)).check_finite(); }), "")
      << "integers";
  const auto doubles = [](double last) { return raw(0.1) + raw(1e300) + raw(last); };
  EXPECT_EQ(file_error_of([&] { gguf_with({3}, 28, doubles(-1e-300)).check_finite(); }), "");
  EXPECT_EQ(file_error_of([&] { gguf_with({3}, 28, doubles(HUGE_VAL)).check_finite(); }),
            "x: byte 80: tensor 't': a weight is inf");
  const auto exact = gguf_with({3}, 28, doubles(-1e-300)).tensor<double, 1>("t");
  EXPECT_EQ(exact(0), 0.1);
  EXPECT_EQ(exact(1), 1e300);
  EXPECT_EQ(exact(2), -1e-300);
  // Q8_0: the second block's scale is half precision's infinity.
  std::string blocks(2 * 34, '\1');
  blocks[34] = 0;
  blocks[35] = 0x7c;
  EXPECT_EQ(file_error_of([&] { gguf_with({64}, 8, blocks).check_finite(); }),
            "x: byte 98: tensor 't': a weight is inf");
  SafetensorsWriter writer;
  writer.add("a", Tensor<double, 2>({2, 2}, {1, 1e300, 3, -HUGE_VAL}));
  writer.add("i", Tensor<std::int64_t, 1>({1}, {7}));
  const Safetensors read(SharedBytes(writer.bytes()), "x");
  const auto byte = read.entry("a").begin + 24;
  EXPECT_EQ(file_error_of([&] { WeightFile(read).check_finite(); }),
            "x: byte " + std::to_string(byte) + ": tensor 'a': a weight is -inf");
  weights_of(pretrained_golden("llama/model.safetensors")).check_finite();
}

}  // namespace
}  // namespace heed::test

namespace heed {
namespace {

TEST(WeightNames, NumbersOfBlocks) {
  const auto check = [](const char* name, const char* pattern, const char* number) {
    const auto is = detail::numbered(name);
    EXPECT_EQ(is.pattern, pattern);
    EXPECT_EQ(is.number, number);
  };
  check("blocks.12.attention_norm.weight", "blocks.*.attention_norm.weight", "12");
  check("h.0.ln_1.bias", "h.*.ln_1.bias", "0");
  check("model.layers.3.mlp.2.x", "model.layers.*.mlp.2.x", "3");
  check("ln_f.weight", "ln_f.weight", "");
  check("a.7", "a.7", "");
  check("a..b.1x.c", "a..b.1x.c", "");
  check("", "", "");
}

TEST(WeightNames, EveryNameStandsOnceInItsTable) {
  for (const auto& names : {bert_names, gpt2_names, llama_names, gguf_llama_names}) {
    std::set<std::string_view> ours, theirs;
    for (const auto& layer : names.layers) {
      EXPECT_TRUE(ours.insert(layer.ours).second) << layer.ours;
      EXPECT_TRUE(theirs.insert(layer.theirs).second) << layer.theirs;
      EXPECT_EQ(layer.ours.find('*') == layer.ours.npos,
                layer.theirs.find('*') == layer.theirs.npos);
    }
  }
}

}  // namespace
}  // namespace heed

namespace heed::test {
namespace {

LanguageModelOptions options_of_golden() {
  return gpt2_options(ModelConfig::read(pretrained_golden("gpt2/config.json")));
}
LanguageModel<float> load(const WeightFile& file, const LanguageModelOptions& options) {
  return load_weights<LanguageModel<float>>(file, gpt2_names, options);
}

TEST(LoadWeights, EveryParameterHasItsWeights) {
  const auto file = weights_of(pretrained_golden("gpt2/model.safetensors"));
  const auto model = load(file, options_of_golden());
  std::size_t bytes = 0;
  for_each_parameter(
      [&](std::string_view, const auto& parameter) {
        bytes += static_cast<std::size_t>(parameter.size()) * sizeof(float);
      },
      model);
  EXPECT_EQ(bytes, file.bytes());
  const auto norm = file.tensor<float, 1>("transformer.h.1.ln_2.bias");
  EXPECT_TRUE(same_bits(*model.blocks[1].feed_forward_residual.norm.bias, norm));
  const auto up = file.tensor<float, 2>("transformer.h.1.mlp.c_fc.weight");
  EXPECT_EQ(model.blocks[1].feed_forward.up.weight(3, 2), up(2, 3)) << "theirs are transposed";
}

TEST(LoadWeights, EveryDropoutHasAStreamOfItsOwn) {
  const auto file = weights_of(pretrained_golden("gpt2/model.safetensors"));
  auto options = options_of_golden();
  options.block.dropout = options.block.attention_dropout = 0.1;
  const auto model = load(file, options);
  std::set<std::uint32_t> streams;
  Index count = 0;
  detail::for_each_stream(model, [&](std::uint32_t stream) { streams.insert(stream), ++count; });
  EXPECT_EQ(streams.size(), static_cast<std::size_t>(count));
  EXPECT_GE(count, 1 + 3 * options.layers);
}

TEST(LoadWeights, OneErrorListsEverything) {
  const auto file = weights_of(pretrained_golden("gpt2/model.safetensors"));
  SafetensorsWriter writer;
  for (const auto& name : file.names()) {
    if (name == "transformer.h.1.ln_2.bias") continue;
    const auto shape = file.shape(name);
    if (name == "transformer.wpe.weight") {
      writer.add(name, Tensor<float, 2>({shape[0], shape[1] + 1}));
    } else if (shape.size() == 1) {
      writer.add(name, Tensor<float, 1>({shape[0]}));
    } else {
      writer.add(name, Tensor<float, 2>({shape[0], shape[1]}));
    }
  }
  writer.add("transformer.h.2.ln_1.bias", Tensor<float, 1>({12}));
  writer.add("transformer.h.0.attn.bias", Tensor<float, 1>({12}));  // of no use, and known so
  const std::string path = ::testing::TempDir() + "load_weights_test.safetensors";
  writer.write(path);
  EXPECT_EQ(file_error_of([&] { load(weights_of(path), options_of_golden()); }),
            path +
                ": 3 weights of the model and the file differ: "
                "'transformer.wpe.weight' is (13, 13), expected (13, 12); "
                "no 'transformer.h.1.ln_2.bias'; "
                "'transformer.h.2.ln_1.bias' is not the model's");
}

TEST(LoadWeights, SizesThatAreOnlyClaimedAreNotAllocated) {
  const auto file = weights_of(pretrained_golden("gpt2/model.safetensors"));
  constexpr Index huge = Index{1} << 39;
  auto options = options_of_golden();
  options.vocab_size = huge;
  options.max_length = huge;
  EXPECT_NE(file_error_of([&] { load(file, options); }).find("2 weights"), std::string::npos);
  options = options_of_golden();
  options.layers = huge;
  EXPECT_THROW(load(file, options), FileError);
  options.layers = 0;
  EXPECT_THROW(load(file, options), FileError);
  options = options_of_golden();
  options.block.heads = 5;
  EXPECT_THROW(load(file, options), FileError);
}

TEST(LoadWeights, ABlockOfMoreWeightsThanTheFileIsNotAllocated) {
  const std::string path = ::testing::TempDir() + "load_weights_block.safetensors";
  SafetensorsWriter writer;
  writer.add("model.embed_tokens.weight", Tensor<float, 2>({10, 1000}));
  writer.write(path);
  const auto file = weights_of(path);
  auto options = LanguageModelOptions::llama();
  options.vocab_size = 10;
  // Each matrix of a block would fit into the file, all seven would not.
  options.block.model_dim = options.block.hidden_dim = 100;
  const auto error = [&] {
    return file_error_of([&] { load_weights<LanguageModel<float>>(file, llama_names, options); });
  };
  EXPECT_EQ(error(), path + ": a block of dimension 100 cannot be in 40000 bytes");
  for (auto member : {&BlockOptions::model_dim, &BlockOptions::hidden_dim, &BlockOptions::heads,
                      &BlockOptions::kv_heads, &BlockOptions::head_dim}) {
    options = LanguageModelOptions::llama();
    options.block.model_dim = options.block.hidden_dim = options.block.head_dim = 4;
    options.block.*member = Index{1} << 39;
    EXPECT_NE(error().find("cannot be in"), std::string::npos) << error();
  }
  options = LanguageModelOptions::llama();
  options.block.hidden_dim = Index{1} << 39;
  EXPECT_NE(error().find("dimension 0"), std::string::npos) << error();
  options.block.model_dim = 4;
  options.block.heads = 0;
  EXPECT_NE(error().find("0 heads"), std::string::npos) << error();
}

TEST(LoadWeights, ListsFiftyProblemsAndCountsTheRest) {
  SafetensorsWriter writer;
  for (int i = 0; i < 3000; ++i) {
    writer.add("empty." + std::to_string(i), Tensor<float, 1>({i == 0 ? 2000 : 0}));
  }
  const std::string path = ::testing::TempDir() + "load_weights_many.safetensors";
  writer.write(path);
  auto options = options_of_golden();
  options.layers = 3000;
  const auto error = file_error_of([&] { load(weights_of(path), options); });
  // 12 weights a block, 2 tables, 2 of the last norm, and the file's own.
  EXPECT_NE(error.find(": 39004 weights of the model"), std::string::npos) << error;
  EXPECT_NE(error.find("no 'wte.weight'; no 'wpe.weight'"), std::string::npos) << error;
  EXPECT_TRUE(error.ends_with("; and 38954 more")) << error;
  EXPECT_EQ(std::count(error.begin(), error.end(), ';'), 50);
  EXPECT_LT(error.size(), 4000u);
}

TEST(LoadWeights, TypesThatAreNotReadAreInTheSameList) {
  const auto file = weights_of(pretrained_golden("gpt2/model.safetensors"));
  SafetensorsWriter writer;
  for (const auto& name : file.names()) {
    const auto shape = file.shape(name);
    if (name == "transformer.h.1.ln_2.bias") {
      writer.add(name, Tensor<std::int64_t, 1>({shape[0]}));
    } else if (name == "transformer.h.1.ln_1.bias") {
      writer.add(name, Tensor<std::int64_t, 1>({shape[0] + 1}));
    } else if (shape.size() == 1) {
      writer.add(name, Tensor<double, 1>({shape[0]}));
    } else {
      writer.add(name, Tensor<float, 2>({shape[0], shape[1]}));
    }
  }
  const std::string path = ::testing::TempDir() + "load_weights_types.safetensors";
  writer.write(path);
  EXPECT_EQ(file_error_of([&] { load(weights_of(path), options_of_golden()); }),
            path +
                ": 2 weights of the model and the file differ: "
                "'transformer.h.1.ln_1.bias' is (13), expected (12); "
                "'transformer.h.1.ln_2.bias' is of type I64, which is not read");
}

/// One head of keys for all queries, and hardly anything but the block in the file.
TEST(LoadWeights, AsFewKeyHeadsAsThereCanBe) {
  auto options = LanguageModelOptions::llama();
  options.vocab_size = 3;
  options.block.model_dim = 8;
  options.block.heads = 4;
  options.block.kv_heads = 1;
  options.layers = 1;
  options.block.hidden_dim = 2;
  options.max_length = 1;
  options.tied_head = true;
  EXPECT_NO_THROW(heed::detail::checked_options(options, "a file")) << "texts of one token";
  Random random(1);
  const LanguageModel<float> model(options, random);
  const auto golden = weights_of(pretrained_golden("llama/model.safetensors"));
  const heed::detail::WeightMatch names(golden, llama_names);
  SafetensorsWriter writer;
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        writer.add(names.name_of(name).name, parameter);
      },
      model);
  const std::string path = ::testing::TempDir() + "load_weights_heads.safetensors";
  writer.write(path);
  const auto back = load_weights<LanguageModel<float>>(weights_of(path), llama_names, options);
  EXPECT_TRUE(same_bits(back.input.embedding.weight, model.input.embedding.weight));
}

}  // namespace
}  // namespace heed::test
