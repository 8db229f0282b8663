// SPDX-License-Identifier: MIT
#include <heed/io/detail/tensor_file.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed::detail {
namespace {

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

}  // namespace
}  // namespace heed::detail
