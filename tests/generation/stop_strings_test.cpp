// SPDX-License-Identifier: MIT
#include <heed/generation/generate.hpp>

#include <gtest/gtest.h>

#include <heed/core/index.hpp>
#include <heed/core/random.hpp>

namespace heed {
namespace {

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StopStrings stop({"<end>", "\n\n"});
  EXPECT_EQ(stop.feed("Hello"), "Hello");
  EXPECT_EQ(stop.feed(" <e"), " ");
  EXPECT_EQ(stop.feed("m>\n"), "<em>");
  EXPECT_EQ(stop.feed("x<"), "\nx");
  EXPECT_EQ(stop.feed("<end"), "<");
  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.feed("> more"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.feed("again"), "");
  EXPECT_EQ(stop.finish(), "");
  StopStrings open({"abc"});
  EXPECT_EQ(open.feed("xab"), "x");
  EXPECT_EQ(open.finish(), "ab");
}

TEST(StopStrings, AnyCutGivesTheSameText) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += static_cast<char>('a' + random.integer(3));
    StopStrings stop({"abca", "cc"});
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const auto length = static_cast<std::size_t>(1 + random.integer(4));
      shown += stop.feed(text.substr(at, length));
      at += length;
    }
    shown += stop.finish();
    const std::size_t end = std::min(text.find("abca"), text.find("cc"));
    EXPECT_EQ(stop.stopped(), end != std::string::npos);
    EXPECT_EQ(shown, text.substr(0, end)) << text;
  }
}

TEST(StopStrings, NoneAndEmpty) {
  StopStrings none({});
  EXPECT_EQ(none.feed("text"), "text");
  EXPECT_THROW(StopStrings({"a", ""}), InvalidArgument);
}

}  // namespace
}  // namespace heed
