// SPDX-License-Identifier: MIT
#include <heed/tensor/extents.hpp>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heed::detail
