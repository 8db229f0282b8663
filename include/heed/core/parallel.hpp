// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/config.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// How many threads, the caller included, work on one call. At first every processor this process
/// may run on, or what the environment variable HEED_THREADS says. No result depends on it.
Index thread_count();

/// Sets thread_count for all later calls. Throws ShapeError for fewer than 1.
void set_thread_count(Index count);

/// A program's own threads in place of the built-in pool: `run(context, tasks, task)` calls
/// task(0) … task(tasks - 1), each once, on whatever threads and in whatever order it likes, and
/// returns when all have returned. Tasks do not wait for one another and may throw. While `run`
/// waits for them, its thread must not begin other work that calls heed.
struct Executor {
  void (*run)(void* context, Index tasks, FunctionRef<void(Index)> task) = nullptr;
  void* context = nullptr;
};

/// Hands all later parallel work to `executor`; an empty one brings the built-in pool back. Not to
/// be called beside running calls.
void set_executor(Executor executor);

/// Calls body(0) … body(count - 1), each once, on up to thread_count threads, handing out indices
/// in ascending order: put the costliest first. Returns when all are done; the first exception
/// thrown by a body is thrown here and indices not begun are dropped. Nested calls, and calls from
/// several threads at once while the pool is taken, run on their caller alone.
void parallel_for(Index count, FunctionRef<void(Index)> body);

namespace detail {

/// Whether work that takes one thread so many nanoseconds is worth a parallel_for: above 16 µs
/// always, below 2 µs never, between them as long as the pool's threads have answered fast enough.
bool worth_sharing(Index nanoseconds);

}  // namespace detail

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/core/parallel.inl>
#endif
