// SPDX-License-Identifier: MIT
#include <heed/tensor/packed_matrix.hpp>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heed
