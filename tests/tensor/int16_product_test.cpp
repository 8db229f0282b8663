// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/tensor/matrix_product.hpp>

#include "support/attention_cases.hpp"
#include "support/product_cases.hpp"
#include "support/tile_emulator.hpp"

namespace heed {
namespace {

constexpr Index terms = 32;

/// With one that never uses an instruction for integer pairs.
std::vector<simd::Isa> all_sets() {
  auto sets = test::supported_sets();
  if (simd::supported(simd::Isa::amx_twin)) sets.push_back(simd::Isa::amx_twin);
  return sets;
}

int code_of(const Q4_0& block, Index i) {
  return (i < 16 ? block.values[i] & 15 : block.values[i - 16] >> 4) - 8;
}
int code_of(const Q4_1& block, Index i) {
  return i < 16 ? block.values[i] & 15 : block.values[i - 16] >> 4;
}
int code_of(const Q8_0& block, Index i) { return block.values[i]; }
template <class Block>
float least_of(const Block& block) {
  if constexpr (requires { block.least; }) return float_of_half(block.least);
  return 0;
}

/// Blocks of random codes, scales and leasts: weights (columns, rows).
template <class Block>
std::vector<Block> random_blocks(Index count) {
  Random random(3);
  std::vector<Block> blocks(static_cast<std::size_t>(count));
  for (auto& block : blocks) {
    std::uint8_t raw[sizeof(Block)];
    for (auto& byte : raw) byte = static_cast<std::uint8_t>(random.integer(256));
    raw[1] = static_cast<std::uint8_t>(0x20 + random.integer(16));  // a scale of ordinary size
    if (sizeof(Block) == 20) raw[3] = static_cast<std::uint8_t>(0xa0 + random.integer(16));
    std::memcpy(&block, raw, sizeof(Block));
  }
  return blocks;
}

template <class Block>
PackedMatrix<float> packed(const std::vector<Block>& blocks, Index rows, Index columns) {
  return PackedMatrix<float>::transposed_blocks<Block>(std::as_bytes(std::span(blocks)), rows,
                                                       columns, Products::int16);
}

/// A row in blocks, rounded as Int16Rows says.
struct Rounded {
  std::vector<int> values;
  std::vector<float> scales, sums;

  explicit Rounded(std::span<const float> x) {
    for (std::size_t first = 0; first < x.size(); first += terms) {
      const auto block = x.subspan(first, terms);
      float largest = 0;
      for (const float value : block) largest = std::max(largest, std::abs(value));
      int total = 0;
      for (const float value : block) {
        values.push_back(static_cast<int>(std::nearbyint(value * (32767 / largest))));
        total += values.back();
      }
      scales.push_back(largest / 32767);
      sums.push_back(scales.back() * static_cast<float>(total));
    }
  }
};

/// One element of a product, in plain words.
template <class Block>
float element(const Rounded& row, const Block* column, float addend, bool fuses) {
  const auto multiply_add = [&](float a, float b, float c) {
    if (fuses) return std::fma(a, b, c);
    const volatile float product = a * b;
    return product + c;
  };
  float out = addend, partial = 0;
  for (std::size_t i = 0; i < row.scales.size(); ++i) {
    int sum = 0;
    for (Index k = 0; k < terms; ++k) {
      sum += row.values[i * terms + static_cast<std::size_t>(k)] * code_of(column[i], k);
    }
    partial = multiply_add(static_cast<float>(sum) * row.scales[i], float_of_half(column[i].scale),
                           partial);
    if (least_of(column[i]) != 0) {
      partial = multiply_add(row.sums[i], least_of(column[i]), partial);
    }
    if (i % 16 == 15 || i + 1 == row.scales.size()) {
      out += partial;
      partial = 0;
    }
  }
  return out;
}

template <class Block>
void check_bits(Index rows, Index columns, Index count) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", " << count << " rows");
  const auto blocks = random_blocks<Block>(rows / terms * columns);
  const auto matrix = packed(blocks, rows, columns);
  std::mt19937_64 bits(1);
  const auto x = test::random_tensor<float, 2>({count, rows}, bits);
  const auto bias = test::random_tensor<float, 1>({columns}, bits);
  const test::RestoreSettings restore;
  for (const auto isa : all_sets()) {
    simd::use(isa);
    const bool fuses = isa != simd::Isa::sse2 && isa != simd::Isa::scalar;
    Tensor<float, 2> out({count, columns}), twice({count, columns});
    matrix_product(x, matrix, out, {.bias = bias});
    for (Index i = 0; i < count; ++i) {
      const Rounded row(std::span(x.data() + i * rows, static_cast<std::size_t>(rows)));
      for (Index c = 0; c < columns; ++c) {
        ASSERT_EQ(out(i, c), element(row, &blocks[static_cast<std::size_t>(c * (rows / terms))],
                                     bias(c), fuses))
            << simd::name(isa) << " " << i << " " << c;
      }
    }
    matrix_product(x, matrix, twice);
    matrix_product(x, matrix, twice, {.accumulate = true});
    const Rounded row(std::span(x.data(), static_cast<std::size_t>(rows)));
    const float once = element(row, blocks.data(), 0, fuses);
    ASSERT_EQ(twice(0, 0), element(row, blocks.data(), once, fuses));
  }
}

TEST(Int16Product, HasTheBitsOfItsDefinition) {
  for (const Index rows : {32, 96, 512, 1536 + 32}) {
    for (const Index columns : {1, 5, 64, 150}) {
      for (const Index count : {1, 2, 7, 23}) {
        check_bits<Q4_0>(rows, columns, count);
        check_bits<Q4_1>(rows, columns, count);
        check_bits<Q8_0>(rows, columns, count);
      }
    }
  }
}

template <class Block>
void check_tiles() {
  constexpr Index rows = 96, columns = 150, count = 23;
  const auto matrix = packed(random_blocks<Block>(rows / terms * columns), rows, columns);
  std::mt19937_64 bits(4);
  const auto x = test::random_tensor<float, 2>({count, rows}, bits);
  Tensor<float, 2> twin({count, columns}), hardware({count, columns});
  simd::use(simd::Isa::amx_twin);
  matrix_product(x, matrix, twin);
  test::AmxForTests::use();
  matrix_product(x, matrix, hardware);
  EXPECT_TRUE(test::same_bits(hardware, twin));
}

TEST(Int16Product, TilesOfTheProcessorGiveTheBitsOfTheTwin) {
  const test::AmxForTests amx;
  if (!amx.runs()) GTEST_SKIP() << "no amx here, nor avx512_bf16 to emulate it";
  const test::RestoreSettings restore;
  check_tiles<Q4_0>();
  check_tiles<Q4_1>();
  check_tiles<Q8_0>();
}

/// Beside the product with the dequantized weights in double: what the rounding to 16 bits allows.
template <class Block>
void check_error() {
  constexpr Index rows = 576, columns = 70, count = 9;
  const auto blocks = random_blocks<Block>(rows / terms * columns);
  Tensor<float, 2> weights({columns, rows});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].dequantize(weights.data() + static_cast<Index>(i) * terms);
  }
  std::mt19937_64 bits(2);
  auto x = test::random_tensor<float, 2>({count, rows}, bits);
  x(3, 40) = 1000;  // an outlier costs precision in its own block alone
  Tensor<float, 2> out({count, columns});
  matrix_product(x, packed(blocks, rows, columns), out);
  for (Index i = 0; i < count; ++i) {
    for (Index c = 0; c < columns; ++c) {
      double exact = 0, allowed = 0;
      for (Index first = 0; first < rows; first += terms) {
        double largest = 0, magnitude = 0, absolute = 0;
        for (Index k = first; k < first + terms; ++k) {
          const double product = static_cast<double>(x(i, k)) * static_cast<double>(weights(c, k));
          exact += product;
          absolute += std::abs(product);
          magnitude += std::abs(static_cast<double>(weights(c, k)));
          largest = std::max(largest, std::abs(static_cast<double>(x(i, k))));
        }
        allowed += largest / 65534 * magnitude + 4e-6 * absolute;
      }
      ASSERT_NEAR(static_cast<double>(out(i, c)), exact, allowed) << i << " " << c;
    }
  }
}

TEST(Int16Product, IsWithin16BitsOfTheDequantizedOne) {
  check_error<Q4_0>();
  check_error<Q4_1>();
  check_error<Q8_0>();
}

TEST(Int16Product, ARowHasTheSameBitsInAnyCompany) {
  constexpr Index rows = 544, columns = 300, count = 1000;  // more rows than are rounded at once
  const auto matrix = packed(random_blocks<Q4_1>(rows / terms * columns), rows, columns);
  test::expect_rows_in_any_company(matrix, count, all_sets());
}

TEST(Int16Product, WritesThroughAnyStrides) {
  constexpr Index rows = 64, columns = 70, count = 8;
  const auto matrix = packed(random_blocks<Q8_0>(rows / terms * columns), rows, columns);
  std::mt19937_64 bits(5);
  const auto x = test::random_tensor<float, 2>({count, rows}, bits);
  const auto expected = matrix_product(x, matrix);
  Tensor<float, 2> across({columns, count});
  matrix_product(x, matrix, across.view().permute({1, 0}));
  EXPECT_TRUE(test::same_bits(Tensor<float, 2>::copy_of(across.view().permute({1, 0})), expected));
}

TEST(Int16Product, NotFiniteNumbersStayInTheirRow) {
  constexpr Index rows = 64, columns = 70;
  const auto matrix = packed(random_blocks<Q4_0>(rows / terms * columns), rows, columns);
  std::mt19937_64 bits(6);
  auto x = test::random_tensor<float, 2>({7, rows}, bits);
  const test::RestoreSettings restore;
  for (const auto isa : all_sets()) {
    simd::use(isa);
    auto spoiled = Tensor<float, 2>::copy_of(x);
    const auto before = matrix_product(x, matrix);
    spoiled(1, 3) = std::numeric_limits<float>::quiet_NaN();
    spoiled(2, 40) = std::numeric_limits<float>::infinity();
    for (Index k = 0; k < rows; ++k) spoiled(4, k) = 0;
    for (Index k = 0; k < rows; ++k) spoiled(5, k) = 1e-38f;
    const auto after = matrix_product(spoiled, matrix);
    for (Index c = 0; c < columns; ++c) {
      ASSERT_TRUE(std::isnan(after(1, c)) && std::isnan(after(2, c))) << simd::name(isa);
      ASSERT_EQ(after(4, c), 0);
      ASSERT_LT(std::abs(after(5, c)), 1e-30f);
      for (const Index row : {0, 3, 6}) ASSERT_EQ(after(row, c), before(row, c));
    }
  }
}

}  // namespace
}  // namespace heed
