// SPDX-License-Identifier: MIT
#include <heed/text/vocabulary.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>

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
