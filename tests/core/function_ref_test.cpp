// SPDX-License-Identifier: MIT
#include <heed/core/function_ref.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

namespace heed {
namespace {

int apply(FunctionRef<int(int)> function, int value) { return function(value); }
int twice(int value) { return 2 * value; }

struct Counter {
  int operator()(int step) { return count += step; }
  int count = 0;
};

TEST(FunctionRef, CallsLambdasFunctionsAndObjects) {
  int offset = 5;
  ++offset;
  EXPECT_EQ(apply([offset](int value) { return value + offset; }, 2), 8);
  EXPECT_EQ(apply(twice, 4), 8);
  EXPECT_EQ(apply(&twice, 4), 8);
}

TEST(FunctionRef, RefersInsteadOfCopying) {
  Counter counter;
  const FunctionRef<int(int)> ref = counter;
  const FunctionRef<int(int)> copy = ref;  // refers to the counter, not to `ref`
  ref(1);
  copy(2);
  EXPECT_EQ(counter.count, 3);
}

TEST(FunctionRef, PassesArgumentsThrough) {
  int target = 0;
  const auto write = [](int& to, std::unique_ptr<int> from) { to = *from; };
  const FunctionRef<void(int&, std::unique_ptr<int>)> ref = write;
  ref(target, std::make_unique<int>(9));
  EXPECT_EQ(target, 9);
  const auto fails = [](int) -> int { throw std::runtime_error("x"); };
  EXPECT_THROW(apply(fails, 0), std::runtime_error);
}

TEST(FunctionRef, TakesOnlyWhatFits) {
  static_assert(std::is_constructible_v<FunctionRef<int(int)>, int (&)(int)>);
  static_assert(!std::is_constructible_v<FunctionRef<int(int)>, int>);
  static_assert(!std::is_constructible_v<FunctionRef<int*(int)>, int (&)(int)>);
  static_assert(sizeof(FunctionRef<int(int)>) == 2 * sizeof(void*));
}

}  // namespace
}  // namespace heed
