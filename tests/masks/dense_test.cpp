// SPDX-License-Identifier: MIT
#include <heed/masks/dense.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <heed/core/bfloat16.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/tensor/eigen.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::masks {
namespace {

TEST(Dense, RowsLineUpWithTheLastKey) {
  const std::array<bool, 6> allowed = {true, false, false,  //
                                       true, true,  false};
  const Dense mask(allowed, {1, 1, 2, 3});
  EXPECT_TRUE(mask.allows({0, 0, 1, 0})) << "row 0 is position 1 of 3";
  EXPECT_TRUE(mask.allows({0, 0, 2, 1}));
  EXPECT_FALSE(mask.allows({0, 0, 1, 1}));
  EXPECT_FALSE(mask.allows({0, 0, 0, 0})) << "before the first row";
  const Dense top(allowed, {1, 1, 2, 3}, 0);
  EXPECT_TRUE(top.allows({0, 0, 1, 1}));
}

TEST(Dense, ExtentsOfOneServeAll) {
  const std::array<bool, 2> allowed = {true, false};
  const Dense per_head(std::span<const bool>{allowed}, {1, 2, 1, 1});
  EXPECT_TRUE(per_head.allows({3, 0, 77, 5}));
  EXPECT_FALSE(per_head.allows({3, 1, 77, 5}));
  EXPECT_TRUE(heed::depends_on_head(per_head));
  EXPECT_NO_THROW(per_head.check({9, 2, 30, 40}));
  EXPECT_THROW(per_head.check({9, 3, 30, 40}), ShapeError);
}

bool upper(Index, Index, Index row, Index key) { return key > row; }

TEST(Dense, FromAPlainFunction) {
  const Dense mask({1, 1, 3, 3}, upper);
  EXPECT_TRUE(mask.allows({0, 0, 0, 2}));
  EXPECT_FALSE(mask.allows({0, 0, 2, 2}));
}

TEST(Dense, CountsMustFit) {
  const std::array<bool, 2> allowed = {true, false};
  EXPECT_THROW(Dense(allowed, {1, 1, 1, 3}), ShapeError);
  EXPECT_THROW(dense(Causal{}, {1, 1, -1, 3}), ShapeError);
}

TEST(Dense, IsEvaluatedWhereTheQueriesStand) {
  const Dense top = dense(Causal{}, {1, 1, 4, 8, 0});
  const Dense bottom = dense(Causal{}, {1, 1, 4, 8});
  for (Index row = 0; row < 4; ++row) {
    for (Index key = 0; key < 8; ++key) {
      const Position of_row{0, 0, 4 + row, key, 4};  // row r is query r of the call
      EXPECT_EQ(top.allows(of_row), key <= row) << row << ' ' << key;
      EXPECT_EQ(bottom.allows(of_row), key <= 4 + row) << row << ' ' << key;
    }
  }
  EXPECT_TRUE(dense(Causal{}, {1, 1, 4, 8}, 2).allows({0, 0, 3, 3}));
  EXPECT_THROW(dense(Segments({0, 8}), {1, 1, 8, 8}, 100), ShapeError) << "positions 100 to 107";
}

TEST(Dense, ExtentsThatWouldOverflowAreRefused) {
  const auto all = [](Index, Index, Index, Index) { return true; };
  const Index large = Index{1} << 32;
  EXPECT_THROW(Dense({1, 1, large, large}, all), ShapeError);
  EXPECT_THROW(Dense({large, 0, large, large}, all), ShapeError);
  EXPECT_NO_THROW(Dense({2, 2, 0, 5}, all));
}

TEST(Dense, PositionsThatWouldOverflowAreRefused) {
  const Tensor<bool, 2> rows({2, 3});
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index first : {-most - 1, -most, most}) {
    EXPECT_THROW(Dense(rows, first), InvalidArgument) << first;
  }
  EXPECT_FALSE(Dense(rows, most / 8).allows({0, 0, most / 8, 0}));
}

TEST(Dense, WhatIsOutsideSeesNothing) {
  const Dense mask({2, 2, 3, 3}, [](Index, Index, Index, Index) { return true; });
  EXPECT_TRUE(mask.allows({1, 1, 2, 2}));
  for (const Position at : {Position{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 3, 0}, {0, 0, 0, 3}}) {
    EXPECT_FALSE(mask.allows(at));
  }
}

TEST(Dense, FromAVectorOfBits) {
  const std::vector<bool> allowed = {true, false, false, true};
  const Dense mask(allowed, {1, 1, 2, 2});
  EXPECT_TRUE(mask.allows({0, 0, 1, 1}));
  EXPECT_FALSE(mask.allows({0, 0, 0, 1}));
}

TEST(Dense, FromATensorOfBool) {
  Tensor<bool, 2> matrix(2, 3);
  matrix(0, 2) = true;
  matrix(1, 0) = true;
  const Dense mask(matrix);
  EXPECT_EQ(mask.extents().heads, 1);
  EXPECT_TRUE(mask.allows({3, 5, 1, 2}));
  EXPECT_TRUE(mask.allows({0, 0, 2, 0}));
  EXPECT_FALSE(mask.allows({0, 0, 2, 2}));
  EXPECT_TRUE(Dense(matrix, 0).allows({0, 0, 0, 2})) << "rows from position 0 on";

  Tensor<bool, 3> heads(2, 2, 3);
  heads(1, 0, 0) = true;
  EXPECT_TRUE(Dense(heads).allows({7, 1, 1, 0}));
  EXPECT_FALSE(Dense(heads).allows({7, 0, 1, 0}));
  Tensor<bool, 4> all(2, 1, 1, 3);
  all(1, 0, 0, 2) = true;
  EXPECT_TRUE(Dense(all).allows({1, 4, 9, 2}));
  EXPECT_FALSE(Dense(all).allows({0, 4, 9, 2}));
  EXPECT_EQ(Dense(all).extents().batch, 2);
  EXPECT_EQ(Dense(Tensor<bool, 2>(0, 3)).extents().queries, 0);
}

TEST(Dense, FromAViewOfAnyStrides) {
  const std::array<bool, 6> flags = {true, false, false, true, true, false};
  const Dense mask(TensorView(flags, {3, 2}, {1, 3}));  // column by column
  const bool expected[3][2] = {{true, true}, {false, true}, {false, false}};
  for (Index row = 0; row < 3; ++row) {
    for (Index key = 0; key < 2; ++key) {
      EXPECT_EQ(mask.allows({0, 0, row, key, 0}), expected[row][key]) << row << " " << key;
    }
  }
}

template <class T>
void expect_from_additive() {
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  Tensor<T, 2> matrix(2, 2);
  matrix(0, 1) = static_cast<T>(hidden);
  matrix(1, 0) = static_cast<T>(-0.0f);
  const Dense mask(matrix);
  EXPECT_TRUE(mask.allows({0, 0, 0, 0}));
  EXPECT_FALSE(mask.allows({0, 0, 0, 1}));
  EXPECT_TRUE(mask.allows({0, 0, 1, 0}));
  matrix(0, 0) = static_cast<T>(-3.38e38f);  // PyTorch's finfo.min, more or less
  EXPECT_FALSE(Dense(matrix).allows({0, 0, 0, 0}));
  for (const float bias : {1.0f, -1e30f, -hidden, std::numeric_limits<float>::quiet_NaN()}) {
    matrix(1, 1) = static_cast<T>(bias);
    EXPECT_THROW((Dense(matrix)), InvalidArgument) << bias;
  }
}

TEST(Dense, FromAnAdditiveMatrix) {
  expect_from_additive<float>();
  expect_from_additive<double>();
  expect_from_additive<bfloat16>();
  try {
    Dense(Tensor<float, 2>{{0, 0}, {0, 0.5f}});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("in row 1, key 1"), std::string::npos) << error.what();
  }
}

TEST(Dense, FromEigen) {
  const Eigen::MatrixXf scores = Eigen::MatrixXf::Random(3, 4);
  const Dense positive(scores.array() > 0);
  const Dense same(Eigen::Array<bool, Eigen::Dynamic, Eigen::Dynamic>(scores.array() > 0));
  for (Index row = 0; row < 3; ++row) {
    for (Index key = 0; key < 4; ++key) {
      EXPECT_EQ(positive.allows({0, 0, row, key, 0}), scores(row, key) > 0);
      EXPECT_EQ(same.allows({0, 0, row, key, 0}), scores(row, key) > 0);
    }
  }
}

}  // namespace
}  // namespace heed::masks
