// SPDX-License-Identifier: MIT
#include <heed/tensor/extents.hpp>

#include <gtest/gtest.h>

#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

constexpr Index large = Index{1} << 40;

TEST(Extents, RowMajorStrides) {
  EXPECT_EQ(row_major_strides<3>({2, 3, 4}), (Extents<3>{12, 4, 1}));
  EXPECT_EQ(row_major_strides<1>({7}), (Extents<1>{1}));
}

TEST(Extents, RefusesNegativeAndTooMany) {
  EXPECT_THROW(row_major_strides<2>({2, -1}), ShapeError);
  EXPECT_THROW(row_major_strides<2>({-1, 0}), ShapeError);
  EXPECT_THROW(row_major_strides<2>({large, large}), ShapeError);
}

TEST(Extents, NothingIsLargeBesideAZero) {
  EXPECT_NO_THROW(row_major_strides<3>({large, large, 0}));
  EXPECT_EQ(element_count<3>({large, large, 0}), 0);
  EXPECT_EQ(element_count<3>({0, large, large}), 0);
  EXPECT_EQ(element_count<3>({3, 1, 5}), 15);
}

TEST(Extents, ComeApartAsAnArrayDoes) {
  const auto [rows, columns] = Tensor<float, 2>(5, 8).extents();
  EXPECT_EQ(rows, 5);
  EXPECT_EQ(columns, 8);
  const Extents<2> same{5, 8};
  EXPECT_EQ(same, (Extents<2>{rows, columns}));
  EXPECT_NE(same, (Extents<2>{8, 5}));
  EXPECT_EQ(Extents<3>{}[2], 0);
}

}  // namespace
}  // namespace heed::detail
