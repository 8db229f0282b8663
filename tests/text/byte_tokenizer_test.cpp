// SPDX-License-Identifier: MIT
#include <heed/text/tokenizer.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

static_assert(Tokenizer<ByteTokenizer>);

TEST(ByteTokenizer, EveryByteAndBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const auto tokens = ByteTokenizer().encode(all);
  for (Index i = 0; i < 256; ++i) EXPECT_EQ(tokens[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(ByteTokenizer().decode(tokens), all);
  EXPECT_THROW(ByteTokenizer().decode(std::vector<Index>{256}), InvalidArgument);
  EXPECT_THROW(ByteTokenizer().decode(std::vector<Index>{-1}), InvalidArgument);
}

}  // namespace
}  // namespace heed
