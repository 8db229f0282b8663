// SPDX-License-Identifier: MIT
#include <heed/text/byte_pair_encoding.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <heed/text/tokenizer.hpp>

namespace heed::detail {
namespace {

TEST(ByteLetters, EveryByteHasItsLetterAndComesBack) {
  const ByteLetters letters;
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    seen.insert(letters.write(bytes));
    EXPECT_EQ(letters.read(letters.write(bytes)), bytes);
  }
  EXPECT_EQ(seen.size(), 256u);
  EXPECT_EQ(letters.write(" a\n~\x7f\xa0\xad\xff"), "ĠaĊ~ġłŃÿ");
}

TEST(ByteLetters, LettersThatStandForNoByte) {
  const ByteLetters letters;
  for (const char* text : {" ", "a b", "中", "\u0144", "\xff"})
    EXPECT_EQ(letters.read(text), std::nullopt);
  EXPECT_EQ(letters.read(""), "");
}

/// The definition: find the pair of the lowest rank, leftmost; merge; again.
std::vector<std::int32_t> merged_slowly(const std::vector<PairMerge>& merges,
                                        std::vector<std::int32_t> tokens) {
  for (;;) {
    std::size_t best = merges.size(), where = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      for (std::size_t rank = 0; rank < best; ++rank) {
        if (merges[rank].left == tokens[i] && merges[rank].right == tokens[i + 1]) {
          best = rank;
          where = i;
        }
      }
    }
    if (best == merges.size()) return tokens;
    tokens[where] = merges[best].result;
    tokens.erase(tokens.begin() + static_cast<Index>(where) + 1);
  }
}

TEST(PairMerger, EqualsTheDefinition) {
  const std::uint64_t seed = 20261126;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto letters = static_cast<std::int32_t>(2 + bits() % 3);
    std::vector<PairMerge> merges;
    std::int32_t tokens = letters;
    for (std::uint64_t i = 0; i < bits() % 30; ++i) {
      const auto left = static_cast<std::int32_t>(bits() % static_cast<unsigned>(tokens));
      const auto right = static_cast<std::int32_t>(bits() % static_cast<unsigned>(tokens));
      bool there = false;
      for (const PairMerge& merge : merges)
        there = there || (merge.left == left && merge.right == right);
      if (!there) merges.push_back({left, right, tokens++});
    }
    std::shuffle(merges.begin(), merges.end(), bits);  // ranks need not follow how tokens are made
    const PairMerger merger(merges, tokens);
    std::vector<std::int32_t> text(bits() % 40);
    for (auto& token : text)
      token = static_cast<std::int32_t>(bits() % static_cast<unsigned>(letters));
    auto result = text;
    merger.merge(result);
    ASSERT_EQ(result, merged_slowly(merges, text)) << round;
  }
}

TEST(PairMerger, AMegabyteWithoutASpaceTakesASecondNotADay) {
  std::vector<PairMerge> merges;
  for (std::int32_t i = 0; i < 20; ++i) merges.push_back({i, i, i + 1});
  const PairMerger merger(merges, 21);
  std::vector<std::int32_t> text(1 << 20, 0);
  const auto start = std::chrono::steady_clock::now();
  merger.merge(text);
  EXPECT_EQ(text, std::vector<std::int32_t>{20});
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
}

}  // namespace
}  // namespace heed::detail

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
  EXPECT_EQ(pieces("a\xff!\xc3 \xffz", PreTokenizer::llama3),
            (Pieces{"a", "\xff!\xc3", " \xff", "z"}));
}

// The pieces below are those of Hugging Face's tokenizers 0.23.

TEST(PreTokenizer, Llama3ContractionsInAnyCase) {
  const auto cut = [](std::string_view text) { return pieces(text, PreTokenizer::llama3); };
  EXPECT_EQ(cut("I'll WE'VE it'S DON'T'd"),
            (Pieces{"I", "'ll", " WE", "'VE", " it", "'S", " DON", "'T", "'d"}));
  EXPECT_EQ(cut("it'ſ 'mx 'r 'lb 'v"),
            (Pieces{"it", "'ſ", " '", "mx", " '", "r", " '", "lb", " '", "v"}));
  EXPECT_EQ(cut("'lLx'rE'R"), (Pieces{"'lL", "x", "'rE", "'R"}));
  EXPECT_EQ(cut("I'Mx'rat'var'lab'v"), (Pieces{"I", "'M", "x", "'rat", "'var", "'lab", "'v"}));
  EXPECT_EQ(cut("'x'\xc5"), (Pieces{"'x", "'\xc5"}));
  EXPECT_EQ(cut("''s'"), (Pieces{"''", "s", "'"}));
}

TEST(PreTokenizer, Llama3LettersTakeOneCharacterBefore) {
  const auto cut = [](std::string_view text) { return pieces(text, PreTokenizer::llama3); };
  EXPECT_EQ(cut("a\t b\tc_d(e)  f"), (Pieces{"a", "\t", " b", "\tc", "_d", "(e", ")", " ", " f"}));
  EXPECT_EQ(cut("\u3000中。文!!x"), (Pieces{"\u3000中", "。文", "!!", "x"}));
  EXPECT_EQ(cut("a\nb\rc"), (Pieces{"a", "\n", "b", "\r", "c"})) << "but no line end";
  EXPECT_EQ(cut("1a 1"), (Pieces{"1", "a", " ", "1"})) << "and no number";
}

TEST(PreTokenizer, Llama3NumbersByThreeAndQwen2ByOne) {
  EXPECT_EQ(pieces("1234567 ½٣x", PreTokenizer::llama3),
            (Pieces{"123", "456", "7", " ", "½٣", "x"}));
  EXPECT_EQ(pieces("123 ½٣x", PreTokenizer::qwen2), (Pieces{"1", "2", "3", " ", "½", "٣", "x"}));
}

TEST(PreTokenizer, Llama3LineEndsStayWithWhatIsInFront) {
  const auto cut = [](std::string_view text) { return pieces(text, PreTokenizer::llama3); };
  EXPECT_EQ(cut("x !\r\n\n  y"), (Pieces{"x", " !\r\n\n", " ", " y"}));
  EXPECT_EQ(cut("x \n \n  y"), (Pieces{"x", " \n \n", " ", " y"}));
  EXPECT_EQ(cut("\u0085\n 1"), (Pieces{"\u0085\n", " ", "1"}));
  EXPECT_EQ(cut("x \r  y"), (Pieces{"x", " \r", " ", " y"}));
  EXPECT_EQ(cut("  !"), (Pieces{" ", " !"}));
  EXPECT_EQ(cut("\t\t!"), (Pieces{"\t", "\t", "!"}));
  EXPECT_EQ(cut("x \n  "), (Pieces{"x", " \n", "  "}));
  EXPECT_EQ(cut("\n"), Pieces{"\n"});
  EXPECT_EQ(cut(" "), Pieces{" "});
  EXPECT_EQ(cut(""), Pieces{});
}

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
