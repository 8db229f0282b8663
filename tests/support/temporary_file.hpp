// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace heed::test {

/// A path for a file that goes away with the test.
class TemporaryFile {
 public:
  TemporaryFile() {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("heed_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++)))
                .string();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace heed::test
