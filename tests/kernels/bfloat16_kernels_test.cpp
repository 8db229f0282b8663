// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <vector>

#include <heed/core/bfloat16.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class Bfloat16Kernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(Bfloat16Kernels, WidenIsExactForAllBitsAndStrides) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  const auto same = [&](std::size_t to, std::size_t from) {
    return __builtin_bit_cast(std::uint32_t, wide[to]) == static_cast<std::uint32_t>(from) << 16;
  };
  simd::bfloat16_kernels<float>().widen({all.data(), 256, 1}, 256, 256, wide.data());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same(i, i)) << i;
  simd::bfloat16_kernels<float>().widen({all.data(), 300, 1}, 100, 37, wide.data());
  for (std::size_t i = 0; i < 3700; ++i) ASSERT_TRUE(same(i, i / 37 * 300 + i % 37)) << i;
  simd::bfloat16_kernels<float>().widen({all.data() + 70, -1, 500}, 9, 40, wide.data());
  for (std::size_t i = 0; i < 360; ++i) ASSERT_TRUE(same(i, 70 + i % 40 * 500 - i / 40)) << i;
}

TEST_P(Bfloat16Kernels, NarrowRoundsAsTheType) {
  std::vector<float> wide;
  for (std::uint32_t high = 0; high < 65536; high += 7) {
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      wide.push_back(__builtin_bit_cast(float, high << 16 | low));
    }
  }
  std::vector<std::uint16_t> narrow(wide.size());
  simd::bfloat16_kernels<float>().narrow(wide.data(), static_cast<Index>(wide.size()),
                                         narrow.data());
  for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(narrow[i], bfloat16(wide[i]).bits) << i;
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Bfloat16Kernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
