// SPDX-License-Identifier: MIT
#include <heed/text/unicode.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <heed/core/text.hpp>
#include <heed/text/detail/packed_numbers.hpp>
#include <heed/text/detail/unicode_tables.hpp>

namespace heed::detail {
namespace {

TEST(UnicodeTables, HoldDigitsOfTheirNumbersAndEndWithOne) {
  for (const std::string_view table : {packed_character_classes, packed_combining_classes,
                                       packed_decompositions, packed_lower_case}) {
    EXPECT_EQ(
        table.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"),
        std::string_view::npos);
    PackedNumbers numbers(table);
    std::size_t count = 0;
    for (; numbers.more(); ++count) numbers.next();
    EXPECT_GT(count, 500u);
  }
}

TEST(UnicodeTables, RunsLieInsideUnicode) {
  char32_t first = 0;
  for (PackedNumbers numbers(packed_character_classes); numbers.more();) {
    first += numbers.next();
    EXPECT_LT(numbers.next(), 128u);
  }
  EXPECT_LE(static_cast<unsigned>(first), 0x10ffffu);
}

}  // namespace
}  // namespace heed::detail

namespace heed::unicode {
namespace {

std::string bare(char32_t code) {
  std::string text;
  without_accents(code, [&](char32_t letter) { append_utf8(text, letter); });
  return text;
}
std::string lower(char32_t code) {
  std::string text;
  lower_case(code, [&](char32_t letter) { append_utf8(text, letter); });
  return text;
}

TEST(Unicode, Classes) {
  for (const char32_t letter : {U'a', U'Z', U'é', U'中', U'한', U'ш', U'क', U'ª', U'ǅ', U'𝒜'}) {
    EXPECT_TRUE(classes_of(letter).letter()) << lower(letter);
    EXPECT_FALSE(classes_of(letter).number());
  }
  for (const char32_t number : {U'0', U'9', U'٣', U'½', U'Ⅷ', U'①', U'१'}) {
    EXPECT_TRUE(classes_of(number).number());
    EXPECT_TRUE(classes_of(number).digit());
  }
  for (const char32_t space : {U' ', U'\t', U'\n', U'\x85', U'\u00a0', U'\u3000', U'\u2028'}) {
    EXPECT_TRUE(classes_of(space).space());
  }
  EXPECT_FALSE(classes_of(U'\u200b').space());
  for (const char32_t sign : {U'!', U'$', U'^', U'`', U'~', U'。', U'—', U'¿'}) {
    EXPECT_TRUE(classes_of(sign).punctuation());
  }
  EXPECT_FALSE(classes_of(U'€').punctuation());
  for (const char32_t control : {U'\0', U'\x7f', U'\u200b', U'\ufeff', U'\ufffd', U'\x85'}) {
    EXPECT_TRUE(classes_of(control).dropped());
  }
  EXPECT_FALSE(classes_of(U'\t').dropped());
  EXPECT_TRUE(classes_of(U'\u0301').mark());
  EXPECT_FALSE(classes_of(U'😀').letter());
  EXPECT_TRUE(classes_of(0x10fffd) == classes_of(0x100000)) << "the last run reaches to the end";
}

TEST(Unicode, WithoutAccents) {
  EXPECT_EQ(bare(U'a'), "a");
  EXPECT_EQ(bare(U'é'), "e");
  EXPECT_EQ(bare(U'ệ'), "e");
  EXPECT_EQ(bare(U'Å'), "A");
  EXPECT_EQ(bare(U'\u0301'), "");
  EXPECT_EQ(bare(U'ø'), "ø") << "its stroke is no accent";
  EXPECT_EQ(bare(U'가'), "\u1100\u1161");
  EXPECT_EQ(bare(U'힣'), "\u1112\u1175\u11c2");
  EXPECT_EQ(bare(U'\uf900'), "豈");
  EXPECT_EQ(bare(U'\u037e'), ";");
}

TEST(Unicode, LowerCase) {
  EXPECT_EQ(lower(U'A'), "a");
  EXPECT_EQ(lower(U'É'), "é");
  EXPECT_EQ(lower(U'Σ'), "σ");
  EXPECT_EQ(lower(U'İ'), "i\u0307");
  EXPECT_EQ(lower(U'Ǆ'), "ǆ");
  EXPECT_EQ(lower(U'𐐀'), "𐐨");
  EXPECT_EQ(lower(U'中'), "中");
  EXPECT_EQ(lower(U'ß'), "ß");
}

TEST(Unicode, LowerCaseOfAsciiIsThatOfC) {
  for (char32_t code = 0; code < 128; ++code) {
    const char32_t expected = code >= 'A' && code <= 'Z' ? code + 32 : code;
    lower_case(code, [&](char32_t letter) {
      EXPECT_EQ(static_cast<unsigned>(letter), static_cast<unsigned>(expected));
    });
  }
}

TEST(Nfc, ComposesLettersAndTheirMarks) {
  EXPECT_EQ(nfc(""), "");
  EXPECT_EQ(nfc("plain été"), "plain été");
  EXPECT_EQ(nfc("e\u0301te\u0301"), "été");
  EXPECT_EQ(nfc("e\u0302\u0323x"), "ệx") << "the mark below comes first";
  EXPECT_EQ(nfc("e\u0323\u0302"), "ệ");
  EXPECT_EQ(nfc("ẹ\u0302"), "ệ");
  EXPECT_EQ(nfc("a\u0301\u0300"), "á\u0300") << "one of a class stands in the way of the next";
  EXPECT_EQ(nfc("a\u0323\u0301\u0300"), "ạ\u0301\u0300");
  EXPECT_EQ(nfc("x\u0301"), "x\u0301");
  EXPECT_EQ(nfc("\u09c7\u09be"), "\u09cb") << "two vowel signs, of no class";
  EXPECT_EQ(nfc("\u0301e"), "\u0301e") << "nothing in front of it";
  EXPECT_EQ(nfc("\u0301\u0323"), "\u0323\u0301");
  EXPECT_EQ(nfc("a\u0315\u0300\u05ae\u0300b"), "à\u05ae\u0300\u0315b") << "Unicode's own test";
}

TEST(Nfc, CharactersThatAreNeverNormal) {
  EXPECT_EQ(nfc("\u212b\u2126\u212a"), "\u00c5\u03a9K");
  EXPECT_EQ(nfc("\u037e"), ";");
  EXPECT_EQ(nfc("a\uf900b"), "a\u8c48b");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c") << "excluded from composition";
  EXPECT_EQ(nfc("\u0915\u093c"), "\u0915\u093c");
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(nfc("\U0001d160"), "\U0001d158\U0001d165\U0001d16e");
  EXPECT_EQ(nfc("\U0002f800"), "\u4e3d");
  EXPECT_EQ(nfc("\ufb01"), "\ufb01") << "a ligature is another character, not another spelling";
}

TEST(Nfc, Hangul) {
  EXPECT_EQ(nfc("\u1100\u1161\u11a8\u1112\u1175"), "각히");
  EXPECT_EQ(nfc("가\u11a8"), "각");
  EXPECT_EQ(nfc("각\u11a8"), "각\u11a8");
  EXPECT_EQ(nfc("\u1100\u11a8\u1161"), "\u1100\u11a8\u1161");
  EXPECT_EQ(nfc("가\u11a7"), "가\u11a7") << "the place of no trailing consonant";
  EXPECT_EQ(nfc("\u1112\u1175\u11c2\u1112\u1176"), "힣\u1112\u1176");
  EXPECT_EQ(nfc("\u1113\u1161가\u11c3"), "\u1113\u1161가\u11c3") << "letters of older Korean";
}

TEST(Nfc, BytesThatAreNoCharactersStay) {
  EXPECT_EQ(nfc("e\xff\u0301\xcc"), "e\xff\u0301\xcc");
  EXPECT_EQ(nfc("\xc3\u0301\u0323e\u0301"), "\xc3\u0323\u0301é");
  EXPECT_EQ(nfc("\ufffd\u0301"), "\ufffd\u0301");
}

TEST(Nfc, MarksOfAClassKeepTheirOrder) {
  std::string marks;
  for (int i = 0; i < 20; ++i) marks += "\u0301\u0300";
  EXPECT_EQ(nfc("a" + marks + "\u0323"), "ạ" + marks);
}

TEST(Nfc, AMillionMarksTakeASecondNotADay) {
  std::string text = "a";
  for (int i = 0; i < 500'000; ++i) text += "\u0301\u0323";
  const std::string result = nfc(text);
  EXPECT_EQ(result.substr(0, 3), "ạ");
  EXPECT_EQ(result.size(), 3 + 2 * (1'000'000 - 1));
}

}  // namespace
}  // namespace heed::unicode
