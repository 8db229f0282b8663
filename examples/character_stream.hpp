// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>

namespace example {

/// Prints bytes as soon as their characters are whole.
class CharacterStream {
 public:
  void feed(const std::string& bytes) {
    held_ += bytes;
    std::size_t end = held_.size(), back = 0;
    while (back < 3 && back < end && (held_[end - 1 - back] & 0xc0) == 0x80) ++back;
    const auto lead = end > back ? static_cast<unsigned char>(held_[end - 1 - back]) : 0;
    const std::size_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (wanted > back) end -= back + 1;
    std::fwrite(held_.data(), 1, end, stdout);
    std::fflush(stdout);
    held_.erase(0, end);
  }

 private:
  std::string held_;
};

}  // namespace example
