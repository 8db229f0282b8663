// SPDX-License-Identifier: MIT
#include <heed/core/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace heed {
namespace {

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
