// SPDX-License-Identifier: MIT
#include <heed/text/tokenizer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace heed::detail {
namespace {

/// The numbers of all texts but those in `plain`.
SpecialTokenFinder finder_of(const TextList& texts, const std::vector<Index>& plain = {}) {
  std::vector<Index> special;
  for (Index i = 0; i < static_cast<Index>(texts.size()); ++i) {
    if (std::find(plain.begin(), plain.end(), i) == plain.end()) special.push_back(i);
  }
  return {texts, special};
}

std::string split(const SpecialTokenFinder& finder, const TextList& texts, std::string_view text) {
  std::string result;
  finder.split(
      texts, text, [&](std::string_view piece) { result += "(" + std::string(piece) + ")"; },
      [&](Index token) { result += std::to_string(token); });
  return result;
}

TEST(SpecialTokens, FirstAndLongest) {
  const TextList texts = {"x", "<a>", "<a>b", "<", ""};
  const SpecialTokenFinder finder = finder_of(texts, {0});
  EXPECT_EQ(split(finder, texts, "x<a>y"), "(x)1(y)");
  EXPECT_EQ(split(finder, texts, "<a>b<a><"), "213");
  EXPECT_EQ(split(finder, texts, "<ab"), "3(ab)");
  EXPECT_EQ(split(finder, texts, ""), "");
  EXPECT_EQ(split(SpecialTokenFinder(), texts, "<a>"), "(<a>)");
  EXPECT_TRUE(finder.contains(2));
  EXPECT_FALSE(finder.contains(0));
  EXPECT_FALSE(finder.contains(4)) << "a token without text";
  EXPECT_FALSE(finder.contains(5));
  EXPECT_FALSE(finder.contains(-1));
}

TEST(SpecialTokens, ManyAreFoundByNumber) {
  TextList names;
  std::vector<Index> special;
  for (Index i = 0; i < 400000; ++i) {
    names.push_back("<" + std::to_string(i) + ">");
    if (i % 2 == 0) special.push_back(i);
  }
  const SpecialTokenFinder finder(names, special);
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
    std::vector<std::string> names;
    for (Index i = 0; i < 5; ++i) {
      const std::string name = word(4);
      bool there = name.empty();
      for (const auto& other : names) there = there || other == name;
      if (!there) names.push_back(name);
    }
    const std::string text = word(20);
    std::string expected, piece;
    for (std::size_t at = 0; at < text.size();) {
      const std::string* best = nullptr;
      for (const auto& name : names) {
        if (text.compare(at, name.size(), name) == 0 &&
            (best == nullptr || name.size() > best->size()))
          best = &name;
      }
      if (best == nullptr) {
        piece += text[at++];
        continue;
      }
      if (!piece.empty()) expected += "(" + piece + ")";
      piece.clear();
      expected += std::to_string(best - names.data());
      at += best->size();
    }
    if (!piece.empty()) expected += "(" + piece + ")";
    ASSERT_EQ(split(finder_of(names), names, text), expected);
  }
}

}  // namespace
}  // namespace heed::detail

namespace heed {
namespace {

TEST(Vocabulary, TextsByNumberAndBack) {
  const Vocabulary vocabulary({"b", "", "a", "ab"});
  EXPECT_EQ(vocabulary.size(), 4);
  for (Index i = 0; i < 4; ++i) EXPECT_EQ(vocabulary.find(vocabulary.text(i)), i);
  EXPECT_EQ(vocabulary.find("c"), -1);
  EXPECT_EQ(Vocabulary().find(""), -1);
  EXPECT_THROW(vocabulary.text(4), InvalidArgument);
  EXPECT_THROW(vocabulary.text(-1), InvalidArgument);
  EXPECT_THROW(Vocabulary({"a", "b", "a"}), InvalidArgument);
}

TEST(Vocabulary, ManyTextsInAnyOrder) {
  TextList texts;
  for (Index i = 0; i < 1000; ++i) texts.push_back(std::to_string(i * 389 % 1000));
  const Vocabulary vocabulary(std::move(texts));
  for (Index i = 0; i < 1000; ++i) {
    EXPECT_EQ(vocabulary.find(std::to_string(i * 389 % 1000)), i);
    EXPECT_EQ(vocabulary.find(std::to_string(i + 1000)), -1);
  }
}

}  // namespace
}  // namespace heed
