// SPDX-License-Identifier: MIT
// heed before Eigen: the door opens for whoever comes later.
#include <heed/heed.hpp>

#ifdef EIGEN_CORE_H
#error "heed.hpp includes Eigen"
#endif

#include <gtest/gtest.h>

#include <Eigen/Core>

#include <tensor/eigen_cases.hpp>

namespace heed {
namespace {

TEST(EigenViews, HeedMayComeBeforeEigen) {
  Eigen::MatrixXf matrix = Eigen::MatrixXf::Random(3, 4);
  EXPECT_EQ(view_of(matrix)(2, 1), matrix(2, 1));
  EXPECT_EQ(view_of(matrix.row(1)).extents(), (Extents<2>{1, 4}));
  Tensor<double, 2> tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(as_matrix(tensor).colwise().sum().eval(), Eigen::RowVector3d(5, 7, 9));
  Tensor<float, 1> vector({3}, {1, 2, 2});
  EXPECT_EQ(as_vector(vector).norm(), 3);
  test::expect_attention_takes_eigen();
}

}  // namespace
}  // namespace heed
