// SPDX-License-Identifier: MIT
#include <heed/text/tokenizer.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

/// A user's tokenizer, complete: the length of each word.
struct Lengths {
  std::vector<Index> encode(std::string_view text) const {
    return {static_cast<Index>(text.size())};
  }
  std::string decode(std::span<const Index> tokens) const {
    return std::string(static_cast<std::size_t>(tokens[0]), 'x');
  }
  Index vocab_size() const { return 100; }
};
struct NoDecode {
  std::vector<Index> encode(std::string_view) const { return {}; }
  Index vocab_size() const { return 0; }
};

static_assert(Tokenizer<Lengths> && !Tokenizer<NoDecode> && !Tokenizer<int>);

template <Tokenizer X>
std::string round_trip(const X& tokenizer, std::string_view text) {
  return tokenizer.decode(tokenizer.encode(text));
}

TEST(Tokenizer, AUsersOwnTakesPart) { EXPECT_EQ(round_trip(Lengths(), "abc"), "xxx"); }

static_assert(Tokenizer<ByteTokenizer>);

TEST(ByteTokenizer, EveryByteAndBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const auto tokens = ByteTokenizer().encode(all);
  for (Index i = 0; i < 256; ++i) EXPECT_EQ(tokens[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(ByteTokenizer().decode(tokens), all);
  EXPECT_THROW(ByteTokenizer().decode(std::vector<Index>{256}), InvalidArgument);
  EXPECT_THROW(ByteTokenizer().decode(std::vector<Index>{-1}), InvalidArgument);
}

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
  EXPECT_EQ(tokenizer.decode(std::vector<Index>{0, 2, 1}), "acb");
}

}  // namespace
}  // namespace heed
