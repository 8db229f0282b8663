// SPDX-License-Identifier: MIT
#include <heed/core/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace heed {
namespace {

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string text = "a";
    append_utf8(text, code);
    const Utf8Character read = decode_utf8(text + "z", 1);
    ASSERT_TRUE(read.valid) << static_cast<unsigned>(code);
    ASSERT_EQ(read.code, code);
    ASSERT_EQ(read.size, text.size() - 1);
  }
}

TEST(Utf8, WhatIsNotWellFormedIsOneBadByte) {
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82",
        "\xf0\x9f\x98", "\xc3(", "\xe2\x28\xa1"}) {
    const Utf8Character read = decode_utf8(text, 0);
    EXPECT_FALSE(read.valid) << text;
    EXPECT_EQ(read.code, 0xfffdu);
    EXPECT_EQ(read.size, 1u);
    EXPECT_FALSE(is_utf8(text));
  }
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("añ中😀"));
  EXPECT_TRUE(is_utf8(std::string("a\0b", 3)));
  for (const char* text : {"ab\xff", "ab\x80", "ab\xc3"}) {
    EXPECT_TRUE(is_utf8(std::string_view(text, 2))) << "what follows the text is not read";
  }
}

/// Two-byte sequences, all of them, against the definition.
TEST(Utf8, EveryPairOfBytes) {
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b)};
      const bool expected = (a < 0x80 && b < 0x80) || (a >= 0xc2 && a < 0xe0 && (b & 0xc0) == 0x80);
      ASSERT_EQ(is_utf8(text), expected) << a << " " << b;
    }
  }
}

TEST(Utf8, ACharacterCutShortIsHeldBack) {
  const std::string text = "é中😀";
  const std::size_t whole[] = {0, 0, 2, 2, 2, 5, 5, 5, 5, 9};
  for (std::size_t size = 0; size <= text.size(); ++size) {
    EXPECT_EQ(complete_utf8(text.substr(0, size)), whole[size]) << size;
  }
  EXPECT_EQ(complete_utf8("ab\xff"), 3u) << "0xff begins nothing";
  EXPECT_EQ(complete_utf8("\x80\x80\x80\x80"), 4u) << "nothing can complete these";
  for (const char* nothing : {"ab\xc1", "ab\xf5", "ab\xf5\x80", "a\xe0\x9f", "a\xed\xa0",
                              "a\xf0\x8f", "a\xf4\x90", "a\xf4\x90\x80"}) {
    EXPECT_EQ(complete_utf8(nothing), std::string_view(nothing).size());
  }
  for (const char* cut :
       {"ab\xf4\x80\x80", "ab\xf4\x8f", "ab\xf0\x90", "ab\xed\x9f", "ab\xe0\xa0"}) {
    EXPECT_EQ(complete_utf8(cut), 2u);
  }
}

TEST(Printable, PlainTextStaysAndTheRestIsSpelledOut) {
  EXPECT_EQ(printable("a b é 中 😀 \\"), "a b é 中 😀 \\");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("a\u202eb\u200b\u0085"), "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8b\\xc2\\x85");
  EXPECT_EQ(printable("a\u061cb"), "a\\xd8\\x9cb");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(quote("a"), "'a'");
  EXPECT_EQ(quote(""), "''");
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable("aaaa", 4), "aaaa");
  EXPECT_EQ(printable("aaaaa", 4), "aaaa…");
  EXPECT_EQ(printable("aaé", 3), "aa…");
  EXPECT_EQ(printable(std::string(1'000'000, 'x')).size(), 80 + std::string("…").size());
}

TEST(Printable, WhateverComesOneLineOfUtf8Leaves) {
  std::mt19937_64 bits(20261128);
  for (int round = 0; round < 2000; ++round) {
    std::string text(bits() % 40, ' ');
    for (char& byte : text) byte = static_cast<char>(bits());
    const std::string shown = printable(text, 60);
    EXPECT_TRUE(is_utf8(shown));
    EXPECT_LE(shown.size(), 60u + 12 + 3);
    for (const char byte : shown)
      EXPECT_TRUE(static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f);
  }
}

static_assert(std::forward_iterator<TextList::Iterator>);

TEST(TextList, HoldsTextsInTheirOrder) {
  const std::vector<std::string> texts = {"b", "", "aé", std::string("\0x", 2), ""};
  TextList list;
  EXPECT_TRUE(list.empty());
  for (const auto& text : texts) list.push_back(text);
  ASSERT_EQ(list.size(), 5u);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(list[i], texts[i]);
  EXPECT_EQ(list.characters(), 6u);
  EXPECT_TRUE(std::equal(list.begin(), list.end(), texts.begin(), texts.end()));
  EXPECT_EQ(std::vector<std::string>(list.begin(), list.end()), texts);
  const TextList copy = texts;
  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), list.begin(), list.end()));
  list = {"x", "yz"};
  list.emplace_back("w");
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list[1], "yz");
  EXPECT_EQ(TextList(std::vector<std::string_view>{"a"})[0], "a");
  EXPECT_TRUE(TextList(std::vector<std::string>()).empty());
}

}  // namespace
}  // namespace heed

namespace heed::detail {
namespace {

struct Squares {
  std::size_t operator[](std::size_t i) const { return i * i; }
  ListIterator<Squares> begin() const { return {*this, 0}; }
  ListIterator<Squares> end() const { return {*this, 4}; }
};

TEST(ListIterator, GoesThroughWhatTheListMakes) {
  static_assert(std::forward_iterator<ListIterator<Squares>>);
  const Squares squares;
  EXPECT_EQ(std::vector<std::size_t>(squares.begin(), squares.end()),
            (std::vector<std::size_t>{0, 1, 4, 9}));
  auto at = squares.begin();
  EXPECT_EQ(*at++, 0u);
  EXPECT_EQ(*++at, 4u);
  EXPECT_EQ(std::find(squares.begin(), squares.end(), 4u), at);
}

}  // namespace
}  // namespace heed::detail
