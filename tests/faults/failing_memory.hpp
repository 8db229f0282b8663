// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/io/file.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::test {

/// Blocks of operator new that live, how many there may be, and how many calls of it go well before
/// two in a row fail, since tensors ask a second time. (failing_memory_test.cpp replaces the
/// operators of this executable.)
extern Index live_blocks, most_live_blocks, calls_that_go_well;
constexpr Index all_go_well = -2;

/// What state looks like, bit by bit.
template <class T>
std::string bytes(const T* values, Index count) {
  return std::string(reinterpret_cast<const char*>(values),
                     static_cast<std::size_t>(count) * sizeof(T));
}
template <class T, std::size_t Rank>
std::string bytes(const Tensor<T, Rank>& tensor) {
  return bytes(tensor.data(), tensor.size());
}
template <class T>
std::string bytes(const std::vector<T>& values) {
  return bytes(values.data(), static_cast<Index>(values.size()));
}

/// What a call that throws owes: nothing but to go right the next time, or everything as it was.
enum class Failed { may_have_begun, left_all_as_it_was };

/// Calls `call(state)` with the first, second, … allocation failing until none is left to fail. It
/// must throw or come to its result; then it must come to its result, whose `digest(state)` is that
/// of a call where nothing failed, and at last all memory must be free. Every attempt has a state
/// of its own, and a thread, because threads keep memory.
template <class Make, class Call, class Digest>
void fail_every_allocation(const Make& make, const Call& call, const Digest& digest,
                           Failed failed = Failed::left_all_as_it_was) {
  std::string before, after;
  const auto whole = [&] {
    auto state = make();
    before = digest(state);
    call(state);
    after = digest(state);
  };
  std::thread(whole).join();  // memory of the pool's threads, tables that stay
  std::thread(whole).join();
  bool reached = true;
  for (Index n = 0; reached && n < 5000; ++n) {
    const Index live = live_blocks;
    std::thread([&] {
      auto state = make();
      bool thrown = false;
      __atomic_store_n(&calls_that_go_well, n, __ATOMIC_SEQ_CST);
      try {
        call(state);
      } catch (const std::bad_alloc&) {
        thrown = true;
      } catch (const FileError&) {
        thrown = true;
      }
      reached = __atomic_exchange_n(&calls_that_go_well, all_go_well, __ATOMIC_SEQ_CST) < 0;
      if (thrown && failed == Failed::left_all_as_it_was) {
        EXPECT_TRUE(digest(state) == before) << "changed by the failure of allocation " << n;
      }
      if (thrown) call(state);
      EXPECT_TRUE(digest(state) == after) << "another result after allocation " << n;
      EXPECT_TRUE(reached || n > 0) << "nothing was allocated";
    }).join();
    if (thread_count() == 1) {
      EXPECT_EQ(live_blocks, live) << "leaked after allocation " << n;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

/// On one thread, where leaks are counted, and on two.
class FailingMemory : public ::testing::TestWithParam<Index> {
 protected:
  FailingMemory() { set_thread_count(GetParam()); }
  ~FailingMemory() override { set_thread_count(threads_); }
  Index threads_ = thread_count();
};

}  // namespace heed::test
