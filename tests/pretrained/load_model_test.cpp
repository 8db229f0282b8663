// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_model.hpp>

#include <string>
#include <vector>

#include <heed/generation/generate.hpp>
#include <heed/generation/session.hpp>
#include <heed/io/file.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/pretrained/sentence_encoder.hpp>
#include <heed/text/tokenizer.hpp>

#include "pretrained/golden_gguf.hpp"
#include "pretrained/pretrained_files.hpp"
#include "support/attention_cases.hpp"
#include "support/temporary_file.hpp"

namespace heed::test {
namespace {

static_assert(Tokenizer<ModelTokenizer>);

const std::string byte_pairs =
    R"({"added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";

TEST(LoadModel, TheFolderSaysWhichModelItIs) {
  for (const char* name : {"gpt2", "llama"}) {
    const Folder folder(name);
    folder.write("tokenizer.json", byte_pairs);
    const auto loaded = load_model(folder.path());
    EXPECT_EQ(loaded.architecture, name);
    const std::string tokens = std::string(name) + "/tokens";
    EXPECT_LT(largest_difference(
                  loaded.language_model().forward(pretrained_tokens(tokens), masks::Causal{}),
                  pretrained_array<float, 3>(std::string(name) + "/out")),
              1e-5);
    EXPECT_EQ(loaded.tokenizer->encode("abb"), (std::vector<Index>{2, 1}));
    EXPECT_EQ(loaded.tokenizer->decode(std::vector<Index>{2, 1}), "abb");
    EXPECT_THROW(loaded.encoder(), ShapeError);
    const LanguageModel<float> alone = load_model(folder.path()).language_model();
    EXPECT_EQ(alone.blocks.size(), loaded.language_model().blocks.size());
    const auto packed = load_packed_model(folder.path());
    EXPECT_EQ(packed.tokenizer->encode("abb"), (std::vector<Index>{2, 1}));
    EXPECT_FALSE(packed.language_model().blocks[0].feed_forward.up.packed.empty());
    EXPECT_TRUE(
        same_bits(packed.language_model().forward(pretrained_tokens(tokens), masks::Causal{}),
                  loaded.language_model().forward(pretrained_tokens(tokens), masks::Causal{})));
    const auto narrow = load_packed_model(folder.path(), Products::bfloat16);
    auto rounded = load_model(folder.path());
    set_products(rounded.language_model(), Products::bfloat16);
    EXPECT_TRUE(narrow.language_model().blocks[0].feed_forward.up.packed.is_quantized());
    EXPECT_TRUE(
        same_bits(narrow.language_model().forward(pretrained_tokens(tokens), masks::Causal{}),
                  rounded.language_model().forward(pretrained_tokens(tokens), masks::Causal{})));
  }
}

TEST(LoadModel, ALlamaMayHaveTheTokenizerOfLlama3) {
  const Folder folder("llama");
  folder.write("tokenizer.json",
               R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
       "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3})"
               R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
      "model": {"ignore_merges": true, "merges": [],
                "vocab": {"a": 0, "1": 1, "11": 2, "111": 3}}})");
  EXPECT_EQ(load_model(folder.path()).tokenizer->encode("11111a"), (std::vector<Index>{3, 2, 0}));
}

TEST(LoadModel, ABertComesWithItsWordPieces) {
  const Folder folder("bert");
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nA\n##b\n";
  folder.write("vocab.txt", vocabulary);
  const auto loaded = load_model<double>(folder.path());
  EXPECT_EQ(loaded.architecture, "bert");
  EXPECT_EQ(loaded.tokenizer->encode("A ab"), (std::vector<Index>{4, 4, 7}));
  EXPECT_EQ(loaded.encoder().forward(Tokens({1, 2}, {4, 7}), masks::Full{}).extents(),
            (Extents<3>{1, 2, 12}));
  EXPECT_THROW(loaded.language_model(), ShapeError);
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(load_model(folder.path()).tokenizer->encode("A ab"), (std::vector<Index>{6, 4, 7}));
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {"7": {"content": "##b"}, "8": {"content": "[E1]"}}})");
  const auto refusal = file_error_of([&] { load_model(folder.path()); });
  EXPECT_NE(refusal.find("'added_tokens_decoder.8.content' is '[E1]', which vocab.txt has not"),
            std::string::npos)
      << refusal;
}

/// The golden model in a folder whose configuration ties the head, and what its file lacks and has.
template <class T>
LanguageModel<T> tied(const std::string& name, const std::string& without,
                      const Tensor<float, 2>& head, bool packed = false) {
  const Folder folder(name);
  const std::string path = folder.path() + "/model.safetensors";
  const auto options = R"({"tie_word_embeddings": true, )";
  const auto config = read_file(folder.path() + "/config.json");
  std::string text(reinterpret_cast<const char*>(config.data()), config.size());
  text.replace(text.find("\"tie_word_embeddings\""), 21, "\"tie_of_before\"");
  folder.write("config.json", text.replace(0, 1, options));
  SafetensorsWriter writer;
  const Safetensors golden(SharedBytes(read_file(path)), path);
  for (const auto& entry : golden.entries()) {
    if (entry.name == without || entry.name == "lm_head.weight") continue;
    writer.add_bytes(entry.name, entry.type, entry.shape(), golden.bytes(entry.name));
  }
  if (!head.empty()) writer.add("lm_head.weight", head);
  writer.write(path);
  if constexpr (std::is_same_v<T, float>) {
    if (packed) return std::move(load_packed_model(folder.path()).language_model());
  }
  return std::move(load_model<T>(folder.path()).language_model());
}

TEST(LoadModel, ATiedHeadThatDiffersIsTheModelsOwnAndOneAloneIsTheEmbedding) {
  for (const std::string name : {"gpt2", "llama"}) {
    const std::string table =
        name == "gpt2" ? "transformer.wte.weight" : "model.embed_tokens.weight";
    const auto file = weights_of(pretrained_golden(name + "/model.safetensors"));
    const auto embedding = file.tensor<float, 2>(table);
    auto other = embedding;
    other(3, 1) += 1;
    const auto tokens = pretrained_tokens(name + "/tokens");
    for (const bool packed : {false, true}) {
      const auto logits = [&](const std::string& without, const Tensor<float, 2>& head) {
        return tied<float>(name, without, head, packed).forward(tokens);
      };
      auto untied = tied<float>(name, "", {});
      EXPECT_FALSE(untied.head.own);
      EXPECT_TRUE(same_bits(logits("", {}), untied.forward(tokens)));
      EXPECT_TRUE(same_bits(logits("", embedding), untied.forward(tokens)));
      EXPECT_TRUE(same_bits(logits(table, embedding), untied.forward(tokens)));
      Random random(1);
      untied.head = OutputHead<float>(12, 29, false, random);
      untied.head.own->weight = other;
      EXPECT_TRUE(same_bits(logits("", other), untied.forward(tokens)));
    }
    EXPECT_FALSE(tied<double>(name, "", embedding).head.own);
    const auto own = tied<double>(name, "", other);
    EXPECT_FALSE(own.options.tied_head);
    EXPECT_EQ(own.head.own->weight(3, 1), static_cast<double>(other(3, 1)));
    EXPECT_NE(file_error_of([&] { tied<float>(name, table, {}); }).find("no '" + table),
              std::string::npos);
    EXPECT_NE(file_error_of([&] {
                tied<float>(name, "", Tensor<float, 2>({12, 29}));
              }).find("(12, 29)"),
              std::string::npos);
  }
}

TEST(LoadModel, AGgufHoldsBoth) {
  const TemporaryFile file;
  const auto list = [](std::initializer_list<std::string_view> texts) {
    std::string value = raw<std::uint32_t>(8) + raw<std::uint64_t>(texts.size());
    for (const auto text : texts) value += gguf_text(text);
    return value;
  };
  GgufFile tokenizer;
  tokenizer.field("tokenizer.ggml.model", 8, gguf_text("gpt2"));
  tokenizer.field("tokenizer.ggml.tokens", 9, list({"a", "b", "ab"}));
  tokenizer.field("tokenizer.ggml.merges", 9, list({"a b"}));
  const auto write = [&](const GgufChanges& changes) {
    const std::string text = golden_gguf_text(changes);
    write_file(file.path(), std::as_bytes(std::span(text)));
  };
  write({.more = tokenizer.fields, .more_count = tokenizer.field_count});
  auto loaded = load_model(file.path());
  EXPECT_EQ(loaded.architecture, "llama");
  const auto prompt = loaded.tokenizer->encode("abab");
  Session<float> session(loaded.language_model());
  Random random(1);
  const auto written = generate(session, prompt, Sampler(), {.max_tokens = 3}, random);
  EXPECT_EQ(written.tokens.size(), 3u);
  write({});
  EXPECT_FALSE(load_model(file.path()).tokenizer.has_value());
  write({.architecture = "mamba"});
  const auto refusal = file_error_of([&] { load_model(file.path()); });
  EXPECT_NE(refusal.find("'mamba', expected llama, qwen2 or qwen3"), std::string::npos) << refusal;
  write({.architecture = "qwen2",
         .more = tokenizer.fields,
         .more_count = tokenizer.field_count,
         .golden = "qwen2"});
  loaded = load_model(file.path());
  EXPECT_EQ(loaded.architecture, "llama");
  EXPECT_EQ(loaded.tokenizer->encode("abab"), prompt);
  EXPECT_TRUE(loaded.language_model().blocks[0].attention.projections.query->bias);
}

TEST(LoadModel, ABertMayHaveItsWordPiecesInATokenizerJson) {
  const Folder folder("bert");
  folder.write("tokenizer.json", R"({"normalizer": {"type": "BertNormalizer", "lowercase": false},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece",
      "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "[CLS]": 3, "[SEP]": 4,
                                      "[PAD]": 5}}})");
  EXPECT_EQ(load_model(folder.path()).tokenizer->encode("A ab"), (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(SentenceEncoder<float>::read(folder.path()).tokenizer().vocab_size(), 6);
  folder.write("tokenizer.json", R"({"model": {"type": "Unigram"}})");
  const auto refusal = file_error_of([&] { load_model(folder.path()); });
  EXPECT_NE(refusal.find("'Unigram', expected 'WordPiece'"), std::string::npos) << refusal;
}

TEST(LoadModel, SaysWhichModelsThereAre) {
  const Folder folder("gpt2");
  EXPECT_FALSE(load_model(folder.path()).tokenizer.has_value());
  folder.write("config.json", R"({"model_type": "mamba"})");
  const auto refusal = [&] { return file_error_of([&] { load_model(folder.path()); }); };
  EXPECT_NE(refusal().find(
                "'model_type' is 'mamba', expected bert, gpt2, llama, mistral, qwen2 or qwen3"),
            std::string::npos)
      << refusal();
  folder.write("config.json", "{}");
  EXPECT_NE(refusal().find("expected bert, gpt2, llama, mistral, qwen2 or qwen3"),
            std::string::npos)
      << refusal();
  EXPECT_THROW(load_model("/no/such/model"), FileError);
}

TEST(LoadModel, SaysWhichFilesAreExpected) {
  const Folder folder("gpt2");
  const auto refusal = [&](const std::string& path) {
    return file_error_of([&] { load_model(folder.path() + path); });
  };
  const std::string weights = "/model.safetensors";
  EXPECT_EQ(refusal(weights),
            folder.path() + weights +
                ": the weights alone, expected the folder of a model or a GGUF file");
  std::filesystem::remove(folder.path() + weights);
  EXPECT_EQ(refusal(""), folder.path() + weights + ": No such file or directory");
  for (const char* other : {"/pytorch_model.bin.index.json", "/pytorch_model.bin"}) {
    folder.write(other, "{}");
    EXPECT_EQ(refusal(""), folder.path() + other +
                               ": not read, expected model.safetensors, or several files and "
                               "model.safetensors.index.json");
  }
}

TEST(LoadModel, RefusesATokenizerThatIsNotTheModels) {
  const Folder folder("gpt2");
  folder.write("tokenizer.json", "{}");
  EXPECT_THROW(load_model(folder.path()), FileError);
  std::string tokens = "\"a\": 0, \"b\": 1, \"ab\": 2", large = byte_pairs;
  std::string more = tokens;
  for (Index id = 3; id < 200; ++id) {
    more += ", \"a" + std::to_string(id) + "\": " + std::to_string(id);
  }
  large.replace(large.find(tokens), tokens.size(), more);
  folder.write("tokenizer.json", large);
  const auto refusal = file_error_of([&] { load_model(folder.path()); });
  EXPECT_NE(refusal.find("a tokenizer of 200 tokens"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace heed::test
