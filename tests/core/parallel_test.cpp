// SPDX-License-Identifier: MIT
#include <heed/core/parallel.hpp>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <heed/core/error.hpp>

namespace heed {
namespace {

class Parallel : public ::testing::Test {
 protected:
  ~Parallel() override {
    set_thread_count(threads_);
    set_executor({});
  }
  Index threads_ = thread_count();
};

TEST_F(Parallel, EveryIndexOnce) {
  for (const Index threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const Index count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      parallel_for(count, [&](Index i) { ++calls[static_cast<std::size_t>(i)]; });
      for (const auto& call : calls) ASSERT_EQ(call, 1) << threads << " threads, " << count;
    }
  }
}

/// Whether two threads are inside one call at once: two indices that wait for each other can only
/// finish on two. The pool's second thread joins when it is free, so a few calls may be needed,
/// never many; `between` comes before each.
bool two_threads_meet(FunctionRef<void()> between) {
  for (int round = 0; round < 200; ++round) {
    between();
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    parallel_for(2, [&](Index) {
      ++inside;
      for (int spin = 0; spin < 20000 && !met; ++spin) {
        if (inside == 2) met = true;
        std::this_thread::yield();
      }
    });
    if (met) return true;
  }
  return false;
}

TEST_F(Parallel, MoreThanOneThreadWorks) {
  set_thread_count(2);
  EXPECT_TRUE(two_threads_meet([] {}));
}

/// Waits until every thread of this process but one sleeps, some seconds at most.
void let_others_fall_asleep() {
  for (int wait = 0; wait < 2000; ++wait) {
    int awake = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream stat(thread.path() / "stat");
      std::string number, name, state;
      stat >> number >> name >> state;
      awake += state == "R";
    }
    if (awake <= 1) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_F(Parallel, ThreadsThatFellAsleepAreWoken) {
  set_thread_count(2);
  parallel_for(2, [](Index) {});
  EXPECT_TRUE(two_threads_meet(let_others_fall_asleep));
}

TEST_F(Parallel, ThreadsStayAndNoMoreComeThanAsked) {
  const auto threads_of_this_process = [] {
    Index count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      count += !thread.path().empty();
    }
    return count;
  };
  set_thread_count(3);
  parallel_for(10, [](Index) {});
  const Index before = threads_of_this_process();
  for (int round = 0; round < 50; ++round) parallel_for(10, [](Index) {});
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST_F(Parallel, ThreadsComputeAsTheirCallerDoes) {
  set_thread_count(4);
  parallel_for(8, [](Index) {});  // threads are there before anything is set
  const auto thirds = [] {
    std::vector<float> result(400);
    parallel_for(400, [&](Index i) {
      volatile float one = 1, three = 3;
      result[static_cast<std::size_t>(i)] = one / three;
    });
    return result;
  };
  const std::vector<float> nearest(400, 1.f / 3);
  EXPECT_EQ(thirds(), nearest);
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  volatile float one = 1, three = 3;
  const std::vector<float> downward(400, one / three);
  const auto rounded_down = thirds();
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_NE(downward, nearest);
  EXPECT_EQ(rounded_down, downward);
  EXPECT_EQ(thirds(), nearest);
}

TEST_F(Parallel, ThreadsLeaveSignalsToTheProgram) {
  set_thread_count(4);
  parallel_for(8, [](Index) {});
  let_others_fall_asleep();  // a thread begins with all signals blocked
  int workers = 0;           // a sanitizer may have a thread of its own
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(thread.path() / "status");
    std::uint64_t blocked = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) blocked = std::stoull(line.substr(7), nullptr, 16);
    }
    const auto blocks = [&](int signal) { return (blocked >> (signal - 1) & 1) != 0; };
    workers += blocks(SIGTERM) && blocks(SIGINT) && blocks(SIGUSR1) && blocks(SIGCHLD) &&
               !blocks(SIGSEGV) && !blocks(SIGFPE) && !blocks(SIGPROF);
  }
  EXPECT_GE(workers, 3);
  sigset_t callers;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &callers), 0);
  EXPECT_EQ(sigismember(&callers, SIGTERM), 0);
}

TEST_F(Parallel, TheFirstErrorReachesTheCaller) {
  for (const Index threads : {1, 4}) {
    set_thread_count(threads);
    EXPECT_THROW(parallel_for(100,
                              [](Index i) {
                                if (i == 37) throw std::runtime_error("37");
                              }),
                 std::runtime_error);
    std::atomic<int> calls{0};
    parallel_for(10, [&](Index) { ++calls; });
    EXPECT_EQ(calls, 10) << "the pool works on after an error";
  }
}

TEST_F(Parallel, NestedCallsRunOnTheirCaller) {
  set_thread_count(4);
  std::atomic<int> calls{0};
  parallel_for(8, [&](Index) { parallel_for(8, [&](Index) { ++calls; }); });
  EXPECT_EQ(calls, 64);
}

TEST_F(Parallel, NestedCallsDoNotReachTheExecutor) {
  set_thread_count(4);
  Index runs = 0;
  set_executor({[](void* context, Index tasks, FunctionRef<void(Index)> task) {
                  ++*static_cast<Index*>(context);
                  for (Index i = 0; i < tasks; ++i) task(i);
                },
                &runs});
  std::atomic<int> calls{0};
  parallel_for(8, [&](Index) { parallel_for(8, [&](Index) { ++calls; }); });
  EXPECT_EQ(calls, 64);
  EXPECT_EQ(runs, 1);
  EXPECT_THROW(parallel_for(8, [](Index) { throw 1; }), int);
  parallel_for(8, [&](Index) { ++calls; });  // no longer nested
  EXPECT_EQ(runs, 3);
  set_executor({});
}

TEST_F(Parallel, SeveralCallersAtOnce) {
  set_thread_count(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<int> calls{0};
        parallel_for(10, [&](Index) {
          ++calls;
          std::this_thread::yield();  // so that other callers come in between
        });
        if (calls != 10) ++wrong;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Parallel, AForkedChildWorksAlone) {
  set_thread_count(3);
  parallel_for(10, [](Index) {});  // the pool has threads now
  const pid_t child = fork();
  if (child == 0) {
    Index calls = 0;
    parallel_for(10, [&](Index) { ++calls; });  // no second thread here, so no race
    _exit(calls == 10 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(Parallel, AProgramsOwnThreads) {
  set_thread_count(3);
  struct Log {
    Index tasks = 0;
  } log;
  set_executor({[](void* context, Index tasks, FunctionRef<void(Index)> task) {
                  static_cast<Log*>(context)->tasks += tasks;
                  for (Index i = 0; i < tasks; ++i) task(i);
                },
                &log});
  int calls = 0;
  parallel_for(10, [&](Index) { ++calls; });
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(log.tasks, 3);
  EXPECT_THROW(parallel_for(10, [](Index) { throw std::logic_error("x"); }), std::logic_error);
}

TEST_F(Parallel, AtLeastOneThread) {
  EXPECT_THROW(set_thread_count(0), InvalidArgument);
  EXPECT_THROW(set_thread_count(-3), InvalidArgument);
  set_thread_count(5);
  EXPECT_EQ(thread_count(), 5);
}

/// Runs ChildCountsWhatTheEnvironmentSays under HEED_THREADS=`value`, which is to be `count`
/// threads, or nonsense where that is 0.
int status_under(const char* value, const char* count) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("HEED_THREADS", value, 1);
    setenv("HEED_TEST_COUNT", count, 1);
    execl("/proc/self/exe", "parallel",
          "--gtest_filter=ParallelEnvironment.ChildCountsWhatTheEnvironmentSays", nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ParallelEnvironment, ChildCountsWhatTheEnvironmentSays) {
  const char* count = std::getenv("HEED_TEST_COUNT");
  if (count == nullptr) return;
  if (std::stol(count) > 0) {
    EXPECT_EQ(thread_count(), std::stol(count));
    return;
  }
  try {
    thread_count();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "HEED_THREADS=" + std::string(std::getenv("HEED_THREADS")) +
                  ": expected a number of threads, 1 or more");
  }
}

TEST(ParallelEnvironment, NonsenseIsRefused) {
  EXPECT_EQ(status_under("3", "3"), 0);
  for (const char* value : {"abc", "-3", "0", "2 threads", " 4", "+4", "99999999999999999999"}) {
    EXPECT_EQ(status_under(value, "0"), 0) << value;
  }
}

TEST(ParallelEnvironment, AnEmptyVariableIsNone) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_EQ(status_under("", std::to_string(CPU_COUNT(&allowed)).c_str()), 0);
}

}  // namespace
}  // namespace heed
