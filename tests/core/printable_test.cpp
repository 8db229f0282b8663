// SPDX-License-Identifier: MIT
#include <heed/core/text.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace heed {
namespace {

TEST(Printable, PlainTextStaysAndTheRestIsSpelledOut) {
  EXPECT_EQ(printable("a b é 中 😀 \\"), "a b é 中 😀 \\");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("a\u202eb\u200b\u0085"), "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8b\\xc2\\x85");
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

}  // namespace
}  // namespace heed
