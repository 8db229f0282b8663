// SPDX-License-Identifier: MIT
#include <heed/tensor/arithmetic.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(Arithmetic, AddsElementByElement) {
  for (const Index rows : {0, 1, 700}) {
    Tensor<float, 2> a({rows, 101}), b({rows, 101});
    for (Index i = 0; i < a.size(); ++i) {
      a.data()[i] = static_cast<float>(i);
      b.data()[i] = 0.5f;
    }
    EXPECT_EQ(&(a += b), &a);
    for (Index i = 0; i < a.size(); ++i) ASSERT_EQ(a.data()[i], static_cast<float>(i) + 0.5f);
  }
}

TEST(Arithmetic, RefusesOtherExtents) {
  Tensor<float, 2> a({2, 3});
  EXPECT_THROW((a += Tensor<float, 2>({3, 2})), ShapeError);
}

}  // namespace
}  // namespace heed
