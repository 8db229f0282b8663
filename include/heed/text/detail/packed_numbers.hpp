// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heed::detail {

/// A reader of the numbers in the packed tables.
class PackedNumbers {
 public:
  explicit PackedNumbers(std::string_view text) : text_(text) {}
  bool more() const { return at_ < text_.size(); }
  std::uint32_t next() {
    std::uint32_t value = 0;
    for (unsigned shift = 0;; shift += 5) {
      const std::uint32_t digit = digit_of(text_[at_++]);
      value |= (digit & 31) << shift;
      if (digit < 32) return value;
    }
  }
  std::int32_t next_signed() {
    const std::uint32_t value = next();
    const auto half = static_cast<std::int32_t>(value >> 1);
    return (value & 1) != 0 ? -half - 1 : half;
  }

 private:
  static std::uint32_t digit_of(char letter) {
    if (letter >= '0' && letter <= '9') return static_cast<std::uint32_t>(letter - '0');
    if (letter >= 'A' && letter <= 'Z') return static_cast<std::uint32_t>(letter - 'A' + 10);
    if (letter >= 'a' && letter <= 'z') return static_cast<std::uint32_t>(letter - 'a' + 36);
    return letter == '+' ? 62 : 63;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace heed::detail
