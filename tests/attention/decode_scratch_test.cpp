// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

TEST(DecodeScratch, DoesNotGrowWithTheNumberOfKeys) {
  const auto scratch = DecodeScratch<float>::of_this_thread(decode_rows, 128, 128, true);
  EXPECT_LT(scratch.bytes, 400u * 1024);
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
