// SPDX-License-Identifier: MIT
#include <heed/core/detail/shared.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace heed::detail {
namespace {

TEST(Atomic, AdditionsFromTwoThreadsAllCount) {
  Atomic<long> sum{5};
  const auto add = [&sum] {
    for (int i = 0; i < 100000; ++i) sum.fetch_add(1);
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(sum.load(), 200005);
  EXPECT_EQ(sum.exchange(7), 200005);
  EXPECT_EQ(sum.fetch_add(-3), 7);
  sum.store(9);
  EXPECT_EQ(sum.load(), 9);
}

}  // namespace
}  // namespace heed::detail
