// SPDX-License-Identifier: MIT
#include <heed/core/detail/shared.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

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

namespace heed::masks {
namespace {

struct Counted {
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive_; }
  int* alive_;
};

TEST(Shared, TheLastCopyDeletes) {
  int first = 0, second = 0;
  {
    detail::Shared<Counted> a(new Counted(&first));
    {
      const detail::Shared<Counted> b = a;
      EXPECT_EQ(&*a, &*b);
      a = detail::Shared<Counted>(new Counted(&second));
      EXPECT_EQ(first, 1) << "b still holds it";
      const auto& self = a;
      a = self;
      EXPECT_EQ(second, 1);
    }
    EXPECT_EQ(first, 0);
  }
  EXPECT_EQ(second, 0);
}

TEST(Shared, CopiesInManyThreads) {
  int alive = 0;
  {
    const detail::Shared<Counted> value(new Counted(&alive));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([value] {
        for (int copy = 0; copy < 10000; ++copy) detail::Shared<Counted> other(value);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Shared, MayHoldNothing) {
  const detail::Shared<int> none;
  EXPECT_FALSE(none);
  detail::Shared<int> copy = none;
  copy = detail::Shared<int>(new int(7));
  EXPECT_EQ(*copy, 7);
  copy = none;
  EXPECT_FALSE(copy);
}

}  // namespace
}  // namespace heed::masks
