// SPDX-License-Identifier: MIT
#include <heed/attention/detail/operands.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace heed {
namespace {

TEST(CopyRows, AnyStridesAndZerosBehind) {
  const float from[] = {1, 2, 3, 4, 5, 6};
  float to[8];
  std::fill(to, to + 8, 9.f);
  detail::copy_rows<float>({from, 3, 1}, 2, 3, to, 4);
  const float rows[] = {1, 2, 3, 0, 4, 5, 6, 0};
  EXPECT_TRUE(std::equal(to, to + 8, rows));
  detail::copy_rows<float>({from + 5, -3, -1}, 2, 3, to, 4);
  const float reversed[] = {6, 5, 4, 0, 3, 2, 1, 0};
  EXPECT_TRUE(std::equal(to, to + 8, reversed));
}

TEST(GatherRows, ThereAndBack) {
  const float from[] = {1, 2, 3, 4, 5, 6};
  const Index kept[] = {0, 2};
  float together[4];
  detail::gather_rows<float>({from, 2, 1}, kept, 2, 2, together, 2);
  const float rows[] = {1, 2, 5, 6};
  EXPECT_TRUE(std::equal(together, together + 4, rows));
  float back[6] = {};
  detail::scatter_rows(together, kept, 2, back, 2);
  const float apart[] = {1, 2, 0, 0, 5, 6};
  EXPECT_TRUE(std::equal(back, back + 6, apart));
}

TEST(StridedRows, BeginAtTheirRow) {
  float values[2 * 3 * 4 * 5] = {};
  const TensorView<const float, 4> view(values, {2, 3, 4, 5});
  const auto rows = detail::strided_rows(view.reverse(3), 1, 2, 3);
  EXPECT_EQ(rows.data, values + 119);
  EXPECT_EQ(rows.row_stride, 5);
  EXPECT_EQ(rows.column_stride, -1);
}

}  // namespace
}  // namespace heed
