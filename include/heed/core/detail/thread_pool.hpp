// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <cstdint>
#include <new>
#include <type_traits>

#include <heed/core/detail/shared.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// The recent latency of another thread that is given work, and the work that is therefore worth
/// sharing. Processors with a common cache respond within 0.3 µs, others within 1 µs or more, and a
/// virtual machine may move from one kind to the other while it runs (measured: a token of a small
/// model gains an eighth from a second thread on one kind and loses as much on the other).
class HandOver {
 public:
  /// Records that a thread began this long after the work was there.
  void note(Index nanoseconds) {
    const Index before = expected_.load();
    const Index seen = nanoseconds < longest ? nanoseconds : longest;
    expected_.store(before + (seen - before) / 4);
  }
  /// Records that no thread came before the work was done.
  void note_nobody() { note(longest); }

  Index expected() const { return expected_.load(); }

  /// Whether work of this duration on one thread is worth a second one. Says yes now and then in
  /// any case, to measure the latency again.
  bool pays(Index nanoseconds) {
    if (nanoseconds < 2000) return false;
    if (nanoseconds >= 16000 || nanoseconds >= 16 * expected_.load()) return true;
    return declined_.fetch_add(1) % 256 >= 240;  // some in a row: the first wakes a thread
  }

 private:
  static constexpr Index longest = 4000;

  Atomic<Index> expected_{500};
  Atomic<Index> declined_{0};
};

/// A pool of persistent threads. A job wakes them; before they sleep they spin a little, since
/// waking a sleeping thread costs tens of microseconds.
class ThreadPool {
 public:
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The pool of the process. Never destroyed: static objects may compute in their destructors, and
  /// other threads meanwhile. It closes at the time of its destruction: as the program ends or the
  /// library that holds this code is unloaded.
  static ThreadPool& instance() {
    static_assert(std::is_trivially_destructible_v<ThreadPool>);
    static ThreadPool pool;
    return pool;
  }

  /// Calls task(0) … task(tasks - 1), each once: 0, and those that no worker takes in time, on the
  /// caller, the others on workers. Returns false, without a call, if the pool is busy or its
  /// threads are in another process.
  bool run(Index tasks, FunctionRef<void(Index)> task) {
    if (forked_.load() != 0 || stop_.load() != 0 || taken_.exchange(1) != 0) return false;
    if (worker_count_.load() < tasks - 1) hire(tasks - 1);
    job_.task = task;
    job_.begun = nanoseconds();
    job_.float_control = float_control();
    job_.seats.store(tasks - 1);
    const bool all_awake = sleepers_.load() == 0;
    if (!all_awake && woken_.load() == 0) wake_sleepers();
    task(0);
    const Index left = job_.seats.exchange(0);
    for (Index seat = left; seat > 0; --seat) task(seat);
    const Index seated = tasks - 1 - (left > 0 ? left : 0);
    finished_before_ += seated;
    for (Index spins = 0; end_.finished.load() != finished_before_; ++spins) pause(spins);
    if (seated == 0 && all_awake) hand_over.note_nobody();
    if (seated > 0 && all_awake) hand_over.note(end_.latency.load());
    taken_.store(0);
    return true;
  }

  HandOver hand_over;

 private:
  static constexpr Index spins_before_sleep = 10000;  // 0.1 to 0.2 ms

  struct Closing {
    ThreadPool& pool;
    ~Closing() { pool.close(); }
  };

  ThreadPool() {
    // A forked child has the memory but not the threads. (To ask getpid every time takes 0.1 µs.)
    pthread_atfork(nullptr, nullptr, [] { forked_.store(1); });
    static const Closing closing{*this};
  }

  /// Ends the threads for good. A running job is completed: threads finish the tasks they have
  /// begun, and its caller does the others.
  void close() {
    if (forked_.load() != 0) return;
    pthread_mutex_lock(&mutex_);
    stop_.store(1);
    pthread_cond_broadcast(&wake_);
    const Index count = worker_count_.exchange(0);
    pthread_mutex_unlock(&mutex_);
    for (Index i = 0; i < count; ++i) {
      if (pthread_equal(workers_[i], pthread_self()) == 0) pthread_join(workers_[i], nullptr);
    }
  }

  /// How the processor rounds, and whether it flushes small numbers to 0. A worker computes as its
  /// caller does, whatever was set since it was created.
  static std::uint64_t float_control() {
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~std::uint64_t{0x3f};  // without what has happened so far
#elif defined(__aarch64__)
    std::uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
  }
  static void set_float_control([[maybe_unused]] std::uint64_t control) {
    if (control == float_control()) return;
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(static_cast<unsigned>(control));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(control));
#endif
  }

  static Index nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<Index>(now.tv_sec) * 1000000000 + now.tv_nsec;
  }

  static void pause(Index spins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (spins % 512 == 511) sched_yield();
  }

  void wake_sleepers() {
    pthread_mutex_lock(&mutex_);
    keep_off_the_callers_processor();
    woken_.store(1);
    pthread_cond_broadcast(&wake_);
    pthread_mutex_unlock(&mutex_);
  }

  /// Starts threads up to that number; fewer if there is no memory for more, or the pool is closed.
  void hire(Index workers) {
    pthread_mutex_lock(&mutex_);
    const Index before = worker_count_.load();
    pthread_t* more = nullptr;
    if (stop_.load() == 0) more = new (std::nothrow) pthread_t[static_cast<std::size_t>(workers)];
    if (more != nullptr) {
      for (Index i = 0; i < before; ++i) more[i] = workers_[i];
      delete[] workers_;
      workers_ = more;
      sigset_t callers;
      const sigset_t theirs = signals_of_the_program();
      pthread_sigmask(SIG_BLOCK, &theirs, &callers);
      for (Index i = before; i < workers; ++i) {
        if (pthread_create(&workers_[i], nullptr, &ThreadPool::live, this) != 0) break;
        worker_count_.fetch_add(1);
      }
      pthread_sigmask(SIG_SETMASK, &callers, nullptr);
      if (worker_count_.load() > before) keep_off_the_callers_processor();
    }
    pthread_mutex_unlock(&mutex_);
  }

  /// The signals that workers, which inherit the mask of their creator, leave to the threads of the
  /// program: all but those of errors and profilers. A program that blocks SIGTERM to wait for it
  /// would otherwise be ended by a worker.
  static sigset_t signals_of_the_program() {
    sigset_t theirs;
    sigfillset(&theirs);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&theirs, own);
    }
    return theirs;
  }

  /// Keeps the workers off the caller's processor; the caller holds the mutex. Linux likes to wake
  /// a thread on the processor of its waker, where it waits for milliseconds while another
  /// processor idles (measured: no gain from a second thread in 2 of 3 calls below 1 ms).
  void keep_off_the_callers_processor() {
    cpu_set_t allowed;
    const int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    CPU_CLR(static_cast<std::size_t>(here), &allowed);
    if (CPU_COUNT(&allowed) == 0) return;
    for (Index i = 0; i < worker_count_.load(); ++i) {
      pthread_setaffinity_np(workers_[i], sizeof(allowed), &allowed);
    }
  }

  static void* live(void* self) {
    static_cast<ThreadPool*>(self)->work();
    return nullptr;
  }

  void work() {
    while (wait_for_seats()) {
      const Index seat = job_.seats.fetch_add(-1);
      if (seat <= 0) continue;  // taken by others, or the job is over
      end_.latency.store(nanoseconds() - job_.begun);
      set_float_control(job_.float_control);
      job_.task(seat);
      end_.finished.fetch_add(1);
    }
  }

  /// Waits for work: true once there may be some, false when the pool ends.
  bool wait_for_seats() {
    for (Index spins = 0; spins < spins_before_sleep; ++spins) {
      if (stop_.load() != 0) return false;
      if (job_.seats.load() > 0) return true;
      pause(spins);
    }
    pthread_mutex_lock(&mutex_);
    woken_.store(0);
    sleepers_.fetch_add(1);
    // Once woken it stays awake for a while, though the job may be over: more are likely to come.
    while (job_.seats.load() <= 0 && woken_.load() == 0 && stop_.load() == 0) {
      pthread_cond_wait(&wake_, &mutex_);
    }
    sleepers_.fetch_add(-1);
    pthread_mutex_unlock(&mutex_);
    return stop_.load() == 0;
  }

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;
  pthread_t* workers_ = nullptr;  // changed, as their count, by who has locked
  Atomic<Index> worker_count_{0};
  inline static Atomic<int> forked_{0};
  Atomic<int> stop_{0};
  Atomic<Index> sleepers_{0};
  Atomic<int> woken_{0};  // those who sleep have been told, and none fell asleep since
  // What one thread writes while another waits for it moves between processors a cache line at a
  // time, at 50 to 150 ns each: a line for the job, one for its end, one for the callers alone.
  struct alignas(64) Job {
    Atomic<Index> seats{0};
    Index begun = 0;
    std::uint64_t float_control = 0;
    FunctionRef<void(Index)> task = nothing;
  };
  struct alignas(64) End {
    Atomic<Index> finished{0};  // tasks of workers, of all jobs
    Atomic<Index> latency{0};   // from the beginning of a job to that of a worker
  };
  static constexpr auto nothing = [](Index) {};
  Job job_;
  End end_;
  alignas(64) Atomic<int> taken_{0};
  Index finished_before_ = 0;  // what end_.finished comes to with the jobs so far
};

}  // namespace heed::detail
