// SPDX-License-Identifier: MIT
#pragma once

namespace heed::detail {

/// Lives while a call asks code of the program, a mask or a score function. What that code computes
/// with heed has scratch memory of its own, so that the memory of the call around it stays as it
/// is.
class ProgramCode {
 public:
  static constexpr int most = 3;  // calls within calls

  ProgramCode() { ++depth_; }
  ~ProgramCode() { --depth_; }
  ProgramCode(const ProgramCode&) = delete;
  ProgramCode& operator=(const ProgramCode&) = delete;

  /// How many of them live on this thread.
  static int& depth() {
    thread_local constinit int count = 0;
    return count;
  }

 private:
  int& depth_ = depth();  // found once: it takes a call in shared libraries
};

}  // namespace heed::detail
