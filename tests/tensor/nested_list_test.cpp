// SPDX-License-Identifier: MIT
#include <heed/tensor/tensor.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed {
namespace {

template <class T, std::size_t Rank>
std::vector<T> values_of(const Tensor<T, Rank>& tensor) {
  return {tensor.begin(), tensor.end()};
}

TEST(NestedList, IsTheMatrixThatItShows) {
  const Tensor<float, 2> matrix{{1, 2}, {3, 4}};
  EXPECT_EQ(matrix.extents(), (Extents<2>{2, 2}));
  EXPECT_EQ(values_of(matrix), (std::vector<float>{1, 2, 3, 4}));
  const Tensor<float, 2> assigned = {{1, 2, 3}, {4, 5, 6}}, in_parentheses({{1, 2}, {3, 4}}),
                         row{{5, 8}};
  EXPECT_EQ(assigned.extents(), (Extents<2>{2, 3}));
  EXPECT_EQ(assigned(1, 0), 4);
  EXPECT_EQ(values_of(in_parentheses), values_of(matrix));
  EXPECT_EQ(row.extents(), (Extents<2>{1, 2}));
  Tensor<float, 2> later({2, 2});
  later = {{1, 2}, {3, 4}};
  EXPECT_EQ(values_of(later), values_of(matrix));
}

TEST(NestedList, OfEveryRank) {
  EXPECT_EQ(values_of(Tensor<double, 1>{1.5, 2.5, 3.5}), (std::vector<double>{1.5, 2.5, 3.5}));
  EXPECT_EQ((Tensor<Index, 1>{4, 5}.extents()), (Extents<1>{2}));
  const Tensor<Index, 3> cube{{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};
  EXPECT_EQ(cube.extents(), (Extents<3>{2, 3, 2}));
  EXPECT_EQ(cube(1, 2, 0), 11);
  const Tensor<bool, 4> four{{{{true, false}}}, {{{false, true}}}};
  EXPECT_EQ(four.extents(), (Extents<4>{2, 1, 1, 2}));
  EXPECT_TRUE(four(1, 0, 0, 1));
}

TEST(NestedList, ExtentsInParenthesesStayExtents) {
  EXPECT_EQ((Tensor<float, 1>({5}).extents()), (Extents<1>{5}));
  EXPECT_EQ((Tensor<float, 2>({5, 8}).extents()), (Extents<2>{5, 8}));
  EXPECT_EQ((Tensor<float, 2>({0, 8}).extents()), (Extents<2>{0, 8}));
  EXPECT_EQ((Tensor<float, 3>({0, 0, 2}).extents()), (Extents<3>{0, 0, 2}));
  EXPECT_EQ((Tensor<Index, 2>({1, 2}, {3, 4}).extents()), (Extents<2>{1, 2}));
  EXPECT_EQ((Tensor<float, 1>({2}, {3, 4})(1)), 4);
  EXPECT_EQ((Tensor<float, 2>(Extents<2>{2, 3}).extents()), (Extents<2>{2, 3}));
  EXPECT_EQ((Tensor<float, 2>{Extents<2>{2, 3}}.extents()), (Extents<2>{2, 3}));
  EXPECT_TRUE((Tensor<float, 2>({}).empty()));
}

TEST(NestedList, RaggedOnesAreRefused) {
  try {
    const Tensor<float, 2> ragged{{2, 2}, {1, 2, 3, 4}};
    ADD_FAILURE() << ragged.extent(0);
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 54),
              "tensor: a list of 4 beside one of 2 along axis 1; list");
  }
  EXPECT_THROW((Tensor<float, 3>{{{1}, {2}}, {{3}}}), ShapeError);
  EXPECT_EQ((Tensor<float, 2>{{}, {}}.extents()), (Extents<2>{2, 0}));
}

}  // namespace
}  // namespace heed
