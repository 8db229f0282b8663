// SPDX-License-Identifier: MIT
// What a program's own code throws inside a call, and forks in the middle of one.
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include <heed/attention.hpp>
#include <heed/masks.hpp>

namespace heed::test {
namespace {

using masks::Causal;

class FaultyThreads : public ::testing::Test {
 protected:
  ~FaultyThreads() override {
    set_thread_count(threads_);
    set_executor({});
  }
  Index threads_ = thread_count();
};

struct Inputs {
  Tensor<float, 3> q, k;
  explicit Inputs(Index queries, Index keys = 700) : q({4, queries, 16}), k({4, keys, 16}) {
    for (Index i = 0; i < q.size(); ++i) q.data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    for (Index i = 0; i < k.size(); ++i) k.data()[i] = static_cast<float>(i * 31 % 103) / 51 - 1;
  }
};

template <class T, std::size_t Rank>
bool same_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

/// A score function that throws for one key, forward or backward.
struct Thrower {
  Index key = -1;
  bool backward = false;
  float value(float score, Position at) const {
    if (!backward && at.key == key) throw std::runtime_error("value");
    return score;
  }
  float derivative(float, Position at) const {
    if (backward && at.key == key) throw 42;
    return 1;
  }
};

/// Every kind of call with a mask and a score function; results one behind the other.
struct Calls {
  Index queries;
  Inputs in{queries};
  Tensor<float, 3> out{in.q.extents()}, dq{in.q.extents()}, dk{in.k.extents()}, dv{in.k.extents()};
  Tensor<float, 2> lse{Extents<2>{4, queries}};

  template <class M>
  void forward(const M& mask, const Thrower& function) {
    attention(in.q, in.k, in.k, mask, out, {.log_sum_exp = lse, .score_function = function});
  }
  template <class M>
  void backward(const M& mask, const Thrower& function) {
    attention_backward(in.q, in.k, in.k, mask, out, lse, out, dq, dk, dv,
                       {.score_function = function});
  }
  template <class M>
  void packed(const M& mask, const Thrower& function) {
    const std::vector<Index> queries_at = {0, queries / 2, queries}, keys_at = {0, 350, 700};
    packed_attention(in.q, in.k, in.k, PackedOffsets(queries_at, keys_at), mask, out,
                     {.score_function = function});
  }
};

TEST_F(FaultyThreads, WhatMasksAndScoreFunctionsThrowReachesTheCaller) {
  const Thrower calm;
  const auto throwing = predicate([](Index, Index key) {
    if (key == 333) throw std::logic_error("mask");
    return true;
  });
  for (const Index threads : {1, 2, 5}) {
    set_thread_count(threads);
    for (const Index queries : {1, 7, 300}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(queries) + " queries");
      Calls right{queries}, calls{queries};
      right.forward(Causal{}, calm);
      right.backward(Causal{}, calm);
      calls.forward(Causal{}, calm);
      EXPECT_THROW(calls.forward(throwing, calm), std::logic_error);
      EXPECT_THROW(calls.forward(Causal{}, Thrower{77}), std::runtime_error);
      calls.forward(Causal{}, calm);
      EXPECT_TRUE(same_bits(calls.out, right.out));
      EXPECT_THROW(calls.backward(throwing, calm), std::logic_error);
      EXPECT_THROW(calls.backward(Causal{}, Thrower{77}), std::runtime_error);
      EXPECT_THROW(calls.backward(Causal{}, Thrower{77, true}), int);
      calls.backward(Causal{}, calm);
      EXPECT_TRUE(same_bits(calls.dq, right.dq) && same_bits(calls.dk, right.dk));
      EXPECT_THROW(calls.packed(throwing, calm), std::logic_error);
      EXPECT_THROW(calls.packed(Causal{}, Thrower{77}), std::runtime_error);
      calls.forward(Causal{}, calm);
      EXPECT_TRUE(same_bits(calls.out, right.out));
    }
  }
}

TEST_F(FaultyThreads, ExecutorsMayThrowBeforeBetweenAndAfterTasks) {
  set_thread_count(3);
  Calls right{300}, calls{300};
  right.forward(Causal{}, {});
  Index allowed = 0;
  for (allowed = 0; allowed <= 3; ++allowed) {
    set_executor({[](void* context, Index tasks, FunctionRef<void(Index)> task) {
                    for (Index i = 0; i < tasks; ++i) {
                      if (i == *static_cast<Index*>(context)) throw std::runtime_error("executor");
                      task(i);
                    }
                    throw std::runtime_error("executor");
                  },
                  &allowed});
    EXPECT_THROW(calls.forward(Causal{}, {}), std::runtime_error) << allowed;
    EXPECT_THROW(calls.backward(Causal{}, {}), std::runtime_error) << allowed;
  }
  set_executor({});
  calls.forward(Causal{}, {});
  EXPECT_TRUE(same_bits(calls.out, right.out));
}

/// Forks while other threads compute, and in a task of a call; the child computes and exits. The
/// threads keep their arrays: the address sanitizer's own memory, unlike the C library's, stays
/// locked in a child when another thread was inside it at the fork (a program of ten lines without
/// heed shows it).
TEST_F(FaultyThreads, ForksInMidWork) {
  set_thread_count(3);
  Calls right{300};
  right.forward(Causal{}, {});
  const auto child_is_right = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      Calls calls{300};
      calls.forward(Causal{}, {});
      ::_exit(same_bits(calls.out, right.out) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, begun{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      Calls calls{300};
      for (bool first = true; !stop; first = false) {
        std::memset(calls.out.data(), 0,
                    static_cast<std::size_t>(calls.out.size()) * sizeof(float));
        calls.forward(Causal{}, {});
        if (!same_bits(calls.out, right.out)) ++wrong;
        if (first) ++begun;
      }
    });
  }
  while (begun < 3) std::this_thread::yield();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(child_is_right()) << i;
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(wrong, 0);
  std::atomic<int> children{0};
  parallel_for(3, [&](Index) {
    if (child_is_right()) ++children;
  });
  EXPECT_EQ(children, 3);
  Calls calls{300};
  calls.forward(Causal{}, {});
  EXPECT_TRUE(same_bits(calls.out, right.out)) << "the parent goes on";
}

}  // namespace
}  // namespace heed::test
