// SPDX-License-Identifier: MIT
#include <heed/attention/key_value_cache.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

TEST(PagePool, APageIsFreeWhenItsLastHolderLetsGo) {
  PagePool pool(2);
  const Index page = pool.take();
  pool.retain(page);
  EXPECT_EQ(pool.holders(page), 2);
  EXPECT_EQ(pool.available(), 1);
  pool.release(page);
  EXPECT_EQ(pool.holders(page), 1);
  EXPECT_EQ(pool.available(), 1);
  pool.release(page);
  EXPECT_EQ(pool.available(), 2);
  EXPECT_NE(pool.take(), pool.take());
}

}  // namespace
}  // namespace heed::detail
