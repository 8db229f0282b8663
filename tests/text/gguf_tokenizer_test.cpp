// SPDX-License-Identifier: MIT
#include <heed/text/load_tokenizer.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/gguf_file.hpp"
#include "support/models.hpp"
#include "text/golden_lines.hpp"

namespace heed {
namespace {

BytePairVocabulary small_vocabulary() {
  const Gguf file = Gguf::open(test::text_golden("small_bpe.gguf"));
  BytePairVocabulary vocabulary;
  for (const auto token : file.values<std::string_view>("tokenizer.ggml.tokens"))
    vocabulary.tokens.emplace_back(token);
  for (const auto merge : file.values<std::string_view>("tokenizer.ggml.merges"))
    vocabulary.merges.emplace_back(merge);
  vocabulary.special = {0, 1, 2};
  return vocabulary;
}

/// Ids as golden, and back to the very bytes.
void expect_equal(const BytePairEncoding& tokenizer, const std::string& name) {
  test::expect_golden(name, [&](const std::string& line) {
    const auto tokens = tokenizer.encode(line, SpecialTokens::recognized);
    std::string known;
    for (const char byte : line) {
      if (tokenizer.has_byte(static_cast<unsigned char>(byte))) known += byte;
    }
    EXPECT_EQ(tokenizer.decode(tokens), known);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(line)), known);
    return tokens;
  });
}

TEST(GgufTokenizer, EqualsTheOriginalOnTheSmallVocabulary) {
  expect_equal(load_tokenizer(Gguf::open(test::text_golden("small_bpe.gguf"))), "small_gpt2.ids");
  BytePairVocabulary vocabulary = small_vocabulary();
  vocabulary.pre_tokenizer = PreTokenizer::smollm;
  expect_equal(BytePairEncoding(vocabulary), "small_smollm.ids");
}

TEST(GgufTokenizer, EqualsTheOriginalOnTheRealVocabulary) {
  HEED_NEEDS_MODELS();
  const auto tokenizer = load_tokenizer(Gguf::open(test::model_file("smollm2.gguf")));
  EXPECT_EQ(tokenizer.vocab_size(), 49152);
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_FALSE(tokenizer.is_special(17));
  EXPECT_FALSE(tokenizer.has_byte(4)) << "this vocabulary lacks some control characters";
  expect_equal(tokenizer, "smollm2.ids");
}

/// A file with this metadata, read as a tokenizer.
std::string verdict(const std::string& model, const std::string& pre, const std::string& types) {
  test::GgufFile file;
  file.field("tokenizer.ggml.model", 8, test::gguf_text(model));
  file.field("tokenizer.ggml.pre", 8, test::gguf_text(pre));
  file.field("tokenizer.ggml.tokens", 9,
             test::raw(8u) + test::raw<std::uint64_t>(3) + test::gguf_text("a") +
                 test::gguf_text("b") + test::gguf_text("ab"));
  file.field("tokenizer.ggml.merges", 9,
             test::raw(8u) + test::raw<std::uint64_t>(1) + test::gguf_text("a b"));
  file.field("tokenizer.ggml.token_type", 9, types);
  return test::error_of([&] {
    const auto tokenizer = load_tokenizer(Gguf(SharedBytes(test::bytes_of(file.text())), "x"));
    EXPECT_EQ(tokenizer.encode("abc"), std::vector<Index>{2});
    EXPECT_EQ(tokenizer.encode("ab", SpecialTokens::recognized), (std::vector<Index>{0, 1}));
  });
}

TEST(GgufTokenizer, ErrorsNameTheField) {
  const std::string types =
      test::raw(5u) + test::raw<std::uint64_t>(3) + test::raw(3) + test::raw(4) + test::raw(1);
  EXPECT_EQ(verdict("gpt2", "gpt-2", types), "accepted");
  EXPECT_EQ(verdict("llama", "gpt-2", types),
            "x: byte 56: 'tokenizer.ggml.model' is 'llama', expected 'gpt2'");
  EXPECT_EQ(verdict("gpt2", "qwen2", types),
            "x: byte 98: 'tokenizer.ggml.pre' is 'qwen2', expected 'gpt-2' or 'smollm'");
  EXPECT_EQ(verdict("gpt2", "smollm", test::raw(5u) + test::raw<std::uint64_t>(1) + test::raw(1)),
            "x: byte 290: 'tokenizer.ggml.token_type' has 1 types for 3 tokens");
  EXPECT_EQ(verdict("gpt2", "smollm", test::raw(6u) + test::raw<std::uint64_t>(0)),
            "x: byte 290: 'tokenizer.ggml.token_type' is f32, expected an integer");
  test::GgufFile empty;
  empty.field("tokenizer.ggml.model", 8, test::gguf_text("gpt2"));
  empty.field("tokenizer.ggml.tokens", 9,
              test::raw(8u) + test::raw<std::uint64_t>(2) + std::string(16, '\0'));
  empty.field("tokenizer.ggml.merges", 9, test::raw(8u) + test::raw<std::uint64_t>(0));
  EXPECT_EQ(
      test::error_of([&] { load_tokenizer(Gguf(SharedBytes(test::bytes_of(empty.text())), "x")); }),
      "x: byte 113: 'tokenizer.ggml.tokens' make no tokenizer: vocabulary: '' twice, as token 0 "
      "and 1");
  EXPECT_EQ(test::error_of([] {
              load_tokenizer(Gguf(SharedBytes(test::bytes_of(test::GgufFile().text())), "x"));
            }),
            "x: no field 'tokenizer.ggml.model'");
}

}  // namespace
}  // namespace heed
