// SPDX-License-Identifier: MIT
#include <heed/attention/forward.hpp>
// Attention first, Eigen's door second; eigen_first_test.cpp has them the other way round.
#include <heed/tensor/eigen.hpp>

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include <tensor/eigen_cases.hpp>

namespace heed {
namespace {

TEST(Eigen, AttentionTakesMatrices) { test::expect_attention_takes_eigen(); }

template <class Matrix>
void expect_same_memory(Matrix& matrix) {
  const auto view = view_of(matrix);
  ASSERT_EQ(view.extents(), (Extents<2>{matrix.rows(), matrix.cols()}));
  for (Index row = 0; row < matrix.rows(); ++row) {
    for (Index column = 0; column < matrix.cols(); ++column) {
      EXPECT_EQ(&view(row, column), &matrix.coeffRef(row, column));
    }
  }
}

TEST(Eigen, ViewsOfEverythingWithMemory) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::MatrixXf column_major = Eigen::MatrixXf::Random(4, 6);
  RowMajor row_major = RowMajor::Random(4, 6);
  Eigen::Matrix3f fixed = Eigen::Matrix3f::Random();
  Eigen::ArrayXXf array = Eigen::ArrayXXf::Random(3, 2);
  Eigen::VectorXf vector = Eigen::VectorXf::Random(5);
  expect_same_memory(column_major);
  expect_same_memory(row_major);
  expect_same_memory(fixed);
  expect_same_memory(array);
  expect_same_memory(vector);
  auto block = column_major.block(1, 2, 2, 3);
  expect_same_memory(block);
  auto column = row_major.col(2);
  expect_same_memory(column);
  auto transposed = row_major.transpose();
  expect_same_memory(transposed);
  Eigen::Ref<Eigen::MatrixXf, 0, Eigen::OuterStride<>> ref = column_major.topRows(2);
  expect_same_memory(ref);
  float memory[24] = {};
  Eigen::Map<Eigen::MatrixXf, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>> map(
      memory, 3, 4, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(6, 2));
  expect_same_memory(map);
  Eigen::MatrixXf nothing(0, 5);
  EXPECT_EQ(view_of(nothing).extents(), (Extents<2>{0, 5}));
}

TEST(Eigen, ConstStaysConst) {
  Eigen::MatrixXf matrix(2, 2);
  static_assert(std::is_same_v<ViewOf<Eigen::MatrixXf>, TensorView<float, 2>>);
  static_assert(std::is_same_v<ViewOf<const Eigen::MatrixXf>, TensorView<const float, 2>>);
  static_assert(
      std::is_same_v<decltype(view_of(std::as_const(matrix).row(0))), TensorView<const float, 2>>);
  static_assert(std::is_same_v<decltype(view_of(matrix.row(0))), TensorView<float, 2>>);
  static_assert(
      std::is_same_v<ViewOf<Eigen::Map<const Eigen::MatrixXd>>, TensorView<const double, 2>>);
}

TEST(Eigen, ExpressionsWithoutMemoryAreNoViews) {
  static_assert(!Viewable<decltype(Eigen::MatrixXf() + Eigen::MatrixXf())>);
  static_assert(!Viewable<decltype(Eigen::MatrixXf() * Eigen::MatrixXf())>);
  static_assert(!Viewable<decltype(Eigen::MatrixXf::Zero(2, 2))>);
}

TEST(Eigen, AsMatrixFollowsStrides) {
  Tensor<float, 2> tensor({3, 4});
  float next = 0;
  for (float& value : tensor) value = next++;
  const auto view = tensor.view();
  EXPECT_EQ(as_matrix(view).data(), tensor.data());
  EXPECT_EQ(as_matrix(view)(2, 1), 9);
  EXPECT_EQ(as_matrix(view.permute({1, 0}))(1, 2), 9);
  const auto odd = as_matrix(view.slice(1, 1, 4, 2));
  EXPECT_EQ(odd.cols(), 2);
  EXPECT_EQ(odd(1, 1), 7);
  const auto backward = as_matrix(view.reverse(0).reverse(1));
  EXPECT_EQ(backward(0, 0), 11);
  EXPECT_EQ(backward.sum(), 66);
  const auto repeated = as_matrix(view.slice(0, 1, 2).broadcast(0, 3));
  EXPECT_EQ(repeated.col(0).sum(), 12);
  as_matrix(tensor).row(0).setConstant(5);
  EXPECT_EQ(tensor(0, 3), 5);
  static_assert(!std::is_assignable_v<decltype(as_matrix(std::as_const(tensor))(0, 0)), float>);
}

TEST(Eigen, AsVectorFollowsStrides) {
  Tensor<double, 2> tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(as_vector(tensor.view().select(1, 1)).sum(), 7);
  as_vector(tensor.view().select(0, 0).reverse(0)) << 7, 8, 9;
  EXPECT_EQ(tensor(0, 0), 9);
  Tensor<double, 1> row({3}, {3, 4, 0});
  EXPECT_EQ(as_vector(row).norm(), 5);
}

TEST(Eigen, ThereAndBack) {
  Eigen::MatrixXf matrix = Eigen::MatrixXf::Random(5, 3);
  EXPECT_EQ(as_matrix(view_of(matrix)), matrix);
  EXPECT_EQ(as_matrix(view_of(matrix)).data(), matrix.data());
  Eigen::VectorXf vector = Eigen::VectorXf::Random(4);
  EXPECT_EQ(as_vector(view_of(vector).select(1, 0)), vector);
}

}  // namespace
}  // namespace heed
