// SPDX-License-Identifier: MIT
#include <heed/plot/detail/drawing.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace heed::detail {
namespace {

std::string drawn(std::string_view text) {
  std::string result;
  for (const Glyph& glyph : glyphs(text)) result += glyph.bytes;
  return result;
}

TEST(Text, WidthsCountColumnsNotBytes) {
  EXPECT_EQ(text_width(""), 0);
  EXPECT_EQ(text_width("abc"), 3);
  EXPECT_EQ(text_width("Straße"), 6);
  EXPECT_EQ(text_width("日本語"), 6);
  EXPECT_EQ(text_width("한국"), 4);
  EXPECT_EQ(text_width("e\u0301t\u00e9"), 3);  // an accent of its own, and one built in
  EXPECT_EQ(text_width("🙂"), 2);
  EXPECT_EQ(text_width("\u0120the"), 4);  // byte-level BPE's mark of a space
}

TEST(Text, ControlCharactersBecomePictures) {
  EXPECT_EQ(drawn("a\nb"), "a␊b");
  EXPECT_EQ(drawn("\x1b[31m"), "␛[31m");
  EXPECT_EQ(drawn(std::string_view("\0\x7f", 2)), "␀␡");
  EXPECT_EQ(drawn("\u0085"), "\ufffd");
}

TEST(Text, WhatIsNoUtf8IsReplacedByteByByte) {
  EXPECT_EQ(drawn("a\xff"), "a\ufffd");
  EXPECT_EQ(drawn("\xe6\x97"), "\ufffd\ufffd");                      // cut off
  EXPECT_EQ(drawn("\xc0\xaf"), "\ufffd\ufffd");                      // overlong "/"
  EXPECT_EQ(drawn("\xe0\x80\xaf"), "\ufffd\ufffd\ufffd");            // the same in three bytes
  EXPECT_EQ(drawn("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // a surrogate
  EXPECT_EQ(drawn("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // past the last code point
  EXPECT_EQ(drawn("\xf0\x9f\x99\x82"), "🙂");
  for (const char* first_and_last :
       {"\u00a0", "\u07ff", "\u0800", "\uffef", "\U00010000", "\U0010fffd"}) {
    EXPECT_EQ(drawn(first_and_last), first_and_last) << "of two, three and four bytes";
  }
}

TEST(Text, AnyBytesGiveCleanTextThatStaysAsItIs) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (auto length = bits() % 12; length > 0; --length) text += static_cast<char>(bits());
    const std::string once = drawn(text);
    EXPECT_EQ(drawn(once), once);
    for (const char letter : once) EXPECT_GE(static_cast<unsigned char>(letter), 0x20);
  }
}

TEST(Text, FittedIsExactlyAsWideAsAsked) {
  EXPECT_EQ(fitted("cat", 5), "cat  ");
  EXPECT_EQ(fitted("cat", 3), "cat");
  EXPECT_EQ(fitted("mouse", 4), "mou…");
  EXPECT_EQ(fitted("日本語", 4), "日… ");  // half a character is no character
  EXPECT_EQ(fitted("mouse", 0), "");
  for (const char* text : {"", "a", "日本語", "e\u0301e\u0301e\u0301", "\xff\xff\xff"}) {
    for (Index width = 0; width < 8; ++width) EXPECT_EQ(text_width(fitted(text, width)), width);
  }
}

TEST(Text, CellsHoldTheTwoDigitsThatMatter) {
  const std::pair<double, const char*> cases[] = {
      {0.0, "·"},      {-0.0, "·"},      {1e-9, ".00"},   {0.9596, ".96"}, {0.994, ".99"},
      {0.996, "1.0"},  {1.0, "1.0"},     {-0.05, "-.05"}, {2.55, "2.5"},   {9.94, "9.9"},
      {9.96, "10"},    {123.4, "123"},   {-42, "-42"},    {1e6, "1e+06"},  {NAN, "NaN"},
      {INFINITY, "∞"}, {-INFINITY, "-∞"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(cell_text(value), text) << value;
}

TEST(Text, Numbers) {
  EXPECT_EQ(brief(0.5), "0.5");
  EXPECT_EQ(brief(12), "12");
  EXPECT_EQ(brief(1e-9), "1e-09");
  EXPECT_EQ(brief(1.0 / 3), "0.3333");
  EXPECT_EQ(fixed(1.0 / 3, 2), "0.33");
  EXPECT_EQ(fixed(-std::numeric_limits<double>::max(), 2).size(), 1u + 309 + 3);
}

}  // namespace
}  // namespace heed::detail
