// SPDX-License-Identifier: MIT
#include <heed/core/detail/scratch.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

namespace heed::detail {
namespace {

TEST(Scratch, StaysWhileItIsLargeEnough) {
  std::byte* first = Scratch::of_this_thread(1000);
  std::memset(first, 1, 1000);
  EXPECT_EQ(Scratch::of_this_thread(500), first);
  std::byte* larger = Scratch::of_this_thread(1 << 20);
  std::memset(larger, 2, 1 << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(larger) % 64, 0u);
}

TEST(Scratch, EveryThreadHasItsOwn) {
  std::byte* mine = Scratch::of_this_thread(100);
  std::byte* theirs = nullptr;
  std::thread([&] { theirs = Scratch::of_this_thread(100); }).join();
  EXPECT_NE(mine, theirs);
}

TEST(Carver, ArraysAreAlignedAndDisjoint) {
  const auto carve = [](Carver carver, float*& a, double*& b) {
    a = carver.take<float>(17);
    b = carver.take<double>(3);
    return carver.used();
  };
  float* a = nullptr;
  double* b = nullptr;
  const std::size_t bytes = carve(Carver(nullptr), a, b);
  EXPECT_EQ(a, nullptr);
  std::byte* memory = Scratch::of_this_thread(bytes);
  EXPECT_EQ(carve(Carver(memory), a, b), bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 64, 0u);
  EXPECT_GE(reinterpret_cast<std::byte*>(b), reinterpret_cast<std::byte*>(a + 17));
  EXPECT_GE(memory + bytes, reinterpret_cast<std::byte*>(b + 3));
}

}  // namespace
}  // namespace heed::detail
