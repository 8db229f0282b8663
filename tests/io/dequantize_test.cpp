// SPDX-License-Identifier: MIT
#include <heed/io/gguf.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace heed {
namespace {

/// Every range of a tensor equals that part of the whole.
template <class Block>
void expect_ranges(std::uint32_t id) {
  constexpr Index blocks = 3, size = blocks * Block::length;
  std::vector<std::byte> data(blocks * sizeof(Block) + 1);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37 % 59);
  const std::byte* odd = data.data() + 1;  // blocks need no alignment
  std::vector<float> whole(size);
  dequantize(*gguf_type(id), odd, 0, whole);
  for (Index first = 0; first <= size; first += 5) {
    for (Index count = 0; first + count <= size; count += 7) {
      std::vector<float> part(static_cast<std::size_t>(count) + 1, -7.f);
      dequantize(*gguf_type(id), odd, first,
                 std::span(part).first(static_cast<std::size_t>(count)));
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, static_cast<std::size_t>(count) * 4),
                0)
          << first << " " << count;
      EXPECT_EQ(part.back(), -7.f);
    }
  }
}

TEST(Dequantize, EveryRangeIsThatPartOfTheWhole) {
  expect_ranges<Q8_0>(8);
  expect_ranges<Q4_0>(2);
  expect_ranges<Q4_1>(3);
  expect_ranges<Q6_K>(14);
}

TEST(Dequantize, PlainTypes) {
  const double values[] = {1.5, -0.1};
  float out[1];
  dequantize(*gguf_type(28), reinterpret_cast<const std::byte*>(values), 1, out);
  EXPECT_EQ(out[0], -0.1f);
  const std::uint16_t halves[] = {0, 0x3fc0};
  dequantize(*gguf_type(30), reinterpret_cast<const std::byte*>(halves), 1, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_FALSE(is_dequantizable(*gguf_type(12)));
  EXPECT_FALSE(is_dequantizable(*gguf_type(26)));
}

}  // namespace
}  // namespace heed
