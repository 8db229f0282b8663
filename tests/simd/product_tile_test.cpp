// SPDX-License-Identifier: MIT
#include <heed/simd/product_tile.hpp>

#include <gtest/gtest.h>

namespace heed::simd {
namespace {

TEST(ProductTile, PanelsAreWholeVectorsOfEverySet) {
  EXPECT_EQ(panel_columns * static_cast<Index>(sizeof(float)) % 64, 0);
  EXPECT_EQ(product_block % 32, 0);  // whole blocks of quantized weights
}

TEST(ProductTile, BeginsWithoutAddendWhereNoneIsGiven) {
  const ProductTile<float> tile{};
  EXPECT_EQ(tile.addend.data, nullptr);
}

}  // namespace
}  // namespace heed::simd
