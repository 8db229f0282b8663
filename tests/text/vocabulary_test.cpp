// SPDX-License-Identifier: MIT
#include <heed/text/vocabulary.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(Vocabulary, TextsByNumberAndBack) {
  const Vocabulary vocabulary({"b", "", "a", "ab"});
  EXPECT_EQ(vocabulary.size(), 4);
  for (Index i = 0; i < 4; ++i) EXPECT_EQ(vocabulary.find(vocabulary.text(i)), i);
  EXPECT_EQ(vocabulary.find("c"), -1);
  EXPECT_EQ(Vocabulary().find(""), -1);
  EXPECT_THROW(vocabulary.text(4), ShapeError);
  EXPECT_THROW(vocabulary.text(-1), ShapeError);
  EXPECT_THROW(Vocabulary({"a", "b", "a"}), ShapeError);
}

}  // namespace
}  // namespace heed
