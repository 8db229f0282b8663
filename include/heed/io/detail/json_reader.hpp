// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <heed/core/config.hpp>
#include <heed/io/file.hpp>

namespace heed::detail {

/// Reads JSON (RFC 8259) value by value, in order, without building a tree. Strict: well-formed
/// UTF-8, no lone surrogates, at most 16 levels. Allocates nothing but the strings it returns.
/// Callers refuse duplicate names themselves.
class JsonReader {
 public:
  /// `name`, and `offset`, the position of the text in its file, appear in errors.
  JsonReader(std::string_view text, std::string_view name, std::size_t offset = 0)
      : text_(text), name_(name), offset_(offset) {}

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw_file_error(name_, ": byte ", offset_ + at_, ": ", parts...);
  }
  /// The position of the next character in `text`.
  std::size_t at() const { return at_; }

  /// The first character of the next value: `{`, `[`, `"`, `t`, `f`, `n`, a digit or `-`.
  char peek();

  /// Reads an object: `visit(name)` is called for each entry and must read its value.
  template <class Visit>
  void object(const Visit& visit) {
    list('{', '}', [&] {
      const std::string name = string();
      expect(':');
      visit(name);
    });
  }
  /// Reads an array: `visit()` is called for each value and must read it.
  template <class Visit>
  void array(const Visit& visit) {
    list('[', ']', visit);
  }

  std::string string();

  std::int64_t integer();
  double real();
  bool boolean();

  /// Skips any value.
  void skip();

  /// Checks that only white space follows.
  void end();

 private:
  static constexpr int deepest = 16;

  bool accept(char wanted);
  void expect(char wanted);
  bool accept_word(std::string_view word);

  template <class Visit>
  void list(char open, char close, const Visit& visit) {
    expect(open);
    if (++depth_ > deepest) fail("more than ", deepest, " levels");
    if (!accept(close)) {
      do visit();
      while (accept(','));
      expect(close);
    }
    --depth_;
  }

  /// The number of characters up to the quote that ends a string, escapes counted as written.
  std::size_t quoted_size() const;

  /// A number in JSON's syntax, which is stricter than that of from_chars.
  template <class T>
  T number(std::string_view wanted);

  /// Reads an escape sequence.
  void escape(std::string& value);
  /// `\uXXXX`.
  char32_t hexadecimal();

  std::string_view text_, name_;
  std::size_t offset_, at_ = 0;
  int depth_ = 0;
};

}  // namespace heed::detail

#if HEED_DEFINITIONS
#include <heed/io/detail/json_reader.inl>
#endif
