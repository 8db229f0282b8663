// SPDX-License-Identifier: MIT
#include <heed/text/byte_pair_encoding.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <heed/text/tokenizer.hpp>

namespace heed {
namespace {

static_assert(Tokenizer<BytePairEncoding>);
using Ids = std::vector<Index>;

/// A token for every byte, some merges, a special token.
BytePairVocabulary vocabulary() {
  BytePairVocabulary result;
  const detail::ByteLetters letters;
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<char>(byte);
    result.tokens.push_back(letters.write({&value, 1}));
  }
  for (const char* token : {"he", "ll", "hell", "Ġhe", "lo", "<end>", "<end>!"})
    result.tokens.emplace_back(token);
  result.merges = {"h e", "l l", "he ll", "Ġ he", "l o"};
  result.special = {261, 262};
  return result;
}

TEST(BytePairEncoding, MergesByRank) {
  const BytePairEncoding tokenizer(vocabulary());
  EXPECT_EQ(tokenizer.encode("hello"), (Ids{258, 'o'}));
  EXPECT_EQ(tokenizer.encode(" hell"), (Ids{' ', 258})) << "'he ll' comes before 'Ġ he'";
  EXPECT_EQ(tokenizer.encode(" help"), (Ids{259, 'l', 'p'}));
  EXPECT_EQ(tokenizer.encode("llll"), (Ids{257, 257}));
  EXPECT_EQ(tokenizer.encode("lll"), (Ids{257, 'l'})) << "the leftmost first";
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.text(259), " he");
}

TEST(BytePairEncoding, SpecialTokensAreTextUnlessAskedFor) {
  const BytePairEncoding tokenizer(vocabulary());
  EXPECT_EQ(tokenizer.encode("a<end>"), (Ids{'a', '<', 'e', 'n', 'd', '>'}));
  EXPECT_EQ(tokenizer.encode("a<end>b", SpecialTokens::recognized), (Ids{'a', 261, 'b'}));
  EXPECT_EQ(tokenizer.encode("<end>!<end", SpecialTokens::recognized),
            (Ids{262, '<', 'e', 'n', 'd'}))
      << "the longest name";
  EXPECT_EQ(tokenizer.decode(Ids{'a', 261, 258}), "a<end>hell");
  EXPECT_TRUE(tokenizer.is_special(261));
  EXPECT_FALSE(tokenizer.is_special(260));
}

TEST(BytePairEncoding, AnyBytesComeBack) {
  const BytePairEncoding tokenizer(vocabulary());
  const std::uint64_t seed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text(bits() % 60, ' ');
    for (char& byte : text)
      byte = bits() % 2 == 0 ? static_cast<char>(bits()) : " hello<end>\n"[bits() % 12];
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, SpecialTokens::recognized)), text);
  }
}

TEST(BytePairEncoding, BytesThatTheVocabularyLacksAreLeftOut) {
  BytePairVocabulary source;
  source.tokens = {"a", "b", "ab"};
  source.merges = {"a b"};
  const BytePairEncoding tokenizer(source);
  EXPECT_FALSE(tokenizer.has_byte('c'));
  EXPECT_EQ(tokenizer.encode("acb"), Ids{2}) << "as the originals do: what is left is merged";
}

TEST(BytePairEncoding, VocabulariesThatAreNone) {
  const auto refused = [](auto change) {
    BytePairVocabulary source = vocabulary();
    change(source);
    try {
      BytePairEncoding{source};
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused([](auto& source) { source.tokens.emplace_back("he"); }),
            "vocabulary: 'he' twice, as token 256 and 263");
  EXPECT_EQ(refused([](auto& source) { source.merges.emplace_back("h x"); }),
            "merges: 5 is 'h x', which names a token that is not in the vocabulary");
  EXPECT_NE(refused([](auto& source) { source.merges.emplace_back("h"); }), "accepted");
  EXPECT_NE(refused([](auto& source) { source.merges.emplace_back(""); }), "accepted");
  EXPECT_EQ(refused([](auto& source) { source.merges.emplace_back("h e"); }),
            "merges: 5 again merges tokens 104 and 101");
  EXPECT_EQ(refused([](auto& source) { source.special.push_back(263); }), "token 263 of 263");
  EXPECT_THROW(BytePairEncoding(vocabulary()).decode(Ids{263}), InvalidArgument);
  EXPECT_THROW(BytePairEncoding(vocabulary()).decode(Ids{-1}), InvalidArgument);
}

}  // namespace
}  // namespace heed
