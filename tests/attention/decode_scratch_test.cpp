// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

TEST(DecodeScratch, DoesNotGrowWithTheNumberOfKeys) {
  const auto scratch = divided_scratch<DecodeScratch<float>>(decode_rows, 128, 128, true);
  const auto* end = reinterpret_cast<const char*>(scratch.keep + 2 * decode_rows);
  EXPECT_LT(end - reinterpret_cast<const char*>(scratch.rows), 400 * 1024);
  EXPECT_GE(scratch.packed - scratch.rows, decode_rows * 128);
}

TEST(RowStates, RowsAreWholeVectorsApart) {
  float maximum[4], sum[4], output[4 * 32];
  const RowStates<float> states{maximum, sum, output};
  EXPECT_EQ(padded_value_dim(20), 32);
  EXPECT_EQ(states.from(2, 20).output, output + 64);
  EXPECT_EQ(states.from(3, 20).sum, sum + 3);
}

}  // namespace
}  // namespace heed::detail
