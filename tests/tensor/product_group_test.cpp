// SPDX-License-Identifier: MIT
#include <heed/tensor/matrix_product.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <heed/core/quantized.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

template <class T>
Tensor<T, 2> poisoned(Index rows, Index columns) {
  Tensor<T, 2> out({rows, columns});
  for (T& value : out) value = std::numeric_limits<T>::quiet_NaN();
  return out;
}

/// A view, a transposed view, a packed matrix with a bias and one that is added to: in a group, and
/// one by one.
template <class T>
void expect_same_bits(Index rows, Index depth) {
  SCOPED_TRACE(testing::Message() << rows << " x " << depth << ", " << thread_count()
                                  << " threads");
  const auto a = random_matrix<T>(rows, depth, 1);
  const auto b = random_matrix<T>(depth, 200, 2), c = random_matrix<T>(65, depth, 3);
  const PackedMatrix<T> d(random_matrix<T>(depth, 130, 4));
  const auto e = random_matrix<T>(depth, 1, 5), biases = random_matrix<T>(1, 130, 6);
  const ProductOptions<T> biased{.bias = TensorView<const T, 1>(biases.data(), {130})};
  auto of_b = poisoned<T>(rows, 200), of_c = poisoned<T>(rows, 65), of_d = poisoned<T>(rows, 130);
  auto of_e = random_matrix<T>(rows, 1, 7);
  ProductGroup<T> group(a);
  group.add(b, of_b);
  group.add(c.view().permute({1, 0}), of_c);
  group.add(d, of_d, biased);
  group.add(e, of_e, {.accumulate = true});
  EXPECT_TRUE(std::isnan(of_b(0, 0))) << "nothing is written before it runs";
  group.run();
  auto expected = poisoned<T>(rows, 130);
  matrix_product(a, d, expected, biased);
  EXPECT_TRUE(same_bits(of_b, matrix_product(a, b)));
  EXPECT_TRUE(same_bits(of_c, matrix_product(a, c.view().permute({1, 0}))));
  EXPECT_TRUE(same_bits(of_d, expected));
  auto sum = random_matrix<T>(rows, 1, 7);
  matrix_product(a, e, sum, {.accumulate = true});
  EXPECT_TRUE(same_bits(of_e, sum));
}

TEST(ProductGroup, SameBitsAsOneByOne) {
  const RestoreSettings restore;
  for (const Index threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (const Index rows : {1, 2, 13, 100}) {
      for (const Index depth : {1, 64, 700}) {
        expect_same_bits<float>(rows, depth);
        expect_same_bits<double>(rows, depth);
      }
    }
  }
}

PackedMatrix<float> quantized(Index rows, Index columns, Products products, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<Q4_1> blocks(static_cast<std::size_t>(columns * rows / 32));
  for (Q4_1& block : blocks) {
    for (auto& pair : block.values) pair = static_cast<std::uint8_t>(bits());
    block.scale = 0x2000;  // 1/128
    block.least = 0xac00;  // -1/16
  }
  return PackedMatrix<float>::transposed_blocks<Q4_1>(std::as_bytes(std::span(blocks)), rows,
                                                      columns, products);
}

TEST(ProductGroup, RoundedAndExactProductsTogether) {
  const RestoreSettings restore;
  for (const Index threads : {1, 2}) {
    set_thread_count(threads);
    for (const Index rows : {1, 9, 800}) {  // 800: rounded in two runs of rows
      const auto a = random_matrix<float>(rows, 320, 1);
      const auto first = quantized(320, 192, Products::int16, 2);
      const auto second = quantized(320, 65, Products::exact, 3);
      const auto third = quantized(320, 64, Products::int16, 4);
      auto x = poisoned<float>(rows, 192), y = poisoned<float>(rows, 65),
           z = poisoned<float>(rows, 64);
      ProductGroup<float> group(a);
      group.add(first, x);
      group.add(second, y);
      group.add(third, z);
      group.run();
      EXPECT_TRUE(same_bits(x, matrix_product(a, first))) << rows;
      EXPECT_TRUE(same_bits(y, matrix_product(a, second))) << rows;
      EXPECT_TRUE(same_bits(z, matrix_product(a, third))) << rows;
    }
  }
}

TEST(ProductGroup, NothingOfNoRowsAndNoProducts) {
  const auto a = random_matrix<float>(0, 5, 1), b = random_matrix<float>(5, 4, 2);
  Tensor<float, 2> out({0, 4});
  ProductGroup<float> group(a);
  group.run();
  group.add(b, out);
  group.run();
}

TEST(ProductGroup, WhatDoesNotFitIsRefused) {
  auto a = random_matrix<float>(3, 5, 1), b = random_matrix<float>(5, 4, 2);
  auto x = poisoned<float>(3, 4), y = poisoned<float>(3, 4);
  ProductGroup<float> group(a);
  const auto deeper = random_matrix<float>(6, 4, 3);
  EXPECT_THROW(group.add(deeper, x), ShapeError);
  EXPECT_THROW(group.add(b, y.view().slice(0, 0, 2)), ShapeError);
  EXPECT_THROW(group.add(b, TensorView<float, 2>(a.data(), {3, 4})), ShapeError) << "a is read";
  group.add(b, x);
  EXPECT_THROW(group.add(b, x), ShapeError) << "both write";
  auto c = random_matrix<float>(5, 4, 2);
  const TensorView<const float, 1> bias(x.data(), {4});
  EXPECT_THROW(group.add(c, y, {.bias = bias}), ShapeError) << "the bias is written";
  const TensorView<const float, 2> written(x.data(), {5, 2});
  auto narrow = poisoned<float>(3, 2);
  EXPECT_THROW(group.add(written, narrow), ShapeError) << "its b is written";
  EXPECT_THROW(group.add(c, TensorView<float, 2>(b.data(), {3, 4})), ShapeError) << "b is read";
  std::vector<Tensor<float, 2>> more(ProductGroup<float>::most, Tensor<float, 2>({3, 4}));
  for (std::size_t i = 1; i < more.size(); ++i) group.add(c, more[i]);
  EXPECT_THROW(group.add(c, y), ShapeError) << "one too many";
}

}  // namespace
}  // namespace heed::test
