// SPDX-License-Identifier: MIT
#include <heed/tensor/detail/gemm.inl>

#include <gtest/gtest.h>

#include "support/attention_cases.hpp"

namespace heed::detail {
namespace {

TEST(ProductWork, SmallWorkStaysOnOneThreadAndLargeWorkDoesNot) {
  const test::RestoreSettings restore;
  set_thread_count(4);
  ProductWork small, large;
  small.add(1, 128, 128);
  EXPECT_FALSE(small.parallel());
  EXPECT_TRUE(small.is_small());
  for (int i = 0; i < 4; ++i) large.add(1, 2048, 512);  // each for itself is not large
  EXPECT_TRUE(large.parallel());
  EXPECT_FALSE(large.is_small());
  EXPECT_EQ(small.tasks(), 4);
  EXPECT_EQ(large.tasks(), 12);
  set_thread_count(1);
  EXPECT_FALSE(large.parallel());
}

}  // namespace
}  // namespace heed::detail
