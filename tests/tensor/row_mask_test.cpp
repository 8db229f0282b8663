// SPDX-License-Identifier: MIT
#include <heed/tensor/rows.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace heed {
namespace {

TEST(RowMask, LinesUpAtTheLastAxis) {
  const std::array<bool, 3> row{true, false, true};
  const auto fitted = RowMask<3>(row).fitted("test", {2, 4, 3});
  EXPECT_EQ(fitted.extents(), (Extents<3>{2, 4, 3}));
  EXPECT_EQ(fitted.strides(), (Extents<3>{0, 0, 1}));
  EXPECT_FALSE(fitted(1, 3, 1));
  EXPECT_EQ(&fitted(1, 3, 2), &row[2]);
}

TEST(RowMask, CopiesBits) {
  RowMask<2> copied;
  {
    const RowMask<2> mask(std::vector<bool>{true, false, true});
    EXPECT_TRUE(mask.given());
    copied = mask;
  }
  const auto fitted = copied.fitted("test", {4, 3});
  EXPECT_EQ(fitted.strides(), (Extents<2>{0, 1}));
  EXPECT_TRUE(fitted(3, 0));
  EXPECT_FALSE(fitted(3, 1));
  EXPECT_THROW(copied.fitted("softmax", {4, 5}), ShapeError);
  EXPECT_TRUE(RowMask<2>(std::vector<bool>{}).fitted("test", {4, 0}).empty());
  EXPECT_THROW(RowMask<2>(std::vector<bool>{}).fitted("test", {4, 2}), ShapeError);
}

TEST(RowMask, AxesOfOneRepeat) {
  Tensor<bool, 2> per_row({4, 1}, {true, false, true, true});
  const auto fitted = RowMask<2>(per_row).fitted("test", {4, 6});
  for (Index column = 0; column < 6; ++column) {
    EXPECT_TRUE(fitted(0, column));
    EXPECT_FALSE(fitted(1, column));
  }
  EXPECT_TRUE(RowMask<2>(per_row).fitted("test", {4, 0}).empty());
}

TEST(RowMask, KeepsStrides) {
  Tensor<bool, 2> tensor({3, 4});
  tensor(2, 0) = true;
  const auto turned = tensor.view().permute({1, 0}).reverse(1);
  EXPECT_TRUE(RowMask<2>(turned).fitted("test", {4, 3})(0, 0));
}

TEST(RowMask, RefusesWhatDoesNotFit) {
  const Tensor<bool, 2> mask({4, 6});
  EXPECT_THROW(RowMask<2>(mask).fitted("softmax", {4, 5}), ShapeError);
  EXPECT_THROW(RowMask<2>(mask).fitted("softmax", {6, 4}), ShapeError);
  EXPECT_THROW(RowMask<3>(mask).fitted("softmax", {4, 6, 6}), ShapeError);
  try {
    RowMask<2>(mask).fitted("softmax", {4, 5});
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "softmax: mask (4, 6) does not fit (4, 5)");
  }
}

TEST(RowMask, EmptyIsNotGiven) {
  EXPECT_FALSE(RowMask<2>().given());
  const Tensor<bool, 1> mask({3});
  EXPECT_TRUE(RowMask<2>(mask).given());
}

}  // namespace
}  // namespace heed
