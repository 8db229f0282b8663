// SPDX-License-Identifier: MIT
#include <heed/text/tokenizer.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

static_assert(Tokenizer<CharacterTokenizer>);

TEST(CharacterTokenizer, CharactersInTheOrderOfTheirCodes) {
  const CharacterTokenizer tokenizer("été 😀\nba中");
  EXPECT_EQ(tokenizer.characters(), "\n abté中😀");
  EXPECT_EQ(tokenizer.vocab_size(), 8);
  EXPECT_EQ(tokenizer.encode("a中\né"), (std::vector<Index>{2, 6, 0, 5}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("bébé 😀")), "bébé 😀");
  EXPECT_EQ(CharacterTokenizer(tokenizer.characters()).characters(), tokenizer.characters());
  EXPECT_EQ(CharacterTokenizer("").vocab_size(), 0);
}

TEST(CharacterTokenizer, WhatItDoesNotKnowIsNamed) {
  const CharacterTokenizer tokenizer("abc");
  try {
    tokenizer.encode("abé");
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "encode: byte 2: 'é' is not in the vocabulary");
  }
  EXPECT_THROW(tokenizer.encode("a\xff"), InvalidArgument);
  EXPECT_THROW(CharacterTokenizer("\xff"), InvalidArgument);
  EXPECT_THROW(tokenizer.decode(std::vector<Index>{3}), InvalidArgument);
  EXPECT_THROW(tokenizer.decode(std::vector<Index>{-1}), InvalidArgument);
}

}  // namespace
}  // namespace heed
