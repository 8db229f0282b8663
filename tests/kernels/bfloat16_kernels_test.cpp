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
  std::vector<float> rounded(wide.size());
  const auto size = static_cast<Index>(wide.size());
  const auto& kernels = simd::bfloat16_kernels<float>();
  const auto check = [&](std::size_t to, std::size_t from) {
    const std::uint32_t bits = bfloat16(wide[from]).bits;
    ASSERT_EQ(narrow[to], bits) << from;
    ASSERT_EQ(__builtin_bit_cast(std::uint32_t, rounded[to]), bits << 16) << from;
  };
  kernels.narrow({wide.data(), size, 1}, 1, size, narrow.data(), size);
  kernels.round({wide.data(), size, 1}, 1, size, rounded.data(), size);
  for (std::size_t i = 0; i < wide.size(); ++i) check(i, i);
  for (const Index step : {1, 30}) {  // between columns
    const simd::MatrixRef<float> from{wide.data(), step == 1 ? 300 : 1, step};
    kernels.narrow(from, 20, 37, narrow.data(), 40);
    kernels.round(from, 20, 37, rounded.data(), 40);
    for (Index i = 0; i < 740; ++i) {
      const Index to = i / 37 * 40 + i % 37, at = i / 37 * from.row_stride + i % 37 * step;
      check(static_cast<std::size_t>(to), static_cast<std::size_t>(at));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Bfloat16Kernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
