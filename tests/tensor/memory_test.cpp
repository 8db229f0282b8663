// SPDX-License-Identifier: MIT
#include <heed/tensor/tensor.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "support/sanitizers.hpp"

namespace heed {
namespace {

using detail::TensorMemory;

constexpr std::size_t mebibyte = 1 << 20;

/// Under an address sanitizer all blocks come from the allocator.
bool reuses() { return !test::sanitized || test::threads_sanitized; }

TEST(TensorMemory, LargeBlocksComeBackAtTheirSize) {
  void* first = TensorMemory::take(mebibyte);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  const std::size_t before = TensorMemory::kept_bytes();
  TensorMemory::give(first, mebibyte);
  if (!reuses()) return;
  EXPECT_EQ(TensorMemory::kept_bytes(), before + mebibyte);
  void* other = TensorMemory::take(3 * mebibyte);
  EXPECT_NE(other, first);
  void* again = TensorMemory::take(mebibyte - 1000);  // of the same class
  EXPECT_EQ(again, first);
  std::memset(again, 7, mebibyte - 1000);
  TensorMemory::give(again, mebibyte - 1000);
  TensorMemory::give(other, 3 * mebibyte);
}

TEST(TensorMemory, SmallBlocksComeBackToo) {
  const std::size_t before = TensorMemory::kept_bytes();
  void* first = TensorMemory::take(1000);
  void* second = TensorMemory::take(0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  std::memset(first, 7, 1000);
  TensorMemory::give(first, 1000);
  TensorMemory::give(second, 0);
  TensorMemory::give(nullptr, 5 * mebibyte);
  EXPECT_EQ(TensorMemory::kept_bytes(), before);
  if (!reuses()) return;
  void* again = TensorMemory::take(961);  // 16 lines too
  EXPECT_EQ(again, first);
  TensorMemory::give(again, 961);
}

TEST(TensorMemory, KeepsAFewSmallBlocksOfASize) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(TensorMemory::take(256));
    std::memset(blocks.back(), i, 256);
  }
  for (void* block : blocks) TensorMemory::give(block, 256);  // leaks are the sanitizer's to see
  for (int i = 0; i < 100; ++i) blocks[static_cast<std::size_t>(i)] = TensorMemory::take(256);
  for (int i = 0; i < 100; ++i) std::memset(blocks[static_cast<std::size_t>(i)], i, 256);
  for (int i = 0; i < 100; ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[static_cast<std::size_t>(i)]);
    for (int at = 0; at < 256; ++at) ASSERT_EQ(bytes[at], i);  // no two of them overlap
  }
  for (void* block : blocks) TensorMemory::give(block, 256);
}

TEST(TensorMemory, KeepsNoMoreThanItsLimit) {
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(TensorMemory::take(64 * mebibyte));  // untouched
  for (void* block : blocks) TensorMemory::give(block, 64 * mebibyte);
  EXPECT_LE(TensorMemory::kept_bytes(), TensorMemory::most_bytes);
  for (int i = 0; i < 2000; ++i) blocks.push_back(TensorMemory::take(mebibyte / 4));
  for (std::size_t i = 40; i < blocks.size(); ++i) TensorMemory::give(blocks[i], mebibyte / 4);
  EXPECT_LE(TensorMemory::kept_bytes(), TensorMemory::most_bytes);
}

TEST(TensorMemory, ThreadsKeepTheirOwn) {
  std::thread([] {
    EXPECT_EQ(TensorMemory::kept_bytes(), 0u);
    Tensor<float, 1> tensor({1000000});
  }).join();
}

TEST(TensorMemory, TensorsOfATypeFollowEachOther) {
  if (!reuses()) return;
  const double* first = nullptr;
  for (const Index size : {40, 100000}) {
    for (int round = 0; round < 3; ++round) {
      const Tensor<double, 1> tensor({size});
      if (round > 0) {
        EXPECT_EQ(tensor.data(), first) << size;
      }
      first = tensor.data();
    }
  }
}

TEST(TensorMemory, WhatAThreadKeptGoesWithIt) {
  if (test::sanitized) GTEST_SKIP() << "what was freed stays resident a while";
  const auto resident_pages = [] {
    std::size_t size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident;
  };
  const auto use_memory = [] {
    std::thread([] {
      Tensor<float, 1> large({4 << 20});  // 16 MiB, written
      Tensor<float, 1> small({100});
    }).join();
  };
  use_memory();
  const std::size_t before = resident_pages();
  for (int round = 0; round < 16; ++round) use_memory();
  EXPECT_LT(resident_pages(), before + (64 << 20) / 4096);
}

TEST(TensorMemory, TensorsFromUsedBlocksAreZero) {
  for (int round = 0; round < 3; ++round) {
    Tensor<float, 1> tensor({100000});
    for (float& value : tensor) {
      ASSERT_EQ(value, 0);
      value = 1;
    }
  }
}

Tensor<float, 1> outlives_everything({1000000});  // dies after the main thread's blocks

}  // namespace
}  // namespace heed
