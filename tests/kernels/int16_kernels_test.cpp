// SPDX-License-Identifier: MIT
#include <heed/kernels/product_kernels.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

using simd::Int16Rows;

TEST(Int16Kernels, RoundARowInPairsWithTheSameBitsInEverySet) {
  constexpr Index depth = 96;
  std::mt19937_64 bits(1);
  auto x = random_tensor<float, 1>({depth}, bits);
  x(70) = -50;
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    std::vector<std::int32_t> pairs(depth / 2);
    std::vector<Int16Rows::Block> blocks(depth / 32);
    simd::int16_kernels<float>().round_row(x.data(), 1, depth, pairs.data(), blocks.data());
    for (Index block = 0; block < depth / 32; ++block) {
      const float* from = x.data() + 32 * block;
      float largest = 0;
      for (Index i = 0; i < 32; ++i) largest = std::max(largest, std::abs(from[i]));
      const auto& of_block = blocks[static_cast<std::size_t>(block)];
      ASSERT_EQ(of_block.scale, largest / 32767);
      int total = 0;
      for (Index i = 0; i < 32; ++i) {
        const auto pair = pairs[static_cast<std::size_t>(16 * block + i % 16)];
        const auto value = static_cast<std::int16_t>(i < 16 ? pair : pair >> 16);
        ASSERT_EQ(value, std::nearbyint(from[i] * (32767 / largest))) << simd::name(isa) << i;
        total += value;
      }
      ASSERT_EQ(of_block.total, total);
      ASSERT_EQ(of_block.sum, of_block.scale * static_cast<float>(total));
    }
  }
}

TEST(Int16Kernels, UnpackCodesPairByPair) {
  std::vector<std::uint8_t> stored(64 * 20, 0);
  const auto set_half = [&](Index at, std::uint16_t half) {
    stored[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(half);
    stored[static_cast<std::size_t>(at + 1)] = static_cast<std::uint8_t>(half >> 8);
  };
  set_half(2 * 5, 0x3c00);        // column 5: scale 1
  set_half(128 + 2 * 5, 0xc000);  // least -2
  // Its second word: pairs 4 to 7.
  const std::size_t word = 256 + 4 * (64 + 5);
  stored[word] = 0x21;      // pair 4: first 1; pair 5: 2
  stored[word + 2] = 0x43;  // pair 4: second 3; pair 5: 4
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    simd::UnpackedBlock block;
    simd::int16_kernels<float>().few.unpack({stored.data(), simd::QuantizedCodes::nibbles}, 32,
                                            &block);
    EXPECT_EQ(block.scale[5], 1);
    EXPECT_EQ(block.least[5], -2);
    EXPECT_EQ(block.scale[4], 0);
    EXPECT_EQ(block.words[4 * 64 + 5], 0x00030001);
    EXPECT_EQ(block.words[5 * 64 + 5], 0x00040002);
    EXPECT_EQ(std::count(std::begin(block.words), std::end(block.words), 0), 16 * 64 - 2);
  }
}

}  // namespace
}  // namespace heed::test
