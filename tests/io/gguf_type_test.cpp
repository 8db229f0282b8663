// SPDX-License-Identifier: MIT
#include <heed/io/gguf_header.hpp>

#include <gtest/gtest.h>

#include <heed/io/gguf.hpp>

namespace heed {
namespace {

TEST(GgufType, TheTableHoldsEachNumberOnceAndSizesOfOurBlocks) {
  for (const GgufType& type : detail::gguf_types) {
    EXPECT_EQ(gguf_type(type.id), &type) << type.name;
    EXPECT_GT(type.block_bytes, 0);
  }
  for (const std::uint32_t unknown : {4u, 5u, 31u, 36u, 42u, 4294967295u}) {
    EXPECT_EQ(gguf_type(unknown), nullptr);
  }
  const auto expect_block = [](std::uint32_t id, Index length, std::size_t bytes) {
    EXPECT_EQ(gguf_type(id)->block_length, length);
    EXPECT_EQ(gguf_type(id)->block_bytes, static_cast<Index>(bytes));
    EXPECT_TRUE(is_dequantizable(*gguf_type(id)));
  };
  expect_block(2, Q4_0::length, sizeof(Q4_0));
  expect_block(3, Q4_1::length, sizeof(Q4_1));
  expect_block(8, Q8_0::length, sizeof(Q8_0));
  expect_block(14, Q6_K::length, sizeof(Q6_K));
}

}  // namespace
}  // namespace heed
