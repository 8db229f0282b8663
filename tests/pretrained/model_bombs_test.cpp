// SPDX-License-Identifier: MIT
// Model files that claim or list much are refused in at most 4 k + 1 MiB of memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include <heed/core/parallel.hpp>
#include <heed/pretrained/load_model.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/gguf_file.hpp"
#include "support/memory_limit.hpp"

namespace heed::test {
namespace {

class ModelBombs : public MemoryLimited {};

/// A Llama's metadata, with numbers that are as given.
GgufFile llama_file(std::uint32_t dim, std::uint32_t heads, std::uint32_t blocks) {
  GgufFile file;
  file.field("general.architecture", 8, gguf_text("llama"));
  const auto number = [&](const char* key, std::uint32_t value) { file.field(key, 4, raw(value)); };
  number("llama.embedding_length", dim);
  number("llama.block_count", blocks);
  number("llama.feed_forward_length", dim);
  number("llama.context_length", 1 << 24);
  number("llama.attention.head_count", heads);
  file.field("llama.attention.layer_norm_rms_epsilon", 6, raw(1e-5f));
  file.tensor("token_embd.weight", {0, 1000}, 0, 0);
  return file;
}

int read(const GgufFile& file) {
  const std::string text = file.text();
  return outcome(text.size(), [&] {
    const Gguf gguf(SharedBytes(bytes_of(text)), "x");
    load_llama<float>(gguf);
  });
}

TEST_F(ModelBombs, GgufLlamasThatClaimOrListMuch) {
  constexpr std::uint32_t most = 0xffffffff;
  for (const std::uint32_t dim : {0u, 1u, 4096u, 1u << 20, most}) {
    for (const std::uint32_t heads : {0u, 1u, 32u, most}) {
      for (const std::uint32_t blocks : {0u, 1u, 3u, 1u << 20, most}) {
        EXPECT_EQ(read(llama_file(dim, heads, blocks)), refused) << dim << " " << heads;
      }
    }
  }
  GgufFile many = llama_file(4, 1, 100'000);
  for (std::uint64_t i = 0; i < 100'000; ++i) many.tensor(short_name(i), {}, 24, 32 * i);
  many.data = std::string(32 * 100'000, '\0');
  EXPECT_EQ(read(many), refused);
}

/// Divisors of frequencies are read before the heads are known.
TEST_F(ModelBombs, GgufLlamasWithManyRotaryDivisors) {
  for (const std::uint32_t count : {2u, 1024u, 1u << 20}) {
    GgufFile file = llama_file(2 * count, 1, 1);
    file.tensor("rope_freqs.weight", {count}, 0, 0);
    for (std::uint32_t i = 0; i < count; ++i) file.data += raw(1.f);
    EXPECT_EQ(read(file), refused) << count;
  }
}

/// A Llama of eight blocks, whose matrices are zeros of type BF16.
GgufFile bfloat16_llama() {
  constexpr std::uint32_t dim = 512;
  GgufFile file = llama_file(dim, 4, 8);
  file.tensors.clear();
  file.tensor_count = 0;
  const auto add = [&](const std::string& name, std::initializer_list<std::uint64_t> shape) {
    const bool matrix = shape.size() == 2;
    file.tensor(name + ".weight", shape, matrix ? 30 : 0, file.data.size());
    std::size_t bytes = matrix ? 2 : 4;
    for (const std::uint64_t extent : shape) bytes *= extent;
    file.data.resize(file.data.size() + bytes);
  };
  add("token_embd", {dim, 32});
  add("output_norm", {dim});
  for (int i = 0; i < 8; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    for (const char* norm : {"attn_norm", "ffn_norm"}) add(block + norm, {dim});
    for (const char* matrix :
         {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
      add(block + matrix, {dim, dim});
    }
  }
  return file;
}

TEST_F(ModelBombs, PackedLlamasAreNeverWidenedAsAWhole) {
  const std::string text = bfloat16_llama().text();
  const Gguf file(SharedBytes(bytes_of(text)), "x");
  const auto in_memory_of = [&](double files, const auto& load) {  // beside one MiB
    return outcome(static_cast<std::size_t>(files / 4 * static_cast<double>(text.size())), [&] {
      set_thread_count(1);
      load();
    });
  };
  EXPECT_EQ(in_memory_of(1.3, [&] { load_packed_llama(file); }), opened);
  EXPECT_EQ(in_memory_of(1.3, [&] { load_llama<float>(file); }), out_of_memory);
}

TEST_F(ModelBombs, ConfigsThatListMuch) {
  const auto config = [](const std::string& text) {
    return outcome(text.size(), [&] {
      const ModelConfig read(text, "config.json");
      llama_options(read);
    });
  };
  const std::string outer(60, 'n');
  std::string entries, lists, texts;
  for (int i = 0; i < 1999; ++i) {
    entries += "\"" + std::to_string(i) + std::string(60, 'k') + "\":1,";
    lists += "\"" + std::to_string(i) + "\":[],";
    texts += "\"" + std::to_string(i) + "\":\"" + std::string(400, 't') + "\",";
  }
  for (std::string text : {entries, lists, texts}) {
    text.back() = '}';
    EXPECT_EQ(config("{\"" + outer + "\":{" + text + "}"), refused) << "says nothing of a model";
  }
  const std::string whole = "{\"" + outer + "\":{" + entries + "\"e\":0}, \"vocab_size\": 9, " +
                            R"("hidden_size": 4, "intermediate_size": 5, "num_hidden_layers": 1,
         "num_attention_heads": 2, "max_position_embeddings": 8})";
  EXPECT_EQ(config(whole), refused) << "2006 entries";
  std::string elements;
  for (int i = 0; i < 250'000; ++i) elements += "\"\",";
  elements.back() = ']';
  EXPECT_EQ(config("{\"layer_types\":[" + elements + "}"), refused);
  EXPECT_EQ(config(std::string(1'000'000, '[')), refused);
  EXPECT_EQ(config("{\"a\":\"" + std::string(1'000'000, 'a') + "\"}"), refused);
}

TEST_F(ModelBombs, SafetensorsOfManyNames) {
  std::string json = "{";
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    json += "\"" + short_name(i) + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},";
  }
  json.back() = '}';
  const std::string file = raw<std::uint64_t>(json.size()) + json;
  const auto options = gpt2_options(ModelConfig::read(pretrained_golden("gpt2/config.json")));
  EXPECT_EQ(outcome(file.size(),
                    [&] {
                      const Safetensors read(SharedBytes(bytes_of(file)), "x");
                      load_weights<LanguageModel<float>>(WeightFile(read), gpt2_names, options);
                    }),
            refused);
}

TEST_F(ModelBombs, IndexesThatListMuch) {
  const Folder folder("gpt2");
  std::filesystem::rename(folder.path() + "/model.safetensors", folder.path() + "/x.safetensors");
  const auto read = [&](const std::string& map) {
    const std::string text = "{\"weight_map\":{" + map + "\"\":\"x.safetensors\"}}";
    folder.write("model.safetensors.index.json", text);
    return outcome(text.size(), [&] { detail::weights_in(folder.path()); });
  };
  std::string tensors, files;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    tensors += "\"" + short_name(i) + "\":\"x.safetensors\",";
    files += "\"\":\"" + std::to_string(i) + ".safetensors\",";
  }
  EXPECT_EQ(read(tensors), refused);
  EXPECT_EQ(read(files), refused);
  EXPECT_EQ(read("\"" + std::string(4'000'000, 'a') + "\":\"x.safetensors\","), refused);
  EXPECT_EQ(read("\"\":\"" + std::string(4'000'000, 'a') + ".safetensors\","), refused);
}

}  // namespace
}  // namespace heed::test
