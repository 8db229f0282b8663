// SPDX-License-Identifier: MIT
#include <heed/tensor/packed_matrix.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/tensor/matrix_product.hpp>

#include "support/attention_cases.hpp"

namespace heed {
namespace {

template <class T>
void check_layout(Index rows, Index columns) {
  Tensor<T, 2> matrix({rows, columns});
  for (Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = static_cast<T>(i + 1);
  const PackedMatrix<T> packed(matrix);
  const auto across = Tensor<T, 2>::copy_of(matrix.view().permute({1, 0}));
  const PackedMatrix<T> from_transpose(across.view().permute({1, 0}));
  EXPECT_EQ(packed.rows(), rows);
  EXPECT_EQ(packed.columns(), columns);
  for (Index row = 0; row < rows; ++row) {
    for (Index column = 0; column < columns; ++column) {
      const Index at = (column / 64 * rows + row) * 64 + column % 64;
      ASSERT_EQ(packed.data()[at], matrix(row, column));
      ASSERT_EQ(from_transpose.data()[at], matrix(row, column));
    }
  }
}

TEST(PackedMatrix, HoldsPanelsOf64Columns) {
  check_layout<float>(3, 5);
  check_layout<float>(70, 64);
  check_layout<double>(33, 150);
}

TEST(PackedMatrix, IsACopy) {
  Tensor<float, 2> matrix({2, 2}, {1, 2, 3, 4});
  const PackedMatrix<float> packed(matrix);
  matrix(0, 0) = 9;
  EXPECT_EQ(packed.data()[0], 1);
}

TEST(PackedMatrix, MayBeEmpty) {
  EXPECT_TRUE(PackedMatrix<float>().empty());
  EXPECT_TRUE(PackedMatrix<float>(Tensor<float, 2>({0, 3})).empty());
  EXPECT_EQ(PackedMatrix<float>(Tensor<float, 2>({0, 3})).columns(), 3);
}

/// Blocks of random codes, scales and leasts, and the matrix (columns, rows) that they stand for.
template <class Block>
struct RandomBlocks {
  std::vector<std::byte> bytes;
  Tensor<float, 2> matrix;

  RandomBlocks(Index rows, Index columns) : matrix({columns, rows}) {
    Random random(3);
    for (Index i = 0; i < rows * columns / 32; ++i) {
      std::uint8_t raw[sizeof(Block)];
      for (auto& byte : raw) byte = static_cast<std::uint8_t>(random.integer(256));
      raw[1] = static_cast<std::uint8_t>(0x20 + random.integer(16));  // a scale of ordinary size
      if (sizeof(Block) == 20) raw[3] = static_cast<std::uint8_t>(0xa0 + random.integer(16));
      Block block;
      std::memcpy(&block, raw, sizeof(Block));
      block.dequantize(matrix.data() + 32 * i);
      const auto* from = reinterpret_cast<const std::byte*>(raw);
      bytes.insert(bytes.end(), from, from + sizeof(Block));
    }
  }
};

/// Weights of 16 bits: subnormal, infinite and NaN too.
template <class Number>
struct RandomNumbers {
  std::vector<std::byte> bytes;
  Tensor<float, 2> matrix;

  RandomNumbers(Index rows, Index columns) : matrix({columns, rows}) {
    Random random(3);
    for (float& weight : matrix) {
      Number number(static_cast<float>(random.normal()));
      if (random.integer(400) == 0) number.bits = static_cast<std::uint16_t>(random.integer(65536));
      weight = static_cast<float>(number);
      const auto* from = reinterpret_cast<const std::byte*>(&number.bits);
      bytes.insert(bytes.end(), from, from + 2);
    }
  }
};
template <>
struct RandomBlocks<bfloat16> : RandomNumbers<bfloat16> {
  using RandomNumbers::RandomNumbers;
};
template <>
struct RandomBlocks<float16> : RandomNumbers<float16> {
  using RandomNumbers::RandomNumbers;
};

/// The same bits, except that any NaN equals any other: which of two goes on is open.
bool same_numbers(const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
    return std::isnan(x) ? std::isnan(y) : std::memcmp(&x, &y, sizeof(x)) == 0;
  });
}

/// Some columns of a packed matrix give the same bits as all of them.
void check_columns(const PackedMatrix<float>& packed) {
  std::mt19937_64 bits(1);
  const Index last = packed.columns();
  const auto x = test::random_tensor<float, 2>({3, packed.rows()}, bits);
  Tensor<float, 2> whole({3, last});
  matrix_product(x, packed, whole);
  for (const auto& [first, end] : {std::pair<Index, Index>{0, 64}, {64, 192}, {128, last}}) {
    const auto part = packed.columns(first, end);
    EXPECT_EQ(part.is_quantized(), packed.is_quantized());
    EXPECT_LT(part.byte_count(), packed.byte_count());
    Tensor<float, 2> out({3, end - first});
    matrix_product(x, part, out);
    EXPECT_TRUE(same_numbers(out, Tensor<float, 2>::copy_of(whole.view().slice(1, first, end))));
  }
  EXPECT_TRUE(packed.columns(64, 64).empty());
  EXPECT_THROW(packed.columns(1, 64), ShapeError);
  EXPECT_THROW(packed.columns(0, 65), ShapeError);
  EXPECT_THROW(packed.columns(128, 64), ShapeError);
  EXPECT_THROW(packed.columns(0, last + 1), ShapeError);
}

template <class Block>
PackedMatrix<float> packed_blocks(Index rows, Index columns) {
  const RandomBlocks<Block> blocks(rows, columns);
  return PackedMatrix<float>::transposed_blocks<Block>(std::span(blocks.bytes), rows, columns);
}

TEST(PackedMatrix, CanBeCutBetweenPanels) {
  std::mt19937_64 bits(2);
  check_columns(PackedMatrix<float>(test::random_tensor<float, 2>({33, 200}, bits)));
  check_columns(packed_blocks<Q4_1>(64, 200));
  check_columns(packed_blocks<Q8_0>(64, 200));
  check_columns(packed_blocks<bfloat16>(33, 256));
}

template <class Block>
void check_blocks(Index rows, Index columns) {
  const RandomBlocks<Block> blocks(rows, columns);
  const auto packed =
      PackedMatrix<float>::transposed_blocks<Block>(std::span(blocks.bytes), rows, columns);
  EXPECT_TRUE(packed.is_quantized());
  EXPECT_FALSE(packed.empty());
  const auto weights = blocks.matrix.view().permute({1, 0});
  std::mt19937_64 bits(1);
  const test::RestoreSettings restore;
  for (const Index count : {1, 2, 6, 7, 100}) {
    const auto x = test::random_tensor<float, 2>({count, rows}, bits);
    const auto bias = test::random_tensor<float, 1>({columns}, bits);
    for (const auto isa : test::supported_sets()) {
      simd::use(isa);
      Tensor<float, 2> out({count, columns}), expected({count, columns});
      matrix_product(x, packed, out, {.bias = bias});
      matrix_product(x, weights, expected, {.bias = bias});
      ASSERT_TRUE(same_numbers(out, expected)) << rows << " x " << columns << ", " << count;
      matrix_product(x, packed, out, {.accumulate = true});
      matrix_product(x, weights, expected, {.accumulate = true});
      ASSERT_TRUE(same_numbers(out, expected));
    }
  }
}

TEST(PackedMatrix, ProductsWithBlocksHaveTheBitsOfTheDequantizedMatrix) {
  for (const Index rows : {32, 96, 512, 1536 + 32}) {
    for (const Index columns : {1, 5, 64, 300}) {
      check_blocks<Q4_0>(rows, columns);
      check_blocks<Q4_1>(rows, columns);
      check_blocks<Q8_0>(rows, columns);
    }
  }
}

TEST(PackedMatrix, ProductsWith16BitsHaveTheBitsOfTheWidenedMatrix) {
  for (const Index rows : {1, 2, 33, 512, 1536 + 31}) {
    for (const Index columns : {1, 5, 64, 300}) {
      check_blocks<bfloat16>(rows, columns);
      check_blocks<float16>(rows, columns);
    }
  }
}

TEST(PackedMatrix, ProductsThatBlocksLackAreExact) {
  const RandomBlocks<float16> blocks(33, 70);
  const auto with = [&](Products products) {
    return PackedMatrix<float>::transposed_blocks<float16>(std::span(blocks.bytes), 33, 70,
                                                           products);
  };
  for (const Index rows : {1, 5, 20}) {
    Tensor<float, 2> a({rows, 33}), exact({rows, 70});
    for (Index i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i % 7) - 3;
    matrix_product(a, with(Products::exact), exact);
    for (const auto products : {Products::int16, Products::bfloat16}) {
      Tensor<float, 2> out({rows, 70});
      out.fill(-1);
      matrix_product(a, with(products), out);
      EXPECT_TRUE(same_numbers(out, exact)) << rows;
    }
  }
}

TEST(PackedMatrix, Bfloat16TakesTwoBytesAWeight) {
  const std::vector<std::byte> bytes(2 * 129 * 64);
  const auto packed = PackedMatrix<float>::transposed_blocks<bfloat16>(std::span(bytes), 129, 64);
  EXPECT_EQ(packed.byte_count(), 2 * 160 * 64) << "whole blocks of 32";
  EXPECT_EQ(PackedMatrix<float>(Tensor<float, 2>({129, 64})).byte_count(), 4 * 129 * 64);
}

TEST(PackedMatrix, OfBfloat16HasTheBitsOfItsBlocksAndOfFloats) {
  for (const Index depth : {1, 33, 700}) {
    for (const Index columns : {1, 64, 130}) {
      Tensor<bfloat16, 2> narrow({columns, depth});
      Tensor<float, 2> wide({columns, depth});
      for (Index i = 0; i < wide.size(); ++i) {
        narrow.data()[i] = bfloat16(static_cast<float>(i % 23) / 7 - 1);
        wide.data()[i] = narrow.data()[i];
      }
      Tensor<float, 2> a({5, depth}), out({5, columns}), expected({5, columns});
      for (Index i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i % 7) / 3 - 1;
      for (const auto products : {Products::exact, Products::bfloat16}) {
        const PackedMatrix<float> packed(narrow.view().transpose(), products);
        EXPECT_EQ(packed.byte_count(),
                  PackedMatrix<float>(wide.view().transpose(), Products::bfloat16).byte_count());
        matrix_product(a, packed, out);
        matrix_product(a, wide.view().transpose(), expected, {.products = products});
        EXPECT_TRUE(same_numbers(out, expected)) << depth << " " << columns;
      }
    }
  }
}

TEST(PackedMatrix, RefusesBlocksThatDoNotFit) {
  const std::vector<std::byte> bytes(20 * 6);
  const auto pack = [&](Index rows, Index columns) {
    return PackedMatrix<float>::transposed_blocks<Q4_1>(std::span(bytes), rows, columns);
  };
  EXPECT_EQ(pack(64, 3).rows(), 64);
  for (const auto& [rows, columns] : std::vector<std::pair<Index, Index>>{
           {64, 2}, {64, 4}, {33, 3}, {0, 3}, {64, 0}, {64, -3}, {Index{1} << 62, 3}}) {
    EXPECT_THROW(pack(rows, columns), ShapeError) << rows << " x " << columns;
  }
  EXPECT_THROW(PackedMatrix<float>::transposed_blocks<bfloat16>(std::span(bytes), 30, 3),
               ShapeError);
}

TEST(PackedMatrix, MovedFromIsEmpty) {
  PackedMatrix<float> packed(Tensor<float, 2>({4, 5}));
  const PackedMatrix<float> moved = std::move(packed);
  EXPECT_EQ(moved.rows(), 4);
  EXPECT_EQ(moved.columns(), 5);
  // NOLINTNEXTLINE(bugprone-use-after-move): the moved-from state is promised
  EXPECT_TRUE(packed.empty());
  Tensor<float, 2> a({3, 4}), out({3, 5});
  EXPECT_THROW(matrix_product(a, packed, out), ShapeError);
}

}  // namespace
}  // namespace heed
