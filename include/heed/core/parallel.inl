// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include <heed/core/atomic.hpp>
#include <heed/core/error.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// Threads that stay: woken by a job they find seats in, spinning a little before they sleep, since
/// waking a sleeping thread costs tens of microseconds.
class ThreadPool {
 public:
  ThreadPool() : process_(getpid()) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() {
    if (getpid() != process_) return;  // a forked child has the memory but not the threads
    pthread_mutex_lock(&mutex_);
    stop_.store(1);
    pthread_cond_broadcast(&wake_);
    pthread_mutex_unlock(&mutex_);
    for (Index i = 0; i < worker_count_; ++i) pthread_join(workers_[i], nullptr);
    delete[] workers_;
  }

  static ThreadPool& instance() {
    static ThreadPool pool;
    return pool;
  }

  /// task(0) on the caller and task(1) … on workers that are free in time; `task` must be one that
  /// the caller alone would finish. False when the pool is taken (or its threads are in another
  /// process): nothing was run then.
  bool run(Index tasks, FunctionRef<void(Index)> task) {
    if (getpid() != process_ || taken_.exchange(1) != 0) return false;
    if (hire(tasks - 1)) keep_off_the_callers_processor();
    task_ = &task;
    finished_.store(0);
    seats_.store(tasks - 1);
    if (sleepers_.load() > 0) {
      keep_off_the_callers_processor();
      pthread_mutex_lock(&mutex_);
      pthread_cond_broadcast(&wake_);
      pthread_mutex_unlock(&mutex_);
    }
    task(0);
    const Index left = seats_.exchange(0);
    const Index seated = tasks - 1 - (left > 0 ? left : 0);
    for (Index spins = 0; finished_.load() < seated; ++spins) pause(spins);
    taken_.store(0);
    return true;
  }

 private:
  static constexpr Index spins_before_sleep = 10000;  // some 200 µs

  static void pause(Index spins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (spins % 64 == 63) sched_yield();
  }

  /// Whether workers were missing.
  bool hire(Index workers) {
    const Index before = worker_count_;
    if (workers <= before) return false;
    auto* more = new pthread_t[static_cast<std::size_t>(workers)];
    for (Index i = 0; i < before; ++i) more[i] = workers_[i];
    delete[] workers_;
    workers_ = more;
    while (worker_count_ < workers &&
           pthread_create(&workers_[worker_count_], nullptr, &ThreadPool::live, this) == 0) {
      ++worker_count_;
    }
    return worker_count_ > before;
  }

  /// Linux likes to wake a thread on the processor of its waker, where it waits for milliseconds
  /// behind it while another processor idles (measured: no gain from a second thread in 2 of 3
  /// calls below 1 ms). So workers are let run anywhere but there.
  void keep_off_the_callers_processor() {
    cpu_set_t allowed;
    const int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    CPU_CLR(static_cast<std::size_t>(here), &allowed);
    if (CPU_COUNT(&allowed) == 0) return;
    for (Index i = 0; i < worker_count_; ++i) {
      pthread_setaffinity_np(workers_[i], sizeof(allowed), &allowed);
    }
  }

  static void* live(void* self) {
    static_cast<ThreadPool*>(self)->work();
    return nullptr;
  }

  void work() {
    while (wait_for_seats()) {
      const Index seat = seats_.fetch_add(-1);
      if (seat <= 0) continue;  // taken by others, or the job is over
      (*task_)(seat);
      finished_.fetch_add(1);
    }
  }

  /// True once there may be a seat, false when the pool ends.
  bool wait_for_seats() {
    for (Index spins = 0; spins < spins_before_sleep; ++spins) {
      if (stop_.load() != 0) return false;
      if (seats_.load() > 0) return true;
      pause(spins);
    }
    pthread_mutex_lock(&mutex_);
    sleepers_.fetch_add(1);
    while (seats_.load() <= 0 && stop_.load() == 0) pthread_cond_wait(&wake_, &mutex_);
    sleepers_.fetch_add(-1);
    pthread_mutex_unlock(&mutex_);
    return stop_.load() == 0;
  }

  pid_t process_;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
  pthread_t* workers_ = nullptr;
  Index worker_count_ = 0;
  FunctionRef<void(Index)>* task_ = nullptr;
  Atomic<int> taken_{0};
  Atomic<int> stop_{0};
  Atomic<Index> sleepers_{0};
  alignas(64) Atomic<Index> seats_{0};
  alignas(64) Atomic<Index> finished_{0};
};

inline Index default_thread_count() {
  if (const char* wanted = std::getenv("HEED_THREADS")) {
    const long count = std::strtol(wanted, nullptr, 10);
    if (count >= 1) return count;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 ? 1 : online;
}

/// The pool's settings, process-wide.
struct ParallelSettings {
  Atomic<Index> threads{default_thread_count()};
  Executor executor{};

  static ParallelSettings& instance() {
    static ParallelSettings settings;
    return settings;
  }
};

/// One parallel_for: indices handed out in order to whoever asks, and the first error kept.
class IndexQueue {
 public:
  IndexQueue(Index count, FunctionRef<void(Index)> body) : count_(count), body_(body) {}

  void drain() {
    for (Index i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
      try {
        body_(i);
      } catch (...) {
        if (failed_.exchange(1) == 0) error_ = std::current_exception();
        next_.store(count_);
      }
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  alignas(64) Atomic<Index> next_{0};
  Atomic<int> failed_{0};
  Index count_;
  FunctionRef<void(Index)> body_;
  std::exception_ptr error_;
};

/// Whether this thread works on a parallel_for.
inline bool& inside_parallel_for() {
  thread_local bool inside = false;
  return inside;
}

}  // namespace heed::detail

namespace heed {

HEED_INLINE Index thread_count() { return detail::ParallelSettings::instance().threads.load(); }

HEED_INLINE void set_thread_count(Index count) {
  if (count < 1) throw_shape_error("set_thread_count: ", count, " threads; at least 1");
  detail::ParallelSettings::instance().threads.store(count);
}

HEED_INLINE void set_executor(Executor executor) {
  detail::ParallelSettings::instance().executor = executor;
}

HEED_INLINE void parallel_for(Index count, FunctionRef<void(Index)> body) {
  const Index threads = thread_count() < count ? thread_count() : count;
  if (threads <= 1 || detail::inside_parallel_for()) {
    for (Index i = 0; i < count; ++i) body(i);
    return;
  }
  detail::IndexQueue queue(count, body);
  auto drain = [&queue](Index) {
    bool& here = detail::inside_parallel_for();  // of the thread that drains
    const bool before = here;
    here = true;
    queue.drain();
    here = before;
  };
  const Executor executor = detail::ParallelSettings::instance().executor;
  if (executor.run != nullptr) {
    executor.run(executor.context, threads, drain);
  } else if (!detail::ThreadPool::instance().run(threads, drain)) {
    drain(0);
  }
  queue.rethrow();
}

}  // namespace heed
