// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <heed/text/detail/unicode_tables.hpp>

namespace heed::unicode {

/// The classes of a character that the tokenizers tell apart.
class Classes {
 public:
  constexpr explicit Classes(std::uint8_t flags) : flags_(flags) {}
  bool letter() const { return has(1); }        // \p{L}
  bool number() const { return has(2); }        // \p{N}
  bool digit() const { return has(4); }         // a piece of its own where digits are split
  bool space() const { return has(8); }         // \s
  bool dropped() const { return has(16); }      // control characters that BERT leaves out
  bool punctuation() const { return has(32); }  // BERT's
  bool mark() const { return has(64); }         // an accent, removed by without_accents
  bool operator==(const Classes&) const = default;

 private:
  bool has(std::uint8_t flag) const { return (flags_ & flag) != 0; }
  std::uint8_t flags_;
};

namespace detail {

using heed::detail::packed_character_classes;
using heed::detail::packed_lower_case;
using heed::detail::packed_without_accents;

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

inline Classes classes_of(char32_t code) {
  static const auto& table = *new detail::ClassTable;
  return Classes(table.flags(code));
}

/// Calls visit with the letters of a character without accents (its canonical decomposition without
/// nonspacing marks): "é" gives "e", an accent alone nothing.
template <class Visit>
void without_accents(char32_t code, const Visit& visit) {
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

/// Calls visit with the letters of a character in lower case.
template <class Visit>
void lower_case(char32_t code, const Visit& visit) {
  static const auto& mapping = *new detail::CharacterMapping(detail::packed_lower_case);
  mapping.apply(code, visit);
}

}  // namespace heed::unicode
