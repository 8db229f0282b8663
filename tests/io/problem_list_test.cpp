// SPDX-License-Identifier: MIT
#include <heed/io/detail/tensor_file.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

TEST(ProblemList, ListsFiftyAndCountsTheRest) {
  ProblemList problems("; ");
  EXPECT_EQ(problems.count(), 0);
  EXPECT_EQ(problems.text(), "");
  problems.add("no ", 1);
  EXPECT_EQ(problems.text(), "no 1");
  std::string expected = "no 1";
  for (int i = 2; i <= 50; ++i) {
    problems.add("no ", i);
    expected += "; no " + std::to_string(i);
  }
  EXPECT_EQ(problems.text(), expected);
  problems.add("not listed");
  EXPECT_EQ(problems.text(), expected + "; and 1 more");
  problems.add("not listed");
  EXPECT_EQ(problems.text(), expected + "; and 2 more");
  EXPECT_EQ(problems.count(), 52);
}

}  // namespace
}  // namespace heed::detail
