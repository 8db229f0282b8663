// SPDX-License-Identifier: MIT
#include <heed/io/detail/tensor_file.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed::detail {
namespace {

TEST(SortedOrder, WhereTheSmallestStandsComesFirst) {
  const std::vector<std::string> words = {"b", "", "c", "ab"};
  const auto order =
      sorted_order(words.size(), [&](std::size_t a, std::size_t b) { return words[a] < words[b]; });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 3, 0, 2}));
  EXPECT_TRUE(sorted_order(0, [](std::size_t, std::size_t) { return false; }).empty());
}

struct Entry {
  std::string_view name;
  int number;
};
using Index = NameIndex<&Entry::name>;

TEST(NameIndex, FindsEveryEntryAndNoOther) {
  const std::vector<Entry> entries = {{"b", 0}, {"", 1}, {"ab", 2}, {"a", 3}};
  const Index index(entries);
  for (const Entry& entry : entries) {
    ASSERT_NE(index.find(entries, entry.name), nullptr);
    EXPECT_EQ(index.find(entries, entry.name)->number, entry.number);
  }
  for (const char* missing : {"aa", "c", "abc"}) EXPECT_EQ(index.find(entries, missing), nullptr);
  EXPECT_EQ(index.twice(entries), nullptr);
  EXPECT_EQ(Index().find(std::vector<Entry>(), "a"), nullptr);
}

TEST(NameIndex, TellsWhichNameStandsTwice) {
  const std::vector<Entry> entries = {{"b", 0}, {"c", 1}, {"b", 2}, {"a", 3}};
  ASSERT_NE(Index(entries).twice(entries), nullptr);
  EXPECT_EQ(Index(entries).twice(entries)->name, "b");
}

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
