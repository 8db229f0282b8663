// SPDX-License-Identifier: MIT
#include <heed/core/text.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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
  for (const char* nothing : {"ab\xc1", "ab\xf5", "ab\xf5\x80"}) {
    EXPECT_EQ(complete_utf8(nothing), std::string_view(nothing).size());
  }
  EXPECT_EQ(complete_utf8("ab\xf4\x80\x80"), 2u);
}

}  // namespace
}  // namespace heed
