// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/unicode.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <heed/core/text.hpp>
#include <heed/text/detail/packed_numbers.hpp>
#include <heed/text/detail/unicode_tables.hpp>

namespace heed::unicode {

namespace detail {

using heed::detail::packed_character_classes;
using heed::detail::packed_combining_classes;
using heed::detail::packed_decompositions;
using heed::detail::packed_lower_case;
using heed::detail::PackedNumbers;

/// A number of every character, such as its flags, stored as runs.
class CharacterNumbers {
 public:
  explicit CharacterNumbers(std::string_view packed) {
    std::uint32_t first = 0;
    for (PackedNumbers numbers(packed); numbers.more();) {
      first += numbers.next();
      runs_.push_back({first, static_cast<std::uint8_t>(numbers.next())});
    }
    for (char32_t code = 0; code < 128; ++code) ascii_[code] = search(code);
  }
  std::uint8_t of(char32_t code) const { return code < 128 ? ascii_[code] : search(code); }

  /// Calls visit(code) for every character whose number is not 0, in order.
  template <class Visit>
  void for_each_not_0(const Visit& visit) const {
    for (std::size_t i = 0; i + 1 < runs_.size(); ++i) {
      if (runs_[i].number == 0) continue;
      for (char32_t code = runs_[i].first; code < runs_[i + 1].first; ++code) visit(code);
    }
  }

 private:
  struct Run {
    char32_t first;
    std::uint8_t number;
  };
  std::uint8_t search(char32_t code) const {
    const auto next = std::upper_bound(runs_.begin(), runs_.end(), code,
                                       [](char32_t c, const Run& run) { return c < run.first; });
    return (next - 1)->number;  // the first run begins at 0
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
      run.composes = run.letters == 0;
      if (run.composes) run.letters = 2;
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
    for (std::uint32_t i = 0; i < run.letters; ++i) visit(letter(run, code, i));
  }
  /// Calls composes(code, first, second) for the characters of runs that compose again, in order,
  /// and other(code) for those that do not.
  template <class Composes, class Other>
  void for_each(const Composes& composes, const Other& other) const {
    for (const Run& run : runs_) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const char32_t code = run.first + i * run.step;
        if (run.composes) {
          composes(code, letter(run, code, 0), letter(run, code, 1));
        } else {
          other(code);
        }
      }
    }
  }

 private:
  struct Run {
    char32_t first;
    std::uint32_t count, step, letters;
    bool composes;
    std::size_t at;
  };
  char32_t letter(const Run& run, char32_t code, std::uint32_t i) const {
    return static_cast<char32_t>(static_cast<std::int32_t>(code) + differences_[run.at + i]);
  }

  std::vector<Run> runs_;
  std::vector<std::int32_t> differences_;
};

/// Syllables of Hangul, which are counted by their letters: one of 19 leading consonants, one of 21
/// vowels, and one of 27 trailing consonants or none. Unicode 3.12.
namespace hangul {

constexpr char32_t syllables = 0xac00, leads = 0x1100, vowels = 0x1161, trails = 0x11a7;
constexpr char32_t of_lead = 21 * 28, of_vowel = 28;
constexpr bool is_syllable(char32_t code) {
  return code >= syllables && code < syllables + 19 * of_lead;
}
constexpr bool is_vowel(char32_t code) { return code >= vowels && code < vowels + 21; }
constexpr bool is_trail(char32_t code) { return code > trails && code < trails + 28; }

template <class Visit>
void decompose(char32_t syllable, const Visit& visit) {
  const char32_t index = syllable - syllables;
  visit(leads + index / of_lead);
  visit(vowels + index % of_lead / of_vowel);
  if (index % of_vowel != 0) visit(trails + index % of_vowel);
}
/// The syllable of two neighbors, or 0.
constexpr char32_t composed(char32_t first, char32_t second) {
  if (first >= leads && first < leads + 19 && is_vowel(second)) {
    return syllables + (first - leads) * of_lead + (second - vowels) * of_vowel;
  }
  const bool open = is_syllable(first) && (first - syllables) % of_vowel == 0;
  return open && is_trail(second) ? first + (second - trails) : 0;
}

}  // namespace hangul

/// Decomposes characters and composes them again: Unicode Standard Annex 15.
class Normalizer {
 public:
  Normalizer() : mapping_(packed_decompositions), classes_(packed_combining_classes) {
    const auto join = [&](char32_t code) { joins_[code] = true; };
    classes_.for_each_not_0(join);
    const auto composes = [&](char32_t code, char32_t first, char32_t second) {
      pairs_.push_back({first, second, code});
      join(second);
    };
    mapping_.for_each(composes, join);
    std::sort(pairs_.begin(), pairs_.end());
    for (char32_t code = 0x1161; code < 0x1200; ++code) {
      if (hangul::is_vowel(code) || hangul::is_trail(code)) join(code);
    }
  }

  /// Calls visit with the letters of the canonical decomposition.
  template <class Visit>
  void decompose(char32_t code, const Visit& visit) const {
    if (code < 0xc0) return visit(code);
    if (hangul::is_syllable(code)) return hangul::decompose(code, visit);
    mapping_.apply(code, [&](char32_t letter) {
      if (letter == code) return visit(letter);
      decompose(letter, visit);
    });
  }

  /// Whether a character may join those in front of it, or is never left as it is.
  bool joins(char32_t code) const { return code < joins_.size() && joins_[code]; }

  /// Appends the normal form of UTF-8 that ends in front of a character that joins nothing.
  void compose(std::string_view text, std::string& result) const {
    std::vector<Letter> letters;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Character next = decode_utf8(text, at);
      decompose(next.code, [&](char32_t code) {
        letters.push_back({classes_.of(code), letters.size(), code});
      });
      at += next.size;
    }
    put_in_order(letters);
    compose(letters);
    for (const Letter& letter : letters) append_utf8(result, letter.code);
  }

 private:
  struct Letter {
    std::uint8_t order;  // its combining class
    std::size_t place;
    char32_t code;
  };
  struct Pair {
    char32_t first, second, code;
    bool operator<(const Pair& other) const {
      return std::tie(first, second) < std::tie(other.first, other.second);
    }
  };

  /// Sorts the marks behind each letter by class.
  static void put_in_order(std::vector<Letter>& letters) {
    for (auto begin = letters.begin(); begin != letters.end();) {
      auto end = begin + 1;
      if (begin->order != 0) {
        while (end != letters.end() && end->order != 0) ++end;
        std::sort(begin, end, [](const Letter& a, const Letter& b) {
          return std::tie(a.order, a.place) < std::tie(b.order, b.place);
        });
      }
      begin = end;
    }
  }

  void compose(std::vector<Letter>& letters) const {
    std::size_t count = 0, start = letters.size();  // of what is kept, and its last of class 0
    int before = -1;                                // the last class behind `start`
    for (const Letter letter : letters) {
      const bool near = start < count && before < letter.order;
      if (const char32_t both = near ? composed(letters[start].code, letter.code) : 0; both != 0) {
        letters[start].code = both;
        continue;
      }
      if (letter.order == 0) start = count;
      before = letter.order == 0 ? -1 : letter.order;
      letters[count++] = letter;
    }
    letters.resize(count);
  }

  /// The character that two make, or 0.
  char32_t composed(char32_t first, char32_t second) const {
    if (const char32_t syllable = hangul::composed(first, second); syllable != 0) return syllable;
    const Pair wanted{first, second, 0};
    const auto found = std::lower_bound(pairs_.begin(), pairs_.end(), wanted);
    return found != pairs_.end() && !(wanted < *found) ? found->code : 0;
  }

  CharacterMapping mapping_;
  CharacterNumbers classes_;
  std::vector<Pair> pairs_;                               // that compose, in order
  std::vector<bool> joins_ = std::vector<bool>(0x30000);  // of each character; of later ones none
};

// Tables are never deleted: static objects may read text in their destructors.

inline const Normalizer& normalizer() {
  static const auto& shared = *new Normalizer;
  return shared;
}

}  // namespace detail

HEED_INLINE Classes classes_of(char32_t code) {
  static const auto& table = *new detail::CharacterNumbers(detail::packed_character_classes);
  return Classes(table.of(code));
}

HEED_INLINE void without_accents(char32_t code, FunctionRef<void(char32_t)> visit) {
  if (classes_of(code).mark()) return;
  detail::normalizer().decompose(code, [&](char32_t letter) {
    if (letter == code || !classes_of(letter).mark()) visit(letter);
  });
}

HEED_INLINE void lower_case(char32_t code, FunctionRef<void(char32_t)> visit) {
  static const auto& mapping = *new detail::CharacterMapping(detail::packed_lower_case);
  mapping.apply(code, visit);
}

HEED_INLINE std::string nfc(std::string_view text) {
  const auto simple = [](char byte) { return static_cast<unsigned char>(byte) < 0xcc; };
  if (std::all_of(text.begin(), text.end(), simple)) return std::string(text);  // below U+0300
  const detail::Normalizer& normalizer = detail::normalizer();
  std::string result;
  // How much of `text` is in it, where the last character that joins nothing begins, and whether
  // others have joined that one.
  std::size_t copied = 0, start = 0;
  bool joined = false;
  const auto close = [&](std::size_t end) {
    if (!joined) return;
    result.append(text, copied, start - copied);
    normalizer.compose(text.substr(start, end - start), result);
    copied = end;
    joined = false;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (normalizer.joins(next.code)) {
      joined = true;
    } else {
      close(at);
      start = next.valid ? at : at + 1;  // nothing joins a byte that is no character
    }
    at += next.size;
  }
  close(text.size());
  return result.append(text, copied);
}

}  // namespace heed::unicode
