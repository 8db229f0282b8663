// SPDX-License-Identifier: MIT
// A vocabulary of k bytes costs at most 4 k + 1 MiB of memory to read, whatever is in it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <heed/text/load_tokenizer.hpp>
#include <heed/text/tokenizer.hpp>
#include <heed/text/word_piece.hpp>

#include "support/gguf_file.hpp"
#include "support/memory_limit.hpp"
#include "support/temporary_file.hpp"

namespace heed {
namespace {

using test::gguf_text;
using test::GgufFile;
using test::opened;
using test::outcome;
using test::raw;
using test::refused;
using test::short_name;

class VocabularyBombs : public test::MemoryLimited {};

/// An array of texts as it stands in a GGUF file.
struct Texts {
  std::string bytes;
  std::uint64_t count = 0;

  void add(std::string_view text) {
    bytes += gguf_text(text);
    ++count;
  }
  std::string array() const { return raw(8u) + raw(count) + bytes; }
};

/// What comes of reading a tokenizer, with the file's own bytes under the limit too.
int read(const Texts& tokens, const Texts& merges, std::int8_t type,
         const std::string& pre = "gpt-2") {
  GgufFile file;
  file.field("tokenizer.ggml.model", 8, gguf_text("gpt2"));
  file.field("tokenizer.ggml.pre", 8, gguf_text(pre));
  file.field("tokenizer.ggml.tokens", 9, tokens.array());
  file.field("tokenizer.ggml.merges", 9, merges.array());
  file.field("tokenizer.ggml.token_type", 9,
             raw(1u) + raw(tokens.count) + std::string(tokens.count, static_cast<char>(type)));
  const std::string text = file.text();
  return outcome(text.size(), [&] {
    const Gguf gguf(SharedBytes(test::bytes_of(text)), "x");
    const auto tokenizer = load_tokenizer(gguf);
    static_cast<void>(tokenizer.decode(tokenizer.encode("ab")));
  });
}

TEST_F(VocabularyBombs, ManyShortTokens) {
  for (const std::int8_t type : {std::int8_t{1}, std::int8_t{3}}) {  // 3: every one a special token
    Texts tokens;
    for (std::uint64_t i = 0; i < 180'000; ++i) tokens.add(short_name(i));
    for (const std::string pre : {"gpt-2", "llama-bpe", "qwen2"}) {
      EXPECT_EQ(read(tokens, {}, type, pre), opened) << int{type} << pre;
    }
    Texts repeated;
    for (int i = 0; i < 400'000; ++i) repeated.add("a");
    EXPECT_EQ(read(repeated, {}, type), refused);
    Texts empty;
    for (int i = 0; i < 400'000; ++i) empty.add("");
    EXPECT_EQ(read(empty, {}, type), refused);
  }
}

TEST_F(VocabularyBombs, ManyShortMerges) {
  Texts tokens, merges;
  std::vector<std::string> before = {""};
  for (std::size_t length = 1; length <= 5; ++length) {  // all words of ten letters
    std::vector<std::string> words;
    for (const std::string& start : before) {
      for (char letter = 'a'; letter < 'k'; ++letter) words.push_back(start + letter);
    }
    for (const std::string& word : words) {
      tokens.add(word);
      for (std::size_t cut = 1; cut < length; ++cut) {
        merges.add(word.substr(0, cut) + " " + word.substr(cut));
      }
    }
    before = std::move(words);
  }
  EXPECT_GT(merges.count, 400'000u);
  EXPECT_EQ(read(tokens, merges, 1), opened);
  EXPECT_EQ(read(tokens, merges, 1, "llama-bpe"), opened);
  EXPECT_EQ(read(tokens, merges, 3), opened);
  merges.add("a a");
  EXPECT_EQ(read(tokens, merges, 1), refused);
}

TEST_F(VocabularyBombs, OneLongToken) {
  for (const std::size_t size : {3'000'000u, 4'200'000u}) {
    Texts tokens, merges;
    for (const char* token : {"a", "b"}) tokens.add(token);
    tokens.add(std::string(size, 'n'));
    EXPECT_EQ(read(tokens, {}, 1), opened);
    EXPECT_EQ(read(tokens, {}, 3), opened);
    merges.add("a " + std::string(size, 'n'));
    EXPECT_EQ(read(tokens, merges, 1), refused);
  }
}

int read_word_pieces(const std::string& text) {
  const test::TemporaryFile file;
  write_file(file.path(), std::as_bytes(std::span(text)));
  return outcome(text.size(), [&] { WordPiece::read(file.path()); });
}

TEST_F(VocabularyBombs, WordPieces) {
  std::string text = "[UNK]\n", repeated = text;
  for (std::uint64_t i = 0; i < 180'000; ++i) text += short_name(i) + "\n";
  for (int i = 0; i < 400'000; ++i) repeated += "a\n";
  EXPECT_EQ(read_word_pieces(text), opened);
  EXPECT_EQ(read_word_pieces(repeated), refused);
  EXPECT_EQ(read_word_pieces(std::string(1'000'000, '\n')), refused);
  EXPECT_EQ(read_word_pieces("[UNK]\n" + std::string(4'200'000, 'n')), opened);
}

TEST_F(VocabularyBombs, Characters) {
  std::string wide;
  for (char32_t code = 0x10000; code < 0x110000; ++code) append_utf8(wide, code);
  for (const std::string& text : {std::string(4'000'000, 'a'), wide}) {
    EXPECT_EQ(outcome(text.size(), [&] { CharacterTokenizer{text}; }), opened);
  }
}

}  // namespace
}  // namespace heed
