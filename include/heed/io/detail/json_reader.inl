// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/detail/json_reader.hpp>, which includes this file.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <heed/core/text.hpp>

#if !defined(__cpp_lib_to_chars)
#include <locale.h>
#include <stdlib.h>

#include <cerrno>
#endif

namespace heed::detail {

/// std::from_chars.
template <class T>
std::from_chars_result read_number(const char* first, const char* last, T& value) {
  return std::from_chars(first, last, value);
}
#if !defined(__cpp_lib_to_chars)
/// The same for a double, which libc++ 14 cannot read.
inline std::from_chars_result read_number(const char* first, const char* last, double& value) {
  const std::string text(first, last);
  const auto plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  char* end = nullptr;
  errno = 0;
  value = ::strtod_l(text.c_str(), &end, plain);
  const bool fits = errno != ERANGE || (value != 0 && value - value == 0);  // subnormal
  ::freelocale(plain);
  return {first + (end - text.c_str()), fits ? std::errc() : std::errc::result_out_of_range};
}
#endif

template <class T>
T JsonReader::number(std::string_view wanted) {
  peek();
  const std::size_t first = text_.substr(at_, 1) == "-" ? at_ + 1 : at_;
  const std::size_t last =
      std::min(text_.find_first_not_of("0123456789+-.eE", first), text_.size());
  const std::string_view digits = text_.substr(first, last - first);
  const auto is_digit = [&](std::size_t i) {
    return i < digits.size() && digits[i] >= '0' && digits[i] <= '9';
  };
  const auto point = digits.find('.');
  if (!is_digit(0) || (digits[0] == '0' && is_digit(1)) ||
      (point != std::string_view::npos && !(is_digit(point - 1) && is_digit(point + 1)))) {
    fail("expected ", wanted);
  }
  T value{};
  const auto [stop, error] = read_number(text_.data() + at_, text_.data() + last, value);
  if (error != std::errc() || stop != text_.data() + last) fail("expected ", wanted, " in range");
  at_ = last;
  return value;
}

HEED_INLINE char JsonReader::peek() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

HEED_INLINE std::string JsonReader::string() {
  expect('"');
  std::string value;
  value.reserve(quoted_size());  // growing step by step would take three times as much
  while (at_ < text_.size() && text_[at_] != '"') {
    if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("a control character in a string");
    if (text_[at_] == '\\') {
      escape(value);
      continue;
    }
    const Utf8Character next = decode_utf8(text_, at_);
    if (!next.valid) fail("not UTF-8");
    value += text_.substr(at_, next.size);
    at_ += next.size;
  }
  if (at_ == text_.size()) fail("ends inside a string");
  ++at_;
  return value;
}

HEED_INLINE std::int64_t JsonReader::integer() { return number<std::int64_t>("an integer"); }
HEED_INLINE double JsonReader::real() { return number<double>("a number"); }

HEED_INLINE bool JsonReader::boolean() {
  if (accept_word("true")) return true;
  if (!accept_word("false")) fail("expected true or false");
  return false;
}

HEED_INLINE void JsonReader::skip() {
  const char next = peek();
  if (next == '{') return object([&](const std::string&) { skip(); });
  if (next == '[') return array([&] { skip(); });
  if (next == '"') return static_cast<void>(string());
  if (next == '-' || (next >= '0' && next <= '9')) return static_cast<void>(real());
  if (!accept_word("true") && !accept_word("false") && !accept_word("null")) {
    fail("expected a value");
  }
}

HEED_INLINE void JsonReader::end() {
  peek();
  if (at_ != text_.size()) fail("something follows the value");
}

HEED_INLINE bool JsonReader::accept(char wanted) {
  if (peek() != wanted || at_ == text_.size()) return false;
  ++at_;
  return true;
}

HEED_INLINE void JsonReader::expect(char wanted) {
  if (!accept(wanted)) fail("expected '", wanted, "'");
}

HEED_INLINE bool JsonReader::accept_word(std::string_view word) {
  peek();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

HEED_INLINE std::size_t JsonReader::quoted_size() const {
  std::size_t end = at_;
  while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
  return std::min(end, text_.size()) - at_;
}

HEED_INLINE void JsonReader::escape(std::string& value) {
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  const auto which = letters.find(letter);
  if (letter != '\0' && which != std::string_view::npos) {
    value += meanings[which];
    at_ += 2;
    return;
  }
  char32_t code = hexadecimal();
  if (code >= 0xd800 && code < 0xdc00) {
    const char32_t low = hexadecimal();
    if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    fail("half of a surrogate pair");
  }
  append_utf8(value, code);
}

HEED_INLINE char32_t JsonReader::hexadecimal() {
  unsigned code = 0;
  const std::string_view text = text_.substr(at_, 6);
  if (text.size() < 6 || text.substr(0, 2) != "\\u" ||
      std::from_chars(text.data() + 2, text.data() + 6, code, 16).ptr != text.data() + 6) {
    fail("an unknown escape in a string");
  }
  at_ += 6;
  return code;
}

}  // namespace heed::detail
