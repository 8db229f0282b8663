// SPDX-License-Identifier: MIT
#include <heed/text/byte_pair_encoding.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace heed::detail {
namespace {

TEST(ByteLetters, EveryByteHasItsLetterAndComesBack) {
  const ByteLetters letters;
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    seen.insert(letters.write(bytes));
    EXPECT_EQ(letters.read(letters.write(bytes)), bytes);
  }
  EXPECT_EQ(seen.size(), 256u);
  EXPECT_EQ(letters.write(" a\n~\x7f\xa0\xad\xff"), "ĠaĊ~ġłŃÿ");
}

TEST(ByteLetters, LettersThatStandForNoByte) {
  const ByteLetters letters;
  for (const char* text : {" ", "a b", "中", "\u0144", "\xff"})
    EXPECT_EQ(letters.read(text), std::nullopt);
  EXPECT_EQ(letters.read(""), "");
}

}  // namespace
}  // namespace heed::detail
