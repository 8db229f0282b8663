// SPDX-License-Identifier: MIT
#include <heed/attention/detail/bfloat16_tensors.hpp>

#include <gtest/gtest.h>

#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

TEST(Bfloat16Tensors, RowsComeWideAndResultsGoRounded) {
  Tensor<bfloat16, 4> queries({1, 2, 5, 3}), keys({1, 1, 6, 3}), values({1, 1, 6, 4});
  Tensor<bfloat16, 4> out({1, 2, 5, 4});
  for (Index i = 0; i < queries.size(); ++i) {
    queries.data()[i] = bfloat16(static_cast<float>(i) + 0.5f);
  }
  for (Index i = 0; i < keys.size(); ++i) keys.data()[i] = bfloat16(static_cast<float>(-i));
  for (Index i = 0; i < values.size(); ++i) values.data()[i] = bfloat16(static_cast<float>(i * i));
  const Bfloat16Views views{queries, keys, values, out};
  const Bfloat16Tensors<float> tensors(views);
  const auto rows = tensors.query_rows(0, 1, 2, 3);
  EXPECT_EQ(rows.data[0], 21.5f);
  EXPECT_EQ(rows.data[2 * rows.row_stride + 2 * rows.column_stride], 29.5f);
  std::vector<float> scratch(96 * 4);
  const auto some_keys = tensors.key_rows(0, 0, 4, 2, scratch.data());
  EXPECT_EQ(some_keys.data[some_keys.row_stride], -15.f);
  const auto some_values = tensors.value_rows(0, 0, 1, 2, scratch.data());
  EXPECT_EQ(some_values.data[some_values.row_stride + 3], 121.f);
  float* to = tensors.out_rows(2);
  for (int i = 0; i < 8; ++i) to[i] = 1 + static_cast<float>(i) * 0x1p-9f;
  tensors.put_out(0, 1, 3, 2);
  EXPECT_EQ(float{out(0, 1, 3, 0)}, 1.f);
  EXPECT_EQ(float{out(0, 1, 4, 3)}, 1 + 0x1p-6f);  // 7 · 2⁻⁹, to the nearest 2⁻⁷
}

}  // namespace
}  // namespace heed::detail
