// SPDX-License-Identifier: MIT
#include <heed/text/special_tokens.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace heed::detail {
namespace {

using Names = std::vector<std::pair<std::string, Index>>;

std::string split(const SpecialTokenFinder& finder, std::string_view text) {
  std::string result;
  finder.split(
      text, [&](std::string_view piece) { result += "(" + std::string(piece) + ")"; },
      [&](Index token) { result += std::to_string(token); });
  return result;
}

TEST(SpecialTokens, FirstAndLongest) {
  const SpecialTokenFinder finder(Names{{"<a>", 1}, {"<a>b", 2}, {"<", 3}, {"", 4}});
  EXPECT_EQ(split(finder, "x<a>y"), "(x)1(y)");
  EXPECT_EQ(split(finder, "<a>b<a><"), "213");
  EXPECT_EQ(split(finder, "<ab"), "3(ab)");
  EXPECT_EQ(split(finder, ""), "");
  EXPECT_EQ(split(SpecialTokenFinder(), "<a>"), "(<a>)");
  EXPECT_TRUE(finder.contains(2));
  EXPECT_FALSE(finder.contains(5));
}

TEST(SpecialTokens, ManyAreFoundByNumber) {
  Names names;
  for (Index i = 0; i < 200000; ++i) names.emplace_back("<" + std::to_string(i) + ">", 2 * i);
  const SpecialTokenFinder finder(names);
  Index found = 0;
  for (Index i = 0; i < 400000; ++i) found += finder.contains(i) ? 1 : 0;
  EXPECT_EQ(found, 200000);
}

TEST(SpecialTokens, EqualsTryingEveryName) {
  const std::uint64_t seed = 20261127;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  const auto word = [&](std::uint64_t longest) {
    std::string text(bits() % (longest + 1), 'a');
    for (char& letter : text) letter = "ab\xff"[bits() % 3];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    Names names;
    for (Index i = 0; i < 5; ++i) {
      const std::string name = word(4);
      bool there = name.empty();
      for (const auto& other : names) there = there || other.first == name;
      if (!there) names.emplace_back(name, i);
    }
    const std::string text = word(20);
    std::string expected, piece;
    for (std::size_t at = 0; at < text.size();) {
      const std::pair<std::string, Index>* best = nullptr;
      for (const auto& name : names) {
        if (text.compare(at, name.first.size(), name.first) == 0 &&
            (best == nullptr || name.first.size() > best->first.size()))
          best = &name;
      }
      if (best == nullptr) {
        piece += text[at++];
        continue;
      }
      if (!piece.empty()) expected += "(" + piece + ")";
      piece.clear();
      expected += std::to_string(best->second);
      at += best->first.size();
    }
    if (!piece.empty()) expected += "(" + piece + ")";
    ASSERT_EQ(split(SpecialTokenFinder(names), text), expected);
  }
}

}  // namespace
}  // namespace heed::detail
