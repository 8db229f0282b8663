// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/config.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>

#if HEED_DEFINITIONS
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <limits>

#include <heed/core/detail/shared.hpp>
#include <heed/core/detail/thread_pool.hpp>
#include <heed/core/error.hpp>
#endif

namespace heed {

/// The number of threads, including the caller, that work on one call. The default is the number of
/// processors this process may use, or the environment variable HEED_THREADS, where an invalid
/// value is an InvalidArgument on first use. Results do not depend on it.
Index thread_count();

/// Sets thread_count for all later calls. Throws InvalidArgument for fewer than 1.
void set_thread_count(Index count);

/// An executor that replaces the built-in thread pool: `run(context, tasks, task)` calls task(0) …
/// task(tasks - 1), each once, on any threads in any order, and returns when all have returned.
/// Tasks do not wait for one another and do not throw. `task` is valid until `run` returns. While
/// `run` waits for the tasks, its thread must not begin other work that calls heed. `context`
/// must live until another executor is set.
struct Executor {
  void (*run)(void* context, Index tasks, FunctionRef<void(Index)> task) = nullptr;
  void* context = nullptr;
};

/// Uses `executor` for all later parallel work; an empty one restores the built-in pool. Must not
/// be called during other calls.
void set_executor(Executor executor);
template <class Function>
requires(!std::is_convertible_v<Function, Executor>) void set_executor(const Function&) {
  static_assert(detail::never<Function>,
                "an executor is a function pointer and its context: set_executor({.run = [](void*, "
                "heed::Index tasks, heed::FunctionRef<void(heed::Index)> task) { … }})");
}

/// Calls body(0) … body(count - 1), each once, on up to thread_count threads. Threads begin with
/// the first indices and take the others in ascending order, so put the most expensive first; no
/// order is promised. Returns when all are done; the first exception of a body is rethrown here,
/// and indices not yet begun are dropped. Nested calls run on their caller alone, and so do calls
/// from other threads while the pool is busy.
void parallel_for(Index count, FunctionRef<void(Index)> body);

namespace detail {

/// Whether work of this duration on one thread is worth a parallel_for: always above 16 µs, never
/// below 2 µs, in between if the pool's threads have recently responded fast enough.
bool worth_sharing(Index nanoseconds);

/// The bodies of a parallel_for that take so long in all: on several threads where that is worth
/// it, else here, one after the other.
void parallel_for_if_worth(Index count, Index nanoseconds, FunctionRef<void(Index)> body);

}  // namespace detail

}  // namespace heed

#if HEED_DEFINITIONS
// Defined in one unit of heed::compiled, inline everywhere else.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace heed::detail {

inline Index default_thread_count() {
  const char* wanted = std::getenv("HEED_THREADS");
  if (wanted != nullptr && *wanted != '\0') {
    char* end = nullptr;
    const long count = std::strtol(wanted, &end, 10);
    const bool digits = *wanted >= '0' && *wanted <= '9' && *end == '\0';
    if (!digits || count < 1 || count == std::numeric_limits<long>::max()) {
      throw_invalid_argument("HEED_THREADS=", wanted, ": expected a number of threads, 1 or more");
    }
    return count;
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

/// Whether this thread is inside a parallel_for.
inline bool& inside_parallel_for() {
  thread_local bool inside = false;
  return inside;
}

/// One parallel_for of `threads` tasks: each begins with its own index, then takes the next ones in
/// order. Keeps the first error.
class IndexQueue {
 public:
  IndexQueue(Index count, Index threads, FunctionRef<void(Index)> body)
      : count_(count), body_(body), next_(threads) {}

  void operator()(Index first) {
    bool& here = inside_parallel_for();
    const bool before = here;
    here = true;
    for (Index i = first; i < count_; i = next()) call(i);
    here = before;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// Writes only if an index may be left: otherwise the cache line stays shared.
  Index next() { return next_.load() < count_ ? next_.fetch_add(1) : count_; }
  void call(Index i) {
    if (failed_.load() != 0) return;
#if HEED_EXCEPTIONS
    try {
      body_(i);
    } catch (...) {
      if (failed_.exchange(1) == 0) error_ = std::current_exception();
      next_.store(count_);
    }
#else
    body_(i);
#endif
  }

  const Index count_;
  const FunctionRef<void(Index)> body_;
  Atomic<int> failed_{0};
  std::exception_ptr error_;
  alignas(64) Atomic<Index> next_;
};

}  // namespace heed::detail

namespace heed {

HEED_INLINE Index thread_count() { return detail::ParallelSettings::instance().threads.load(); }

HEED_INLINE void set_thread_count(Index count) {
  if (count < 1) throw_invalid_argument("set_thread_count: ", count, " threads; at least 1");
  detail::ParallelSettings::instance().threads.store(count);
}

HEED_INLINE void set_executor(Executor executor) {
  detail::ParallelSettings::instance().executor = executor;
}

HEED_INLINE bool detail::worth_sharing(Index nanoseconds) {
  if (thread_count() == 1) return false;
  return ThreadPool::instance().hand_over.pays(nanoseconds);
}

HEED_INLINE void parallel_for(Index count, FunctionRef<void(Index)> body) {
  const Index threads = thread_count() < count ? thread_count() : count;
  if (threads <= 1 || detail::inside_parallel_for()) {
    for (Index i = 0; i < count; ++i) body(i);
    return;
  }
  detail::IndexQueue queue(count, threads, body);
  const Executor executor = detail::ParallelSettings::instance().executor;
  if (executor.run != nullptr) {
    executor.run(executor.context, threads, queue);
  } else if (!detail::ThreadPool::instance().run(threads, queue)) {
    for (Index task = 0; task < threads; ++task) queue(task);
  }
  queue.rethrow();
}

HEED_INLINE void detail::parallel_for_if_worth(Index count, Index nanoseconds,
                                               FunctionRef<void(Index)> body) {
  if (count > 1 && worth_sharing(nanoseconds)) return parallel_for(count, body);
  for (Index i = 0; i < count; ++i) body(i);
}

}  // namespace heed
// NOLINTEND(misc-definitions-in-headers)
#endif
