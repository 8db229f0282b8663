// SPDX-License-Identifier: MIT
#include <heed/attention/detail/backward_call.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

TEST(Widened, CopiesBfloat16AndTakesFloatAsItLies) {
  Tensor<bfloat16, 3> narrow({2, 5, 3});
  for (Index i = 0; i < 30; ++i) narrow.data()[i] = bfloat16(static_cast<float>(i) / 4);
  Tensor<float, 4> memory, turned_memory;
  const auto whole = widened(narrow, memory);
  EXPECT_EQ(whole.extents(), (Extents<4>{1, 2, 5, 3}));
  const auto turned = widened(narrow.view().permute({0, 2, 1}), turned_memory);
  for (Index head = 0; head < 2; ++head) {
    for (Index row = 0; row < 5; ++row) {
      for (Index d = 0; d < 3; ++d) {
        EXPECT_EQ(whole(0, head, row, d), float{narrow(head, row, d)});
        EXPECT_EQ(turned(0, head, d, row), float{narrow(head, row, d)});
      }
    }
  }
  Tensor<float, 2> wide({4, 2});
  EXPECT_EQ(widened(wide, memory).data_handle(), wide.data());
}

TEST(Widened, OfOneNumberAndOfNone) {
  Tensor<bfloat16, 2> one({1, 1});
  one(0, 0) = bfloat16(2.5f);
  Tensor<float, 4> memory;
  EXPECT_EQ(widened(one, memory)(0, 0, 0, 0), 2.5f);
  EXPECT_EQ(widened(Tensor<bfloat16, 2>({0, 2}), memory).extent(2), 0);
}

}  // namespace
}  // namespace heed::detail
