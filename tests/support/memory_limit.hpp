// SPDX-License-Identifier: MIT
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdint>
#include <fstream>
#include <new>
#include <string>

#include <heed/io/file.hpp>

#include "support/sanitizers.hpp"

namespace heed::test {

enum Outcome { opened = 10, refused = 11, out_of_memory = 12 };

/// What comes of `open` in a process that may take 4 k + 1 MiB more than it has.
template <class Open>
int outcome(std::size_t size, const Open& open) {
  const pid_t child = ::fork();
  if (child == 0) {
#ifdef __GLIBC__
    ::malloc_trim(0);  // what earlier tests freed must not count as room
#endif
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const rlim_t limit = pages * page + 4 * size + (1 << 20);
    const rlimit limits{limit, limit};
    ::setrlimit(RLIMIT_AS, &limits);
    try {
      open();
      ::_exit(opened);
    } catch (const FileError&) {
      ::_exit(refused);
    } catch (const std::bad_alloc&) {
      ::_exit(out_of_memory);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Tests under the limit; sanitizers take address space of their own.
class MemoryLimited : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::sanitized) GTEST_SKIP() << "sanitizers take address space of their own";
  }
};

/// Texts that differ and are as short as they can be, without quotation marks and backslashes; in
/// that many none is longer than 3 characters.
inline std::string short_name(std::uint64_t i) {
  constexpr std::uint64_t first = 35, letters = 57;  // '#' to '['
  std::string text(1, static_cast<char>(first + i % letters));
  for (i /= letters; i > 0; i /= letters) text += static_cast<char>(first + --i % letters);
  return text;
}

}  // namespace heed::test
