// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/detail/atomic.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// How long another thread takes to begin with work that it is given, as lately seen, and what work
/// is therefore worth giving. Processors that share a cache answer within 0.3 µs, those that do not
/// within 1 µs and more, and a virtual machine may move from one to the other while it runs
/// (measured: a token of a small model gains an eighth from a second thread here and loses as much
/// there).
class HandOver {
 public:
  /// A thread began so many nanoseconds after the work was there.
  void note(Index nanoseconds) {
    const Index before = expected_.load();
    const Index seen = nanoseconds < longest ? nanoseconds : longest;
    expected_.store(before + (seen - before) / 4);
  }
  /// None came before the work was done.
  void note_nobody() { note(longest); }

  Index expected() const { return expected_.load(); }

  /// Whether work that takes one thread so many nanoseconds is worth a second one. Now and then it
  /// is found to be, to see whether things have changed.
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

}  // namespace heed::detail
