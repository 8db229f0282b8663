// SPDX-License-Identifier: MIT
#include <heed/tensor/layout.hpp>

#include <gtest/gtest.h>

#include <heed/tensor/tensor.hpp>

namespace heed {
namespace {

TEST(Layout, RowMajor) {
  Tensor<float, 3> tensor({2, 3, 4});
  const auto view = tensor.view();
  EXPECT_TRUE(is_row_major(view));
  EXPECT_TRUE(is_row_major(view.slice(0, 1, 2)));
  EXPECT_TRUE(is_row_major(view.slice(0, 0, 1).permute({1, 0, 2})));  // an axis of 1 is nowhere
  EXPECT_FALSE(is_row_major(view.slice(1, 0, 2)));
  EXPECT_FALSE(is_row_major(view.permute({0, 2, 1})));
  EXPECT_FALSE(is_row_major(view.reverse(2)));
  EXPECT_TRUE(is_row_major(view.slice(1, 0, 0)));
}

TEST(Layout, AsSpan) {
  Tensor<float, 2> tensor({3, 4});
  const auto span = as_span(tensor.view().slice(0, 1, 3));
  EXPECT_EQ(span.data(), tensor.data() + 4);
  EXPECT_EQ(span.size(), 8u);
  EXPECT_THROW(as_span(tensor.view().permute({1, 0})), ShapeError);
}

TEST(Layout, MergeUndoesSplit) {
  Tensor<float, 3> tensor({2, 3, 8});
  const auto view = tensor.view();
  for (const auto& source : {view, view.reverse(2), view.reverse(0), view.slice(2, 0, 8, 2)}) {
    const auto merged = merge_axes(source.split(2, 4), 2);
    EXPECT_EQ(merged.extents(), source.extents());
    EXPECT_EQ(merged.strides(), source.strides());
    EXPECT_EQ(merged.data_handle(), source.data_handle());
  }
  EXPECT_EQ(merge_axes(view, 0).extents(), (Extents<2>{6, 8}));
  EXPECT_EQ(merge_axes(view, 1).strides(), (Extents<2>{24, 1}));
}

TEST(Layout, MergeOfOneIndexAndOfNothing) {
  Tensor<float, 2> tensor({4, 5});
  const auto column = merge_axes(tensor.view().slice(1, 2, 3), 0);  // (4, 1): steps of 5
  EXPECT_EQ(column.extent(0), 4);
  EXPECT_EQ(&column[3], &tensor(3, 2));
  const auto row = merge_axes(tensor.view().slice(0, 2, 3), 0);
  EXPECT_EQ(&row[4], &tensor(2, 4));
  EXPECT_EQ(merge_axes(tensor.view().slice(1, 0, 0), 0).extent(0), 0);
}

TEST(Layout, MergeRefusesGaps) {
  Tensor<float, 3> tensor({2, 3, 4});
  EXPECT_THROW(merge_axes(tensor.view().slice(2, 0, 3), 1), ShapeError);
  EXPECT_THROW(merge_axes(tensor.view().permute({0, 2, 1}), 1), ShapeError);
  EXPECT_THROW(merge_axes(tensor.view().reverse(1), 1), ShapeError);
  EXPECT_THROW(merge_axes(tensor.view(), 2), ShapeError);
  const Index large = Index{1} << 40;
  EXPECT_THROW(merge_axes(TensorView<float, 3>(nullptr, {large, large, 0}), 0), ShapeError);
}

}  // namespace
}  // namespace heed
