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
  for (const std::string_view table :
       {packed_character_classes, packed_without_accents, packed_lower_case}) {
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

}  // namespace
}  // namespace heed::unicode
