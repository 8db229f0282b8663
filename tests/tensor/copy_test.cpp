// SPDX-License-Identifier: MIT
#include <heed/tensor/copy.hpp>

#include <gtest/gtest.h>

#include <vector>

#include <tensor/random_view.hpp>

namespace heed {
namespace {

TEST(Copy, AnyStridesToAnyStrides) {
  for (std::uint64_t stream = 0; stream < 1500; ++stream) {
    Random random(31, stream);
    const test::RandomView<3> from(random, true);
    const auto& extents = from.view().extents();
    // A target of the same extents in strange memory: axes turned, reversed, every second column.
    Tensor<float, 3> memory({2 * extents[2], extents[0], extents[1]});
    for (float& value : memory) value = -1;
    const auto to = memory.view().permute({1, 2, 0}).slice(2, 0, 2 * extents[2], 2).reverse(1);
    copy(from.view(), to);
    Index written = 0;
    for (const float value : memory) written += value != -1;
    ASSERT_EQ(written, from.view().size()) << "stream " << stream;
    const auto result = Tensor<float, 3>::copy_of(to);
    for (Index i = 0; i < result.size(); ++i) {
      ASSERT_EQ(result.data()[i], from.expected().data()[i]) << "stream " << stream;
    }
  }
}

/// Matrices around the squares by which a transposed side is copied, of either side and both.
TEST(Copy, TransposesOfAnySize) {
  for (const Index rows : {1, 2, 15, 16, 17, 33, 70}) {
    for (const Index columns : {1, 3, 16, 31, 32, 65}) {
      Tensor<float, 3> from({2, rows, columns});
      float next = 1;
      for (float& value : from) value = next++;
      const auto turned = Tensor<float, 3>::copy_of(from.transpose());
      Tensor<bfloat16, 3> narrow(turned.extents());
      copy(from.transpose(), narrow);
      Tensor<float, 3> back({rows, columns, 2}), both({columns, 2, rows});
      copy(turned, back.permute(2, 1, 0));
      copy(from.permute(2, 0, 1), both);
      for (Index item = 0; item < 2; ++item) {
        for (Index row = 0; row < rows; ++row) {
          for (Index column = 0; column < columns; ++column) {
            const float value = from(item, row, column);
            ASSERT_EQ(turned(item, column, row), value) << rows << " x " << columns;
            ASSERT_EQ(static_cast<float>(narrow(item, column, row)),
                      static_cast<float>(bfloat16(value)));
            ASSERT_EQ(back(row, column, item), value);
            ASSERT_EQ(both(column, item, row), value);
          }
        }
      }
    }
  }
}

TEST(Copy, ConvertsScalars) {
  const std::vector<double> from{1.25, 1e300};
  Tensor<float, 1> to({2});
  copy(from, to);
  EXPECT_EQ(to[0], 1.25f);
  EXPECT_GT(to[1], 3.4e38f);  // infinity
}

TEST(Copy, RefusesBeforeWriting) {
  Tensor<float, 2> tensor({2, 3});
  float next = 1;
  for (float& value : tensor) value = next++;
  const auto view = tensor.view();
  Tensor<float, 2> wrong({3, 2});
  EXPECT_THROW(copy(view, wrong), ShapeError);
  EXPECT_THROW(copy(view, view.reverse(0)), ShapeError);
  EXPECT_THROW(copy(view.slice(1, 0, 2), view.slice(1, 1, 3)), ShapeError);
  float one = 7;
  const TensorView<float, 2> repeated(&one, {2, 3}, {0, 0});
  EXPECT_THROW(copy(view, repeated), ShapeError);
  EXPECT_EQ(one, 7);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(tensor.data()[i], static_cast<float>(i + 1));
  for (const float value : wrong) EXPECT_EQ(value, 0);
  copy(repeated, wrong.view().permute({1, 0}));
  EXPECT_EQ(wrong(2, 1), 7);
}

TEST(Copy, OfNothing) {
  Tensor<float, 2> from({0, 3}), to({0, 3});
  EXPECT_NO_THROW(copy(from, to));
  EXPECT_NO_THROW(copy(TensorView<float, 1>(), TensorView<float, 1>()));
}

}  // namespace
}  // namespace heed
