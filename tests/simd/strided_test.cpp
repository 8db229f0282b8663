// SPDX-License-Identifier: MIT
#include <heed/simd/strided.hpp>

#include <gtest/gtest.h>

namespace heed::simd {
namespace {

TEST(Strided, IsARowMajorMatrixOfNothingByDefault) {
  constexpr Strided<float> matrix;
  EXPECT_EQ(matrix.data, nullptr);
  EXPECT_EQ(matrix.row_stride, 0);
  EXPECT_EQ(matrix.column_stride, 1);
}

}  // namespace
}  // namespace heed::simd
