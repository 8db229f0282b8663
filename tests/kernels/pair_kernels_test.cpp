// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <heed/core/bfloat16.hpp>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using Bits = std::vector<std::uint16_t>;

class PairKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simd::supported(simd::Isa::avx512_bf16)) GTEST_SKIP() << "no products of pairs here";
    simd::use(simd::Isa::avx512_bf16);
  }
  static Bits random_bits(Index count, std::mt19937_64& bits) {
    const auto wide = random_tensor<float, 1>({count}, bits);
    Bits narrow;
    for (const float value : wide) narrow.push_back(bfloat16(value).bits);
    return narrow;
  }
  static double wide(std::uint16_t bits) {
    bfloat16 value;
    value.bits = bits;
    return static_cast<double>(float{value});
  }
  RestoreSettings restore_;
};

TEST(PairKernelsOfOtherSets, AreNone) {
  RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    EXPECT_EQ(simd::pair_kernels<float>(), nullptr) << simd::name(isa);
  }
}

TEST_F(PairKernels, PackPutsColumnsInPairsAndRowsInLanes) {
  std::mt19937_64 random(1);
  for (const Index columns : {1, 2, 31, 32, 33, 70}) {
    for (const Index rows : {1, 15, 16, 64, 80}) {
      for (const bool turned : {false, true}) {
        const Bits from = random_bits(rows * (columns + 3), random);
        const simd::MatrixRef<std::uint16_t> source{from.data(), turned ? 1 : columns + 3,
                                                    turned ? rows : 1};
        const Index depth = (columns + 1) / 2;
        Bits packed(static_cast<std::size_t>(128 * 2 * depth), 77);
        simd::pair_kernels<float>()->pack(source, rows, columns, packed.data());
        for (Index row = 0; row < rows; ++row) {
          for (Index column = 0; column < 2 * depth; ++column) {
            const Index at = row / 64 * 128 * depth + column / 2 * 128 + row % 64 * 2 + column % 2;
            const std::uint16_t expected =
                column == columns
                    ? std::uint16_t{0}
                    : source.data[row * source.row_stride + column * source.column_stride];
            ASSERT_EQ(packed[static_cast<std::size_t>(at)], expected) << columns << " " << rows;
          }
        }
      }
    }
  }
}

TEST_F(PairKernels, ZipPutsRowsInPairsAndFindsWhatIsNotFinite) {
  std::mt19937_64 random(2);
  for (const Index columns : {1, 32, 37}) {
    for (const Index rows : {1, 2, 7, 8}) {
      Bits from = random_bits(rows * columns, random);
      Bits pairs(static_cast<std::size_t>((rows + 1) * columns));
      const auto zip = [&] {
        simd::pair_kernels<float>()->zip({from.data(), columns, 1}, rows, columns, pairs.data());
        return simd::pair_kernels<float>()->all_finite(pairs.data(),
                                                       static_cast<Index>(pairs.size()));
      };
      EXPECT_TRUE(zip());
      for (Index row = 0; row < rows + rows % 2; ++row) {
        for (Index column = 0; column < columns; ++column) {
          const auto at = static_cast<std::size_t>(row / 2 * 2 * columns + 2 * column + row % 2);
          EXPECT_EQ(pairs[at],
                    row == rows ? 0 : from[static_cast<std::size_t>(row * columns + column)]);
        }
      }
      for (std::size_t i = 0; i < from.size(); ++i) {
        const auto before = from[i];
        for (const unsigned poison : {0x7f80u, 0xff80u, 0x7fffu, 0xff81u}) {
          from[i] = static_cast<std::uint16_t>(poison);
          EXPECT_FALSE(zip()) << i;
        }
        from[i] = 0x7f7f;
        EXPECT_TRUE(zip());
        from[i] = before;
      }
    }
  }
}

TEST_F(PairKernels, WeightsAreRoundedPowersThatSumUp) {
  // One query of one dimension, so that scores are the keys; values 1 and the key's number.
  const Index count = 96;
  Bits keys(2 * 96), packed(2 * 64), values(96 * 2 + 64);
  std::vector<double> scores;
  for (Index i = 0; i < count; ++i) {
    const bfloat16 key(static_cast<float>(-i) * 0.17f);
    keys[static_cast<std::size_t>(2 * i)] = key.bits;
    scores.push_back(static_cast<double>(float{key}));
    values[static_cast<std::size_t>(i / 2 * 4 + i % 2)] = bfloat16(1.f).bits;
    values[static_cast<std::size_t>(i / 2 * 4 + 2 + i % 2)] = bfloat16(static_cast<float>(i)).bits;
  }
  for (std::size_t lane = 0; lane < 64; ++lane) packed[2 * lane] = bfloat16(1.f).bits;
  std::vector<float> scratch(96 * 64), output(2 * 64), sum(64);
  std::vector<float> maximum(64, std::numeric_limits<float>::lowest());
  const simd::SoftmaxState<float> state{maximum.data(), sum.data(), output.data()};
  const simd::PairQueries<float> queries{packed.data(), scratch.data(), 1.f, 64, 1, 2};
  simd::PairKeys block;
  block.keys = {keys.data(), 2, 1};
  block.values = values.data();
  block.count = count;
  simd::pair_kernels<float>()->attend(block, queries, state, true);
  double total = 0, weighted = 0, size = 0;
  for (std::size_t i = 0; i < 96; ++i) {
    total += std::exp2(scores[i]);
    weighted += std::exp2(scores[i]) * static_cast<double>(i);
    size += std::exp2(scores[i]) * static_cast<double>(i);
  }
  for (std::size_t lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(maximum[lane], 0.f);
    EXPECT_NEAR(sum[lane], total, total * 1.1 * 0x1p-8);
    EXPECT_NEAR(output[lane], sum[lane], 1e-5) << "the weights of the values are those of the sum";
    EXPECT_NEAR(output[64 + lane], weighted, size * 1.1 * 0x1p-8);
  }
}

TEST_F(PairKernels, BlocksInOneCallAreThoseOfCallsOneByOne) {
  constexpr Index blocks = 3, dim = 32;
  for (const auto isa : bfloat16_sets()) {
    const RestoreSettings restore;
    simd::use(isa);
    const auto* kernels = simd::pair_kernels<float>();
    if (kernels == nullptr) continue;
    std::mt19937_64 random(3);
    const Bits rows = random_bits(64 * dim, random), all = random_bits(blocks * 96 * dim, random);
    Bits packed(64 * dim), turned(blocks * 96 * 64);
    kernels->pack({rows.data(), dim, 1}, 64, dim, packed.data());
    for (Index i = 0; i < blocks; ++i) {
      kernels->turn({all.data() + i * 96 * dim, dim, 1}, 96, dim, turned.data() + i * 96 * 64);
    }
    for (const Index count : {64, 48, 20, 16}) {  // 48, 16: the last queries share their place
      SCOPED_TRACE(std::string(simd::name(isa)) + " " + std::to_string(count));
      const auto attended = [&](Index together) {
        std::vector<float> scratch(96 * 64), output(dim * 64), sum(64);
        std::vector<float> maximum(64, std::numeric_limits<float>::lowest());
        const simd::SoftmaxState<float> state{maximum.data(), sum.data(), output.data()};
        for (Index i = 0; i < blocks; i += together) {
          simd::PairKeys block;
          block.keys = {all.data() + i * 96 * dim, dim, 1};
          block.count = block.arranged = 96;
          block.values = turned.data() + i * 96 * 64;
          block.values_step = 96 * 64;
          block.blocks = together;
          kernels->attend(block, {packed.data(), scratch.data(), 0.1f, count, dim, dim}, state,
                          i == 0);
        }
        sum.insert(sum.end(), output.begin(), output.end());
        return sum;
      };
      EXPECT_EQ(attended(blocks), attended(1));
    }
  }
}

}  // namespace
}  // namespace heed::test
