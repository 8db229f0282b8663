// SPDX-License-Identifier: MIT
#include <heed/tensor/view.hpp>

#include <gtest/gtest.h>

#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

template <std::size_t Rank>
std::vector<Extents<Rank>> visited(const Extents<Rank>& extents) {
  std::vector<Extents<Rank>> rows;
  for_each_row(extents, [&](const Extents<Rank>& at) { rows.push_back(at); });
  return rows;
}

TEST(ForEachRow, VisitsLeadingIndicesInOrder) {
  using Rows = std::vector<Extents<3>>;
  EXPECT_EQ(visited<3>({2, 2, 5}), (Rows{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 1, 0}}));
  EXPECT_EQ(visited<1>({5}), (std::vector<Extents<1>>{{0}}));
}

TEST(ForEachRow, EmptyRowsAreRowsNoRowsAreNone) {
  EXPECT_EQ(visited<2>({3, 0}).size(), 3u);
  EXPECT_EQ(visited<1>({0}).size(), 1u);
  EXPECT_TRUE(visited<3>({3, 0, 4}).empty());
  EXPECT_TRUE(visited<3>({0, 3, 4}).empty());
}

TEST(ForEachRow, RowAtFollowsStrides) {
  Tensor<int, 3> tensor({2, 3, 4});
  int next = 0;
  for (int& value : tensor) value = next++;
  const auto turned = tensor.view().permute({2, 0, 1}).reverse(2);  // (4, 2, 3)
  const TensorView<int, 1> row = row_at(turned, {3, 1, 0});
  EXPECT_EQ(row.extent(0), 3);
  EXPECT_EQ(row[0], tensor(1, 2, 3));
  EXPECT_EQ(row[2], tensor(1, 0, 3));
}

}  // namespace
}  // namespace heed::detail
