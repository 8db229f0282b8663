// SPDX-License-Identifier: MIT
#include <heed/tensor/matrix_product.hpp>

#include <gtest/gtest.h>

#include <vector>

#include <heed/tensor/copy.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class MatrixProduct : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

template <class T>
TensorView<const T, 2> transposed(const Tensor<T, 2>& matrix) {
  return matrix.view().permute({1, 0});
}

/// The same values in column-major memory.
template <class T>
Tensor<T, 2> column_major(const Tensor<T, 2>& matrix) {
  return Tensor<T, 2>::copy_of(transposed(matrix));
}

/// Against the product in a wider type, within u · (2 + √n / 4 + …) of Σ |a b|.
template <class T>
void expect_accurate(Index rows, Index depth, Index columns) {
  const auto a = random_matrix<T>(rows, depth, 1), b = random_matrix<T>(depth, columns, 2);
  Tensor<T, 2> out({rows, columns});
  for (T& value : out) value = std::numeric_limits<T>::quiet_NaN();
  matrix_product(a, b, out);
  const double u = std::numeric_limits<T>::epsilon() / 2;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      Wider<T> exact = 0, magnitude = 0;
      for (Index k = 0; k < depth; ++k) {
        const auto term = static_cast<Wider<T>>(a(i, k)) * static_cast<Wider<T>>(b(k, j));
        exact += term;
        magnitude += std::fabs(term);
      }
      const double bound =
          u * (2 + std::sqrt(std::min(depth, Index{512})) / 2) * static_cast<double>(magnitude);
      ASSERT_NEAR(static_cast<double>(out(i, j)), static_cast<double>(exact), bound)
          << rows << " x " << depth << " x " << columns << " at " << i << ", " << j;
    }
  }
}

TEST_P(MatrixProduct, IsAccurateForOddShapes) {
  for (const Index rows : {1, 2, 5, 6, 7, 13, 70}) {
    for (const Index depth : {0, 1, 3, 64, 511, 513}) {
      for (const Index columns : {1, 15, 17, 64, 65, 131}) {
        expect_accurate<float>(rows, depth, columns);
        expect_accurate<double>(rows, depth, columns);
      }
    }
  }
  expect_accurate<float>(3, 5000, 70);
}

template <class T>
void check_row_invariance(Index depth, Index columns) {
  const auto a = random_matrix<T>(70, depth, 3), b = random_matrix<T>(depth, columns, 4);
  const auto weights = column_major(b);  // as layers hold them: (out, in)
  const PackedMatrix<T> packed(b), packed_weights(transposed(weights));
  Tensor<T, 2> whole({70, columns});
  matrix_product(a, b, whole);
  for (Index rows = 1; rows <= 70; ++rows) {
    const Index first = (rows * 7) % (71 - rows);
    const auto some = a.view().slice(0, first, first + rows);
    const auto expected = Tensor<T, 2>::copy_of(whole.view().slice(0, first, first + rows));
    set_thread_count(1 + rows % 3);
    ASSERT_TRUE(same_bits(matrix_product(some, b), expected)) << rows;
    ASSERT_TRUE(same_bits(matrix_product(some, transposed(weights)), expected)) << rows;
    ASSERT_TRUE(same_bits(matrix_product(some, packed), expected)) << rows;
    ASSERT_TRUE(same_bits(matrix_product(some, packed_weights), expected)) << rows;
  }
}

TEST_P(MatrixProduct, ARowHasTheSameBitsWhateverItIsComputedWith) {
  check_row_invariance<float>(100, 70);
  check_row_invariance<float>(1100, 331);
  check_row_invariance<float>(37, 5);
  check_row_invariance<double>(600, 130);
}

TEST_P(MatrixProduct, ThreadsDecideNoBit) {
  const auto a = random_matrix<float>(250, 700, 5), b = random_matrix<float>(700, 300, 6);
  set_thread_count(1);
  const auto expected = matrix_product(a, b);
  for (const Index threads : {2, 3, 5}) {
    set_thread_count(threads);
    EXPECT_TRUE(same_bits(matrix_product(a, b), expected)) << threads;
    EXPECT_TRUE(same_bits(matrix_product(a, PackedMatrix<float>(b)), expected)) << threads;
    EXPECT_TRUE(same_bits(matrix_product(a, transposed(column_major(b))), expected)) << threads;
  }
}

TEST_P(MatrixProduct, AnyStridesGiveTheSameBits) {
  for (const Index rows : {1, 9, 50}) {
    for (const Index columns : {3, 40, 150}) {
      const Index depth = 530;
      const auto a = random_matrix<float>(rows, depth, 7),
                 b = random_matrix<float>(depth, columns, 8);
      const auto expected = matrix_product(a, b);
      Tensor<float, 3> spread_a({rows, depth, 3}), spread_b({depth, columns, 2});
      const auto a3 = spread_a.view().select(2, 1).reverse(0), b2 = spread_b.view().select(2, 1);
      copy(a, a3);
      copy(b, b2.reverse(1));
      EXPECT_TRUE(same_bits(matrix_product(a3, b2.reverse(1)), expected));
      EXPECT_TRUE(same_bits(matrix_product(transposed(column_major(a)), b), expected));
      Tensor<float, 2> across({columns, rows});
      matrix_product(a, b, across.view().permute({1, 0}));
      EXPECT_TRUE(same_bits(column_major(across), expected));
      Tensor<float, 3> spread({rows, columns, 2});
      matrix_product(a, b, spread.view().select(2, 0).reverse(0));
      EXPECT_TRUE(
          same_bits(Tensor<float, 2>::copy_of(spread.view().select(2, 0).reverse(0)), expected));
      for (Index i = 0; i < rows * columns; ++i) ASSERT_EQ(spread.data()[2 * i + 1], 0.f);
    }
  }
}

/// Several panels and tiles on one thread, where rows of a are copied next to each other.
TEST_P(MatrixProduct, AnyStridesOfWideProductsGiveTheSameBits) {
  set_thread_count(1);
  for (const Index rows : {6, 11, 60, 131}) {
    const Index depth = 70, columns = 400;
    const auto a = random_matrix<float>(rows, depth, 9),
               b = random_matrix<float>(depth, columns, 10);
    const auto expected = matrix_product(a, b);
    for (const Index step : {1, 2, 3, 1024}) {
      Tensor<float, 2> wide({depth, rows * step});  // transposed, rows `step` apart
      const auto across = wide.view().slice(1, 0, rows * step, step).permute({1, 0});
      copy(a, across);
      ASSERT_TRUE(same_bits(matrix_product(across, b), expected)) << rows << " step " << step;
      Tensor<float, 2> long_rows({rows, depth * step});
      const auto along = long_rows.view().slice(1, 0, depth * step, step);
      copy(a, along);
      ASSERT_TRUE(same_bits(matrix_product(along, b), expected)) << rows << " step " << step;
    }
    Tensor<float, 2> far({rows, 1024});  // rows 4 KiB apart
    const auto part = far.view().slice(1, 0, depth);
    copy(a, part);
    ASSERT_TRUE(same_bits(matrix_product(part, b), expected)) << rows;
  }
}

TEST_P(MatrixProduct, BroadcastRowsSumColumns) {
  const auto b = random_matrix<double>(40, 9, 9);
  const double one = 1;
  const TensorView<const double, 2> ones(&one, {1, 40}, {0, 0});
  const auto sums = matrix_product(ones, b);
  for (Index column = 0; column < 9; ++column) {
    double sum = 0;
    for (Index row = 0; row < 40; ++row) sum += b(row, column);
    EXPECT_EQ(sums(0, column), sum);
  }
}

TEST_P(MatrixProduct, AccumulatesAndAddsABias) {
  for (const Index rows : {1, 7, 40}) {
    for (const Index columns : {5, 64, 100}) {
      const auto a = random_matrix<float>(rows, 600, 10),
                 b = random_matrix<float>(600, columns, 11);
      const auto start = random_matrix<float>(rows, columns, 12);
      const auto plain = matrix_product(a, b);
      Tensor<float, 2> sum = start, biased({rows, columns}), biased_packed({rows, columns});
      matrix_product(a, b, sum, {.accumulate = true});
      const TensorView<const float, 1> bias = start.view().select(0, 0);
      matrix_product(a, b, biased, {.bias = bias});
      matrix_product(a, PackedMatrix<float>(b), biased_packed, {.bias = bias});
      EXPECT_TRUE(same_bits(biased, biased_packed));
      const std::vector<float> list(bias.begin(), bias.end());
      EXPECT_TRUE(same_bits(matrix_product(a, b, {.bias = list}), biased));
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < columns; ++j) {
          ASSERT_NEAR(sum(i, j), start(i, j) + plain(i, j), 1e-5);
          ASSERT_NEAR(biased(i, j), bias(j) + plain(i, j), 1e-5);
        }
      }
    }
  }
}

TEST_P(MatrixProduct, WithoutDepthTheSumIsEmpty) {
  const Tensor<float, 2> a({3, 0}), b({0, 4});
  Tensor<float, 2> out({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor<float, 2> before = out;
  matrix_product(a, b, out, {.accumulate = true});
  EXPECT_TRUE(same_bits(out, before));
  matrix_product(a, b, out);
  EXPECT_TRUE(same_bits(out, Tensor<float, 2>({3, 4})));
  EXPECT_EQ(matrix_product(Tensor<float, 2>({0, 5}), Tensor<float, 2>({5, 4})).size(), 0);
}

TEST_P(MatrixProduct, NotANumberStaysInItsRow) {
  auto a = random_matrix<float>(20, 30, 13);
  const auto b = random_matrix<float>(30, 20, 14);
  const auto clean = matrix_product(a, b);
  a(7, 3) = std::numeric_limits<float>::quiet_NaN();
  const auto result = matrix_product(a, b);
  for (Index i = 0; i < 20; ++i) {
    for (Index j = 0; j < 20; ++j) {
      if (i == 7) {
        EXPECT_TRUE(std::isnan(result(i, j)));
      } else {
        EXPECT_EQ(result(i, j), clean(i, j));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, MatrixProduct, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

void expect_refused(const std::string& words, const auto& call) {
  try {
    call();
    ADD_FAILURE() << words;
  } catch (const ShapeError& error) {
    EXPECT_EQ(error.what(), words);
  }
}

TEST(MatrixProductErrors, SayWhatCameAndWhatWasExpected) {
  const Tensor<float, 2> a({3, 4}), b({5, 6});
  Tensor<float, 2> out({3, 6}), square({4, 4});
  const Tensor<float, 1> bias({5});
  expect_refused("matrix_product: a is (3, 4), b (5, 6)", [&] { matrix_product(a, b, out); });
  expect_refused("matrix_product: a is (3, 4), b (5, 6)",
                 [&] { matrix_product(a, PackedMatrix<float>(b), out); });
  expect_refused("matrix_product: out is (4, 4), expected (3, 3)",
                 [&] { matrix_product(a, transposed(a), square); });
  expect_refused("matrix_product: out overlaps a", [&] {
    matrix_product(square, Tensor<float, 2>({4, 4}), square);
  });
  expect_refused("matrix_product: out overlaps b", [&] {
    matrix_product(Tensor<float, 2>({4, 4}), square, square);
  });
  const Tensor<float, 2> fits({4, 6});
  expect_refused("matrix_product: bias of 5 for 6 columns",
                 [&] { matrix_product(a, fits, out, {.bias = bias.view()}); });
  expect_refused("matrix_product: bias and accumulate exclude each other",
                 [&] { matrix_product(a, fits, out, {.accumulate = true, .bias = bias.view()}); });
  float one = 0;
  expect_refused("matrix_product: elements of out share memory", [&] {
    matrix_product(a, fits, TensorView<float, 2>(&one, {3, 6}, {0, 0}));
  });
}

}  // namespace
}  // namespace heed::test
