// SPDX-License-Identifier: MIT
#include <heed/attention/detail/backward_call.hpp>

#include <string>

#include <gtest/gtest.h>

#include <heed/core/error.hpp>

namespace heed::detail {
namespace {

TEST(WidenedTensor, CopiesBfloat16AndTakesFloatAsItLies) {
  Tensor<bfloat16, 3> narrow({2, 5, 3});
  for (Index i = 0; i < 30; ++i) narrow.data()[i] = bfloat16(static_cast<float>(i) / 4);
  const WidenedTensor<float> whole(narrow);
  EXPECT_EQ(whole.view().extents(), (Extents<4>{1, 2, 5, 3}));
  const WidenedTensor<float> turned(narrow.view().permute({0, 2, 1}));
  for (Index head = 0; head < 2; ++head) {
    for (Index row = 0; row < 5; ++row) {
      for (Index d = 0; d < 3; ++d) {
        EXPECT_EQ(whole.view()(0, head, row, d), float{narrow(head, row, d)});
        EXPECT_EQ(turned.view()(0, head, d, row), float{narrow(head, row, d)});
      }
    }
  }
  Tensor<float, 2> wide({4, 2});
  EXPECT_EQ(WidenedTensor<float>(wide).view().data_handle(), wide.data());
  EXPECT_EQ(WidenedTensor<float>(Tensor<bfloat16, 2>({0, 2})).view().extent(2), 0);
}

TEST(WidenedTensor, KnowsTheMemoryItCopied) {
  Tensor<float, 4> memory({1, 1, 2, 4}), other({1, 1, 2, 4});
  const TensorView<bfloat16, 2> narrow(reinterpret_cast<bfloat16*>(memory.data()), {4, 4});
  const WidenedTensor<float> copy(narrow);
  EXPECT_NO_THROW(copy.check_no_alias("call", "out", other.view(), "keys"));
  try {
    copy.check_no_alias("call", "out", memory.view(), "keys");
    FAIL() << "an overlap was not found";
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()), "call: out overlaps keys");
  }
}

TEST(WidenedTensor, OfOneNumber) {
  Tensor<bfloat16, 2> one({1, 1});
  one(0, 0) = bfloat16(2.5f);
  EXPECT_EQ(WidenedTensor<float>(one).view()(0, 0, 0, 0), 2.5f);
}

}  // namespace
}  // namespace heed::detail
