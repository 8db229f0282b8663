// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <heed/core/config.hpp>
#include <heed/core/function_ref.hpp>

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

Classes classes_of(char32_t code);

/// Calls visit with the letters of a character without accents (its canonical decomposition without
/// nonspacing marks): "é" gives "e", an accent alone nothing.
void without_accents(char32_t code, FunctionRef<void(char32_t)> visit);

/// Calls visit with the letters of a character in lower case.
void lower_case(char32_t code, FunctionRef<void(char32_t)> visit);

/// A text in Unicode's normal form C, as Hugging Face's tokenizers know it (Unicode 9): letters and
/// the accents behind them are one character where there is one, "e\u0301" is "é". Bytes that are
/// not UTF-8 stay.
std::string nfc(std::string_view text);

}  // namespace heed::unicode

#if HEED_DEFINITIONS
#include <heed/text/detail/unicode.inl>
#endif
