// SPDX-License-Identifier: MIT
#include <heed/attention/detail/call.hpp>

#include <gtest/gtest.h>

#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

TEST(CheckMemory, RefusesAnOutputThatMeetsAnInputOrItself) {
  Tensor<float, 4> a({1, 1, 4, 4}), b({1, 1, 4, 4});
  const TensorView<const float, 4> in = a;
  const TensorView<float, 4> same = a, other = b;
  const TensorView<const float, 4> none;
  EXPECT_NO_THROW(check_memory<float>(other, in, in, in));
  EXPECT_THROW(check_memory<float>(same, in, none, none), ShapeError);
  EXPECT_THROW(check_memory<float>(same, none, in, none), ShapeError);
  EXPECT_THROW(check_memory<float>(same, none, none, in), ShapeError);
  const TensorView<float, 4> folded(b.data(), {1, 1, 4, 4}, {0, 0, 0, 1});
  EXPECT_THROW(check_memory<float>(folded, in, in, in), ShapeError);
}

}  // namespace
}  // namespace heed::detail
