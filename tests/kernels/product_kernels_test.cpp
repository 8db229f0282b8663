// SPDX-License-Identifier: MIT
#include <heed/kernels/product_kernels.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include <heed/core/random.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class ProductKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// Small integers: exact in any order.
template <class T>
void check_tile(Index rows, Index columns, Index depth) {
  Tensor<T, 2> a({rows, depth}), b({depth, columns}), out({rows, columns}), addend({rows, columns});
  for (Index i = 0; i < a.size(); ++i) a.data()[i] = static_cast<T>(i % 7 - 3);
  for (Index i = 0; i < b.size(); ++i) b.data()[i] = static_cast<T>(i % 5 - 2);
  for (Index i = 0; i < addend.size(); ++i) addend.data()[i] = static_cast<T>(i % 11);
  std::vector<T> packed(static_cast<std::size_t>(64 * depth), std::numeric_limits<T>::quiet_NaN());
  const auto& kernels = simd::product_kernels<T>();
  kernels.pack({b.data(), columns, 1}, depth, columns, packed.data());
  kernels.piece({{a.data(), depth, 1},
                 packed.data(),
                 64,
                 {addend.data(), columns, 1},
                 out.data(),
                 columns,
                 1,
                 rows,
                 columns,
                 depth});
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      T sum = addend(i, j);
      for (Index k = 0; k < depth; ++k) sum += a(i, k) * b(k, j);
      ASSERT_EQ(out(i, j), sum) << rows << " " << columns << " " << i << " " << j;
    }
  }
}

TEST_P(ProductKernels, TilesOfEveryShape) {
  for (Index rows = 1; rows <= 6; ++rows) {
    for (Index columns = 1; columns <= 64; ++columns) {
      check_tile<float>(rows, columns, 9);
      check_tile<double>(rows, columns, 5);
    }
  }
}

/// A few rows by a b that lies by columns, with NaN between them: the bits of the tile by its
/// transpose.
template <class T>
void check_lying_piece(Index rows, Index columns, Index depth) {
  Random random(1);
  const Index stride = depth + 3;
  Tensor<T, 2> a({rows, depth}), b({columns, stride}), out({rows, columns}), expected(out);
  for (T& value : a) value = static_cast<T>(random.normal());
  for (Index column = 0; column < columns; ++column) {
    for (Index k = 0; k < stride; ++k) {
      b(column, k) =
          k < depth ? static_cast<T>(random.normal()) : std::numeric_limits<T>::quiet_NaN();
    }
  }
  std::vector<T> packed(static_cast<std::size_t>(64 * depth));
  const auto& kernels = simd::product_kernels<T>();
  kernels.pack({b.data(), 1, stride}, depth, columns, packed.data());
  const auto piece = [&](const T* right, Index right_stride, T* to) {
    return simd::ProductPiece<T>{
        {a.data(), depth, 1}, right, right_stride, {}, to, columns, 1, rows, columns, depth};
  };
  kernels.piece(piece(packed.data(), 64, expected.data()));
  for (const bool prefetches : {false, true}) {
    for (T& value : out) value = std::numeric_limits<T>::quiet_NaN();
    auto lying = piece(b.data(), stride, out.data());
    if (prefetches) lying.next = b.data();
    kernels.lying_piece(lying);
    for (Index i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out.data()[i], expected.data()[i]) << rows << " " << columns << " " << depth;
    }
  }
}

TEST_P(ProductKernels, LyingTilesOfEveryShape) {
  const auto check = [](auto number) {
    using T = decltype(number);
    for (Index rows = 1; rows <= simd::product_kernels<T>().lying_rows; ++rows) {
      for (Index columns = 1; columns <= 64; ++columns) {
        for (const Index depth : {0, 1, 7, 16, 37}) check_lying_piece<T>(rows, columns, depth);
      }
    }
  };
  check(1.f);
  check(1.);
}

INSTANTIATE_TEST_SUITE_P(Sets, ProductKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
