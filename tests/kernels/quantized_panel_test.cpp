// SPDX-License-Identifier: MIT
#include <heed/kernels/product_kernels.hpp>

#include <gtest/gtest.h>

namespace heed::simd {
namespace {

TEST(QuantizedPanel, ABlockTakesWhatItsTypeDoesInAFile) {
  EXPECT_EQ(QuantizedPanel::block_bytes(QuantizedCodes::nibbles), 64 * 20);
  EXPECT_EQ(QuantizedPanel::block_bytes(QuantizedCodes::signed_nibbles), 64 * 18);
  EXPECT_EQ(QuantizedPanel::block_bytes(QuantizedCodes::bytes), 64 * 34);
  EXPECT_EQ(QuantizedPanel::block_bytes(QuantizedCodes::bfloat16), 64 * 64);
}

}  // namespace
}  // namespace heed::simd
