// SPDX-License-Identifier: MIT
#include <heed/text/load_tokenizer.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>

#include "support/file_error.hpp"
#include "support/temporary_file.hpp"
#include "text/golden_lines.hpp"

namespace heed::test {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "\"";
}

BytePairEncoding loaded(const std::string& text) { return parse_tokenizer(text, "tokenizer.json"); }

constexpr const char* gpt2_pieces =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})";
constexpr const char* smollm_pieces =
    R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})";

/// The golden vocabulary as tokenizers writes it; merges as texts or as pairs.
std::string golden_json(const std::string& pieces, bool pairs) {
  const Gguf file = Gguf::open(text_golden("small_bpe.gguf"));
  std::string vocabulary, merges, added;
  Index id = 0;
  for (const auto token : file.values<std::string_view>("tokenizer.ggml.tokens")) {
    if (id < 3) {  // the last of them in the vocabulary too, as some files have it
      added += (id > 0 ? ", " : "") + ("{\"id\": " + std::to_string(id)) +
               ", \"content\": " + quoted(token) + ", \"special\": true}";
    }
    if (id >= 2) {
      vocabulary += (id > 2 ? ", " : "") + quoted(token) + ": " + std::to_string(id);
    }
    ++id;
  }
  for (const auto merge : file.values<std::string_view>("tokenizer.ggml.merges")) {
    if (!merges.empty()) merges += ", ";
    const auto space = merge.find(' ');
    merges +=
        pairs ? "[" + quoted(merge.substr(0, space)) + ", " + quoted(merge.substr(space + 1)) + "]"
              : quoted(merge);
  }
  return "{\"version\": \"1.0\", \"truncation\": null, \"added_tokens\": [" + added +
         "], \"normalizer\": null, \"pre_tokenizer\": " + pieces +
         ", \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
         "\"dropout\": null, \"continuing_subword_prefix\": \"\", \"end_of_word_suffix\": null, "
         "\"byte_fallback\": false, \"vocab\": {" +
         vocabulary + "}, \"merges\": [" + merges + "]}}";
}

TEST(TokenizerJson, GivesTheTokensOfTheOriginal) {
  for (const bool pairs : {false, true}) {
    for (const auto& [pieces, ids] :
         {std::pair{gpt2_pieces, "small_gpt2.ids"}, std::pair{smollm_pieces, "small_smollm.ids"}}) {
      const auto tokenizer = loaded(golden_json(pieces, pairs));
      EXPECT_TRUE(tokenizer.is_special(2));
      EXPECT_FALSE(tokenizer.is_special(3));
      expect_golden(ids, [&](const std::string& line) {
        return tokenizer.encode(line, SpecialTokens::recognized);
      });
    }
  }
}

/// A tokenizer of two letters with this instead of one of its parts.
std::string small(const std::string& from = "", const std::string& to = "") {
  std::string text =
      R"({"added_tokens": [{"id": 3, "content": "<end>"}], "normalizer": null,
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(TokenizerJson, ReadsTheSmallestThereIs) {
  const TemporaryFile file;
  const std::string text = small();
  write_file(file.path(), std::as_bytes(std::span(text)));
  const auto tokenizer = load_tokenizer(file.path());
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.encode("abb<end>", SpecialTokens::recognized), (std::vector<Index>{2, 1, 3}));
}

TEST(TokenizerJson, RefusesWhatItWouldReadWrongly) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return file_error_of([&] { loaded(small(from, to)); });
  };
  const auto expect = [&](const std::string& from, const std::string& to, const char* word) {
    EXPECT_NE(refusal(from, to).find(word), std::string::npos) << to << ": " << refusal(from, to);
  };
  expect("BPE", "Unigram", "Unigram");
  expect("\"type\": \"BPE\", ", "", "type");
  expect("\"normalizer\": null", R"("normalizer": {"type": "NFC"})", "normalizer");
  expect("\"ByteLevel\"", "\"Metaspace\"", "Metaspace");
  expect("\"add_prefix_space\": false", "\"add_prefix_space\": true", "add_prefix_space");
  expect("\"pre_tokenizer\"", "\"others\"", "ByteLevel");
  expect("\"vocab\"", R"("byte_fallback": true, "vocab")", "byte_fallback");
  expect("\"vocab\"", R"("ignore_merges": true, "vocab")", "ignore_merges");
  expect("\"vocab\"", R"("end_of_word_suffix": "</w>", "vocab")", "</w>");
  expect("\"id\": 3", "\"id\": 4", "number 4 of 4");
  expect("\"id\": 3", "\"id\": 2", "one number");
  expect("\"id\": 3, ", "", "number -1");
  expect("\"b\": 1", "\"b\": 0", "one number");
  expect("\"b\": 1", "\"a\": 1", "twice");
  expect("[\"a b\"]", "[[\"a\"]]", "a merge of 1");
  expect("[\"a b\"]", "[\"a c\"]", "a c");
  expect("\"normalizer\": null", "\"model\": {}", "type");
  expect("\"normalizer\": null", "\"added_tokens\": []", "twice");
  EXPECT_EQ(refusal("BPE", "WordLevel").find("tokenizer.json: byte "), 0u);
  EXPECT_THROW(load_tokenizer("/no/such/tokenizer.json"), FileError);
}

TEST(TokenizerJson, AFileThatBreaksOffIsRefused) {
  const std::string text = small();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(loaded(text.substr(0, size)), FileError) << size;
  }
}

}  // namespace
}  // namespace heed::test
