// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/kernels/attention_kernels.hpp>

#include "support/attention_cases.hpp"
#include "support/tile_emulator.hpp"

namespace heed::test {
namespace {

using simd::Isa;

/// The operands of a product on tiles, whose rows are longer than what is multiplied.
struct Product {
  Index rows, lanes, depth;
  std::vector<std::uint16_t> a, b;
  std::vector<float> sums;

  Index a_row() const { return depth + 5; }
  Index b_row() const { return 2 * lanes + 3; }
  Index sums_row() const { return lanes + 1; }

  /// `value(bits)`: a random bfloat16.
  template <class Value>
  Product(Index row_count, Index lane_count, Index terms, std::mt19937& random, const Value& value)
      : rows(row_count), lanes(lane_count), depth(terms) {
    a.resize(static_cast<std::size_t>(rows * a_row()));
    b.resize(static_cast<std::size_t>(depth / 2 * b_row()));
    sums.resize(static_cast<std::size_t>(rows * sums_row()));
    for (auto& x : a) x = value(random);
    for (auto& x : b) x = value(random);
    for (float& x : sums) {
      const std::uint32_t bits = std::uint32_t{value(random)} << 16 | (random() & 0xffff);
      std::memcpy(&x, &bits, sizeof x);
    }
  }
  void run(Isa isa, bool accumulate) {
    const RestoreSettings restore;
    isa == Isa::amx ? AmxForTests::use() : simd::use(isa);
    simd::tile_kernel<float>()(a.data(), a_row(), rows, b.data(), b_row(), lanes, depth,
                               sums.data(), sums_row(), accumulate);
  }
  float sum(Index row, Index lane) const {
    return sums[static_cast<std::size_t>(row * sums_row() + lane)];
  }
};

float wide(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return flushed(value);
}

/// One sum by the definition (TileKernel).
float defined(const Product& p, Index row, Index lane, bool accumulate) {
  float sum = accumulate ? p.sum(row, lane) : 0;
  for (Index from = 0; from < p.depth; from += 32) {
    float chains[2] = {0, 0};
    for (Index k = from; k < from + 32; ++k) {
      float& chain = chains[k % 2];
      chain = flushed_fma(wide(p.a[static_cast<std::size_t>(row * p.a_row() + k)]),
                          wide(p.b[static_cast<std::size_t>(k / 2 * p.b_row() + 2 * lane + k % 2)]),
                          chain);
    }
    sum = flushed(flushed(sum) + flushed(chains[0] + chains[1]));
  }
  return sum;
}

/// The same bits, or both NaN.
bool same(float x, float y) {
  return std::isnan(x) ? std::isnan(y) : std::memcmp(&x, &y, sizeof x) == 0;
}

/// Exponents from `lowest` on, `span` of them; denormal numbers, zeros, NaN and infinity one time
/// in `special`.
auto numbers(int lowest, unsigned span, unsigned special) {
  return [=](std::mt19937& random) {
    const auto bits = static_cast<std::uint32_t>(random());
    const std::uint32_t sign = bits & 0x8000, mantissa = bits & 0x7f;
    if (special != 0 && bits / 0x10000 % special == 0) {
      const std::uint32_t choices[] = {0, mantissa, 0x7f80, 0x7fc0 | mantissa};
      return static_cast<std::uint16_t>(sign | choices[random() % 4]);
    }
    const auto exponent =
        static_cast<std::uint32_t>(lowest) + static_cast<std::uint32_t>(random()) % span;
    return static_cast<std::uint16_t>(sign | exponent << 7 | mantissa);
  };
}

/// Calls check(product, accumulate) for numbers and shapes of all kinds.
template <class Check>
void for_products(const Check& check) {
  std::mt19937 random(900);
  const auto each = [&](const auto& value) {
    for (const Index rows : {16, 32, 48, 64, 80, 96}) {
      for (const bool accumulate : {false, true}) {
        check(Product(rows, rows % 32 == 0 ? 16 : 48, 32 * (1 + rows / 32), random, value),
              accumulate);
      }
    }
  };
  each(numbers(120, 14, 0));
  each(numbers(40, 170, 0));   // wide: some sums overflow
  each(numbers(40, 46, 8));    // products and sums around the smallest normal number
  each(numbers(100, 50, 60));  // NaN and infinity
}

TEST(Tiles, OtherSetsHaveNone) {
  const RestoreSettings restore;
  for (const Isa isa : supported_sets()) {
    simd::use(isa);
    EXPECT_EQ(simd::tile_kernel<float>(), nullptr) << simd::name(isa);
  }
}

TEST(Tiles, TheTwinIsTheDefinition) {
  if (!simd::supported(Isa::amx_twin)) GTEST_SKIP() << "no amx_twin here";
  Index denormal = 0, infinite = 0, nan = 0;
  for_products([&](const Product& given, bool accumulate) {
    Product p = given;
    p.run(Isa::amx_twin, accumulate);
    for (Index row = 0; row < p.rows; ++row) {
      for (Index lane = 0; lane < p.lanes; ++lane) {
        const float expected = defined(given, row, lane, accumulate);
        ASSERT_TRUE(same(p.sum(row, lane), expected)) << row << " " << lane << " " << expected;
        denormal += std::fpclassify(given.sum(row, lane)) == FP_SUBNORMAL;
        infinite += std::isinf(expected);
        nan += std::isnan(expected);
      }
      ASSERT_TRUE(same(p.sum(row, p.lanes), given.sum(row, p.lanes))) << "written beside the sums";
    }
  });
  EXPECT_GT(denormal, 0);
  EXPECT_GT(infinite, 0);
  EXPECT_GT(nan, 0);
}

TEST(Tiles, TheProcessorComputesWhatTheTwinDoes) {
  const AmxForTests amx;
  if (!amx.runs()) GTEST_SKIP() << "no amx here, nor avx512_bf16 to emulate it";
  for_products([&](const Product& given, bool accumulate) {
    Product p = given, q = given;
    p.run(Isa::amx, accumulate);
    q.run(Isa::amx_twin, accumulate);
    for (std::size_t i = 0; i < p.sums.size(); ++i) ASSERT_TRUE(same(p.sums[i], q.sums[i])) << i;
  });
}

TEST(Tiles, WhatIsBelowTheSmallestNormalNumberIsZero) {
  // 2^-126 - f · 2^-150: with f above 1/2, a float whose exponent had no limit would be below
  // 2^-126, where one that rounds to denormal numbers would be 2^-126.
  const AmxForTests amx;
  for (const double f : {0.25, 0.5, 0.75, 0.875, 1., 1.25}) {
    std::mt19937 random(902);
    const auto zero = [](std::mt19937&) { return std::uint16_t{0}; };
    Product given(16, 16, 32, random, zero);
    for (float& sum : given.sums) sum = 0;
    given.a[0] = given.b[0] = bfloat16(0x1p-63f).bits;
    given.a[2] = bfloat16(static_cast<float>(-f) * 0x1p-75f).bits;
    given.b[static_cast<std::size_t>(given.b_row())] = bfloat16(0x1p-75f).bits;
    const float expected = f > 0.5 ? 0 : 0x1p-126f;
    EXPECT_EQ(defined(given, 0, 0, false), expected) << f;
    for (const Isa isa : {Isa::amx, Isa::amx_twin}) {
      if (isa == Isa::amx ? !amx.runs() : !simd::supported(isa)) continue;
      Product p = given;
      p.run(isa, false);
      EXPECT_EQ(p.sum(0, 0), expected) << simd::name(isa) << " " << f;
    }
  }
}

#if defined(__x86_64__)
TEST(Tiles, TheModeOfTheCallerStays) {
  const AmxForTests amx;
  std::mt19937 random(903);
  const Product given(16, 16, 32, random, numbers(40, 46, 8));
  const unsigned before = __builtin_ia32_stmxcsr();
  for (const Isa isa : {Isa::amx, Isa::amx_twin}) {
    if (isa == Isa::amx ? !amx.runs() : !simd::supported(isa)) continue;
    Product p = given;
    p.run(isa, true);
    EXPECT_EQ(__builtin_ia32_stmxcsr() & ~0x3fu, before & ~0x3fu) << simd::name(isa);
    const RestoreSettings restore;
    isa == Isa::amx ? AmxForTests::use() : simd::use(isa);
    Tensor<bfloat16, 4> tokens({1, 2, 40, 32}), out({1, 2, 1, 32});
    for (bfloat16& x : tokens) x = 0.5f;
    attention(tokens.view().slice(2, 0, 1), tokens, tokens, out);  // values by vectors
    EXPECT_EQ(__builtin_ia32_stmxcsr() & ~0x3fu, before & ~0x3fu) << simd::name(isa);
  }
}
#endif

TEST(Tiles, ThreadsAndChildrenMayUseThem) {
  const AmxForTests amx;
  if (!amx.runs()) GTEST_SKIP() << "no amx here, nor avx512_bf16 to emulate it";
  std::mt19937 random(901);
  const Product given(32, 32, 64, random, numbers(120, 14, 0));
  const auto right = [&] {
    Product p = given;
    p.run(Isa::amx, false);
    for (Index i = 0; i < 32 * 32; ++i) {
      if (!same(p.sum(i / 32, i % 32), defined(given, i / 32, i % 32, false))) return false;
    }
    return true;
  };
  bool in_thread = false;
  std::thread([&] { in_thread = right(); }).join();
  EXPECT_TRUE(in_thread);
  const pid_t child = fork();
  if (child == 0) _exit(right() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace heed::test
