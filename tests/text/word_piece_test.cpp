// SPDX-License-Identifier: MIT
#include <heed/text/word_piece.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include <heed/text/tokenizer.hpp>

#include "support/file_bytes.hpp"
#include "support/models.hpp"
#include "support/temporary_file.hpp"
#include "text/golden_lines.hpp"

namespace heed {
namespace {

static_assert(Tokenizer<WordPiece>);

const std::vector<std::string> small = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able",
                                        "a",     "##b",   ".",     "中",    "é",  "e",     "A"};

std::vector<Index> encode(const std::string& text, const WordPieceOptions& options = {}) {
  return WordPiece(small, options).encode(text);
}
using Ids = std::vector<Index>;

TEST(WordPiece, EqualsTheOriginalOnTheSmallVocabulary) {
  const auto tokenizer = WordPiece::read(test::text_golden("small_vocab.txt"));
  test::expect_golden("small_vocab.ids", [&](const std::string& line) {
    return tokenizer.encode(line, SpecialTokens::recognized);
  });
}

TEST(WordPiece, EqualsTheOriginalOnTheRealVocabulary) {
  HEED_NEEDS_MODELS();
  const auto tokenizer = WordPiece::read(test::model_file("minilm/vocab.txt"));
  EXPECT_EQ(tokenizer.vocab_size(), 30522);
  test::expect_golden("minilm.ids", [&](const std::string& line) {
    return tokenizer.encode(line, SpecialTokens::recognized);
  });
}

TEST(WordPiece, LongestPiecesFirst) {
  EXPECT_EQ(encode("unaffable"), (Ids{4, 5, 6}));
  EXPECT_EQ(encode("ab abb"), (Ids{7, 8, 7, 8, 8}));
  EXPECT_EQ(encode("unx"), (Ids{1})) << "a word with one unknown piece is unknown";
  EXPECT_EQ(encode("a.a 中中a"), (Ids{7, 9, 7, 10, 10, 7}));
  EXPECT_EQ(encode(""), Ids{});
  EXPECT_EQ(encode(" \n\t "), Ids{});
}

/// U+2B820 to U+2B91F are no words of their own, as in BERT's code; their neighbors are.
TEST(WordPiece, TheGapInWhatBertCallsChinese) {
  const std::string before = "\xf0\xab\xa0\x9d", first = "\xf0\xab\xa0\xa0";
  const std::string last = "\xf0\xab\xa4\x9f", behind = "\xf0\xab\xa4\xa0";
  const WordPiece tokenizer({"[UNK]", "a", "##a", before, first, last, behind});
  EXPECT_EQ(tokenizer.encode(before + "a"), (Ids{3, 1}));
  EXPECT_EQ(tokenizer.encode(first + "a"), (Ids{4, 2}));
  EXPECT_EQ(tokenizer.encode(last + "a"), (Ids{5, 2}));
  EXPECT_EQ(tokenizer.encode(behind + "a"), (Ids{6, 1}));
}

TEST(WordPiece, Options) {
  EXPECT_EQ(encode("É A"), (Ids{12, 7}));
  EXPECT_EQ(encode("É A", {.strip_accents = false}), (Ids{11, 7}));
  EXPECT_EQ(encode("é A", {.lower_case = false, .strip_accents = false}), (Ids{11, 13}));
  EXPECT_EQ(encode("中a", {.split_cjk = false}), Ids{1});
  EXPECT_EQ(encode("abbb", {.longest_word = 4}), (Ids{7, 8, 8, 8}));
  EXPECT_EQ(encode("abbbb", {.longest_word = 4}), Ids{1});
  EXPECT_EQ(encode("aq a", {.longest_word = std::numeric_limits<Index>::max()}), (Ids{1, 7}));
}

TEST(WordPiece, SpecialTokensAreTextUnlessAskedFor) {
  const WordPiece tokenizer(small);
  EXPECT_EQ(tokenizer.encode("a[SEP]a"), (Ids{7, 1, 1, 1, 7}));
  EXPECT_EQ(tokenizer.encode("a[SEP]a", SpecialTokens::recognized), (Ids{7, 3, 7}));
  EXPECT_EQ(tokenizer.encode("[sep]", SpecialTokens::recognized), (Ids{1, 1, 1}));
}

TEST(WordPiece, MoreTokensMayBeNames) {
  const WordPiece tokenizer(small, {.special = {4, 11}});
  EXPECT_EQ(tokenizer.encode("aunéA[SEP]", SpecialTokens::recognized), (Ids{7, 4, 11, 7, 3}));
  EXPECT_EQ(tokenizer.encode("aunéA[SEP]"), encode("aunéA[SEP]"));
  EXPECT_THROW(WordPiece(small, {.special = {14}}), InvalidArgument);
  EXPECT_THROW(WordPiece(small, {.special = {-1}}), InvalidArgument);
}

TEST(WordPiece, SentencesAndBack) {
  const WordPiece tokenizer(small);
  EXPECT_EQ(tokenizer.encode_sentence("unaffable a"), (Ids{2, 4, 5, 6, 7, 3}));
  EXPECT_EQ(tokenizer.encode_sentence("unaffable a", 4), (Ids{2, 4, 5, 3}));
  EXPECT_EQ(tokenizer.encode_sentence("", 2), (Ids{2, 3}));
  EXPECT_THROW(tokenizer.encode_sentence("a", 1), InvalidArgument);
  EXPECT_EQ(tokenizer.decode(Ids{2, 4, 5, 6, 7, 9, 3}), "[CLS] unaffable a . [SEP]");
  EXPECT_THROW(tokenizer.decode(Ids{14}), InvalidArgument);
  EXPECT_THROW(tokenizer.decode(Ids{-1}), InvalidArgument);
  EXPECT_EQ(tokenizer.token("[PAD]"), 0);
  EXPECT_EQ(tokenizer.name(5), "##aff");
  EXPECT_THROW(tokenizer.token("[MASK]"), InvalidArgument);
}

TEST(WordPiece, AnyBytesAreEncoded) {
  EXPECT_EQ(encode("a\xff\xc3"), Ids{7}) << "what is not UTF-8 is left out, as U+FFFD is";
  EXPECT_EQ(encode(std::string("a\0b\x7f", 4)), (Ids{7, 8}));
}

TEST(WordPiece, VocabulariesThatAreNone) {
  EXPECT_EQ(test::error_of([] { WordPiece::read("/no/such/file"); }),
            "/no/such/file: No such file or directory");
  EXPECT_THROW(WordPiece({"a"}), InvalidArgument);
  EXPECT_THROW(WordPiece({"[UNK]", "a", "a"}), InvalidArgument);
  const test::TemporaryFile file;
  write_file(file.path(), test::bytes_of("[UNK]\na\na\n"));
  EXPECT_EQ(test::error_of([&] { WordPiece::read(file.path()); }),
            file.path() + ": byte 8: 'a' again");
  write_file(file.path(), test::bytes_of("[UNK]\nabc\nb\nabc"));
  EXPECT_EQ(test::error_of([&] { WordPiece::read(file.path()); }),
            file.path() + ": vocabulary: 'abc' twice, as token 1 and 3");
  write_file(file.path(), test::bytes_of("[UNK]\n" + std::string(5000000, '\n')));
  EXPECT_EQ(test::error_of([&] { WordPiece::read(file.path()); }),
            file.path() + ": byte 7: '' again");
  write_file(file.path(), test::bytes_of("[UNK]\r\na \r\nb"));
  EXPECT_EQ(WordPiece::read(file.path()).encode("b a"), (Ids{2, 1}));
  EXPECT_EQ(WordPiece::parse("[UNK]\na\nb", "x").encode("b a"), (Ids{2, 1}));
  EXPECT_EQ(WordPiece::parse("[UNK]\na\nb", "x").vocab_size(), 3);
  EXPECT_EQ(WordPiece::parse("[UNK]\na\nb\n", "x").vocab_size(), 3) << "no token after the last";
  EXPECT_EQ(test::error_of([] { WordPiece::parse("a", "x"); }), "x: vocabulary: no token '[UNK]'");
}

}  // namespace
}  // namespace heed
