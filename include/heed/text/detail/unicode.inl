// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/unicode.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <heed/text/detail/packed_numbers.hpp>
#include <heed/text/detail/unicode_tables.hpp>

namespace heed::unicode {

namespace detail {

using heed::detail::packed_character_classes;
using heed::detail::packed_lower_case;
using heed::detail::packed_without_accents;
using heed::detail::PackedNumbers;

/// The flags of every character, stored as runs.
class ClassTable {
 public:
  ClassTable() {
    std::uint32_t first = 0;
    for (PackedNumbers numbers(packed_character_classes); numbers.more();) {
      first += numbers.next();
      runs_.push_back({first, static_cast<std::uint8_t>(numbers.next())});
    }
    for (char32_t code = 0; code < 128; ++code) ascii_[code] = search(code);
  }
  std::uint8_t flags(char32_t code) const { return code < 128 ? ascii_[code] : search(code); }

 private:
  struct Run {
    char32_t first;
    std::uint8_t flags;
  };
  std::uint8_t search(char32_t code) const {
    const auto next = std::upper_bound(runs_.begin(), runs_.end(), code,
                                       [](char32_t c, const Run& run) { return c < run.first; });
    return (next - 1)->flags;  // the first run begins at 0
  }

  std::vector<Run> runs_;
  std::uint8_t ascii_[128] = {};
};

/// A mapping of characters to others, as of upper case to lower case.
class CharacterMapping {
 public:
  explicit CharacterMapping(std::string_view packed) {
    char32_t first = 0;
    for (PackedNumbers numbers(packed); numbers.more();) {
      Run run{};
      run.first = first += numbers.next();
      run.count = numbers.next();
      run.step = numbers.next();
      run.letters = numbers.next();
      run.at = differences_.size();
      for (std::uint32_t i = 0; i < run.letters; ++i) differences_.push_back(numbers.next_signed());
      runs_.push_back(run);
    }
  }
  /// Calls visit with each letter that `code` maps to, or with `code` itself.
  template <class Visit>
  void apply(char32_t code, const Visit& visit) const {
    const auto next = std::upper_bound(runs_.begin(), runs_.end(), code,
                                       [](char32_t c, const Run& run) { return c < run.first; });
    if (next == runs_.begin()) return visit(code);
    const Run& run = *(next - 1);
    const char32_t past = code - run.first;
    if (past % run.step != 0 || past / run.step >= run.count) return visit(code);
    for (std::uint32_t i = 0; i < run.letters; ++i) {
      visit(static_cast<char32_t>(static_cast<std::int32_t>(code) + differences_[run.at + i]));
    }
  }

 private:
  struct Run {
    char32_t first;
    std::uint32_t count, step, letters;
    std::size_t at;
  };
  std::vector<Run> runs_;
  std::vector<std::int32_t> differences_;
};

}  // namespace detail

// Tables are never deleted: static objects may read text in their destructors.

HEED_INLINE Classes classes_of(char32_t code) {
  static const auto& table = *new detail::ClassTable;
  return Classes(table.flags(code));
}

HEED_INLINE void without_accents(char32_t code, FunctionRef<void(char32_t)> visit) {
  if (classes_of(code).mark()) return;
  if (code >= 0xac00 && code < 0xd7a4) {  // Hangul syllables: Unicode 3.12
    const char32_t index = code - 0xac00;
    visit(0x1100 + index / 588);
    visit(0x1161 + index % 588 / 28);
    if (index % 28 != 0) visit(0x11a7 + index % 28);
    return;
  }
  static const auto& mapping = *new detail::CharacterMapping(detail::packed_without_accents);
  mapping.apply(code, visit);
}

HEED_INLINE void lower_case(char32_t code, FunctionRef<void(char32_t)> visit) {
  static const auto& mapping = *new detail::CharacterMapping(detail::packed_lower_case);
  mapping.apply(code, visit);
}

}  // namespace heed::unicode
