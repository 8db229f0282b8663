// SPDX-License-Identifier: MIT
#include <heed/text/byte_pair_encoding.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed {
namespace {

std::vector<std::string> pieces(std::string_view text, PreTokenizer kind = PreTokenizer::gpt2) {
  std::vector<std::string> result;
  for_each_piece(text, kind, [&](std::string_view piece) { result.emplace_back(piece); });
  return result;
}
using Pieces = std::vector<std::string>;

TEST(PreTokenizer, WordsNumbersAndTheRestTakeTheSpaceBefore) {
  EXPECT_EQ(pieces("Hello world 2024 !? été"), (Pieces{"Hello", " world", " 2024", " !?", " été"}));
  EXPECT_EQ(pieces("a1_b"), (Pieces{"a", "1", "_", "b"}));
  EXPECT_EQ(pieces(""), Pieces{});
}

TEST(PreTokenizer, Contractions) {
  EXPECT_EQ(pieces("I'll we've it's DON'T"),
            (Pieces{"I", "'ll", " we", "'ve", " it", "'s", " DON", "'", "T"}));
  EXPECT_EQ(pieces("'sx ''s 's"), (Pieces{"'s", "x", " ''", "s", " '", "s"}));
}

TEST(PreTokenizer, WhiteSpaceLeavesItsLastToWhatFollows) {
  EXPECT_EQ(pieces("a  b"), (Pieces{"a", " ", " b"}));
  EXPECT_EQ(pieces("a\n\nb"), (Pieces{"a", "\n", "\n", "b"}));
  EXPECT_EQ(pieces("a \t"), (Pieces{"a", " \t"}));
  EXPECT_EQ(pieces("a\u3000\u3000b"), (Pieces{"a", "\u3000", "\u3000", "b"}));
  EXPECT_EQ(pieces(" "), Pieces{" "});
  EXPECT_EQ(pieces(" \n a"), (Pieces{" \n", " a"}));
}

TEST(PreTokenizer, DigitsAlone) {
  EXPECT_EQ(pieces("ab 12c", PreTokenizer::smollm), (Pieces{"ab", " ", "1", "2", "c"}));
  EXPECT_EQ(pieces("a  ½x", PreTokenizer::smollm), (Pieces{"a", "  ", "½", "x"}));
  EXPECT_EQ(pieces("12", PreTokenizer::smollm), (Pieces{"1", "2"}));
}

TEST(PreTokenizer, BytesThatAreNoCharacterBelongToTheRest) {
  EXPECT_EQ(pieces("a\xff!\xc3 b"), (Pieces{"a", "\xff!\xc3", " b"}));
}

}  // namespace
}  // namespace heed
