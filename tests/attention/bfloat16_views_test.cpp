// SPDX-License-Identifier: MIT
#include <heed/attention/detail/bfloat16_views.hpp>

#include <gtest/gtest.h>

#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

TEST(Bfloat16Rows, AreFoundInTensorsAndInPages) {
  Tensor<bfloat16, 4> tensor({2, 2, 5, 3});
  for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i].bits = static_cast<std::uint16_t>(i);
  const TensorView<const bfloat16, 4> view = tensor;
  const Bfloat16Rows rows(view, nullptr, 1, 1);
  EXPECT_EQ(*rows.at(2), 51);
  EXPECT_TRUE(rows.in_one_piece(0, 5));
  std::uint16_t copy[5];
  rows.copy(2, 4, copy);
  EXPECT_EQ(copy[2], 53);
  EXPECT_EQ(copy[3], 0);

  const auto turned = view.permute({0, 1, 3, 2});
  const Bfloat16Rows columns(turned, nullptr, 0, 1);
  EXPECT_EQ(columns.column_stride(), 3);
  columns.copy(1, 5, copy);
  EXPECT_EQ(copy[3], 15 + 1 + 9);

  std::vector<std::uint16_t> memory(2 * 16 * 3);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint16_t>(i);
  const Index table[] = {1, 0};
  const Index* tables[] = {table};
  const CachePages pages{memory.data(), true, 3, 1, 16, tables};
  const Bfloat16Rows cached(view, &pages, 0, 0);
  EXPECT_EQ(*cached.at(2), 48 + 6);
  EXPECT_EQ(*cached.at(17), 3);
  EXPECT_TRUE(cached.in_one_piece(4, 12));
  EXPECT_FALSE(cached.in_one_piece(4, 13));
}

}  // namespace
}  // namespace heed::detail
