// SPDX-License-Identifier: MIT
#include <heed/masks/dense.hpp>

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <span>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/tensor/eigen.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

TEST(Answers, ListsAndMatricesAreTold) {
  static_assert(ListOfAnswers<std::vector<bool>>);
  static_assert(ListOfAnswers<std::array<float, 4>>);
  static_assert(ListOfAnswers<std::span<const bfloat16>>);
  static_assert(!ListOfAnswers<MaskShape>);
  static_assert(MatrixOfAnswers<Tensor<bool, 4>>);
  static_assert(MatrixOfAnswers<TensorView<const float, 2>>);
  static_assert(MatrixOfAnswers<Eigen::MatrixXf>);
  static_assert(MatrixOfAnswers<decltype(Eigen::MatrixXf().array() > 0)>);
  static_assert(!MatrixOfAnswers<std::vector<bool>>, "of what extents?");
  static_assert(!MatrixOfAnswers<masks::Dense>, "a Dense is copied");
}

TEST(Answers, LeadingAxesLeftOutAreOne) {
  const MaskShape two = mask_shape_of(Tensor<bool, 2>(5, 6));
  const MaskShape three = mask_shape_of(Tensor<bool, 3>(4, 5, 6));
  const MaskShape four = mask_shape_of(Tensor<bool, 4>(3, 4, 5, 6));
  for (const MaskShape& shape : {two, three, four}) {
    EXPECT_EQ(shape.queries, 5);
    EXPECT_EQ(shape.keys, 6);
  }
  EXPECT_EQ(two.heads, 1);
  EXPECT_EQ(two.batch, 1);
  EXPECT_EQ(three.heads, 4);
  EXPECT_EQ(three.batch, 1);
  EXPECT_EQ(four.heads, 4);
  EXPECT_EQ(four.batch, 3);
}

TEST(Answers, ZeroLetsThrough) {
  EXPECT_TRUE(lets_through(true, 0, 0));
  EXPECT_FALSE(lets_through(false, 0, 0));
  EXPECT_TRUE(lets_through(0.0f, 0, 0));
  EXPECT_TRUE(lets_through(-0.0, 0, 0));
  EXPECT_FALSE(lets_through(-std::numeric_limits<float>::infinity(), 0, 0));
  EXPECT_THROW(lets_through(std::numeric_limits<float>::infinity(), 0, 0), InvalidArgument);
  EXPECT_THROW(lets_through(1.0, 0, 0), InvalidArgument);
}

}  // namespace
}  // namespace heed::detail
