// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>

namespace heed {

/// A character of a text and its size in bytes.
struct Utf8Character {
  char32_t code = 0;
  std::size_t size = 0;
  bool valid = true;  // false: not well-formed; counts as U+FFFD, 1 byte long
};

/// The character at byte `at` < text.size() of `text`. Overlong forms, surrogates, codes above
/// U+10FFFF and truncated characters are not well-formed (Unicode 3.9, table 3-7).
inline Utf8Character decode_utf8(std::string_view text, std::size_t at) {
  constexpr Utf8Character invalid{0xfffd, 1, false};
  const auto byte = [&](std::size_t i) -> char32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4) return invalid;
  char32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return invalid;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const char32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return invalid;
  return {code, size, true};
}

/// Appends a character to `text`.
inline void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

/// Whether the whole text is well-formed UTF-8.
bool is_utf8(std::string_view text);

/// The number of leading bytes of `text` that can be shown now: all but a truncated last character
/// that may still be completed, as when text arrives token by token.
std::size_t complete_utf8(std::string_view text);

/// Untrusted text as one line that is safe to show. Each byte of a control character, of a mark
/// that changes the direction of writing, or of invalid UTF-8 becomes an escape such as `\x0a`.
/// Backslashes of the text stay as they are. The result has at most about `longest` bytes; if the
/// text is longer, it ends with "…".
std::string printable(std::string_view text, std::size_t longest = 80);

/// The same in single quotation marks, for names in messages.
std::string quote(std::string_view text);

namespace detail {

/// An iterator over a list whose elements are made on access by `list[i]`.
template <class List>
class ListIterator {
 public:
  using value_type = std::remove_cvref_t<decltype(std::declval<const List&>()[0])>;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  using pointer = const value_type*;
  using iterator_category = std::forward_iterator_tag;

  ListIterator() = default;
  ListIterator(const List& list, std::size_t at) : list_(&list), at_(at) {}
  value_type operator*() const { return (*list_)[at_]; }
  ListIterator& operator++() { return ++at_, *this; }
  ListIterator operator++(int) { return {*list_, at_++}; }
  bool operator==(const ListIterator& other) const { return at_ == other.at_; }

 private:
  const List* list_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace detail

/// Many texts in one string. A text costs its characters and 4 bytes, where a std::string takes 32
/// and often a heap allocation. At most 4 GiB of characters, otherwise InvalidArgument. Views of
/// its texts are valid until the list changes.
class TextList {
 public:
  using Iterator = detail::ListIterator<TextList>;

  TextList() = default;
  TextList(std::initializer_list<std::string_view> texts);
  /// From a container of std::string, std::string_view or const char*.
  template <class Texts>
  requires requires(const Texts& texts) {
    { *texts.begin() } -> std::convertible_to<std::string_view>;
    texts.end();
  }
  TextList(const Texts& texts) : TextList(copy_of(texts)) {}
  /// The texts that for_each(visit) visits; it is called twice, so that memory is taken once.
  template <class ForEach>
  static TextList of(const ForEach& for_each) {
    std::size_t count = 0, characters = 0;
    for_each([&](std::string_view text) {
      ++count;
      characters += text.size();
    });
    TextList texts;
    texts.reserve(count, characters);
    for_each([&](std::string_view text) { texts.push_back(text); });
    return texts;
  }

  /// Reserves memory for `count` texts of `characters` characters in total.
  void reserve(std::size_t count, std::size_t characters);
  void push_back(std::string_view text);
  void emplace_back(std::string_view text) { push_back(text); }

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  /// The number of characters of all texts.
  std::size_t characters() const { return characters_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {characters_.data() + begin, ends_[i] - begin};
  }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  template <class Texts>
  static TextList copy_of(const Texts& texts) {
    return of([&](const auto& visit) {
      for (const std::string_view text : texts) visit(text);
    });
  }

  std::string characters_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace heed

#if HEED_DEFINITIONS
// Defined in one unit of heed::compiled, inline everywhere else.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace heed {

HEED_INLINE bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (!next.valid) return false;
    at += next.size;
  }
  return true;
}

HEED_INLINE std::size_t complete_utf8(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto lead = static_cast<unsigned char>(text[text.size() - back]);
    if ((lead & 0xc0) == 0x80) continue;
    const std::size_t needs = lead < 0xc2 || lead > 0xf4 ? 1
                              : lead < 0xe0              ? 2
                              : lead < 0xf0              ? 3
                                                         : 4;
    if (needs <= back) return text.size();
    // Some second bytes follow no such first one, whatever comes behind: overlong forms,
    // surrogates, and codes above U+10FFFF.
    const auto second = static_cast<unsigned char>(text[text.size() - back + (back > 1 ? 1 : 0)]);
    const bool ends =
        back > 1 && ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90));
    return ends ? text.size() : text.size() - back;
  }
  return text.size();
}

HEED_INLINE std::string printable(std::string_view text, std::size_t longest) {
  const auto unsafe = [](char32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0x061c || code == 0xfeff;
  };
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    if (shown.size() + next.size > longest) return shown + "…";
    const std::string_view bytes = text.substr(at, next.size);
    at += next.size;
    if (next.valid && !unsafe(next.code)) {
      shown += bytes;
      continue;
    }
    for (const char byte : bytes) {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(byte);
      shown += {'\\', 'x', digits[value >> 4], digits[value & 15]};
    }
  }
  return shown;
}

HEED_INLINE std::string quote(std::string_view text) { return "'" + printable(text) + "'"; }

HEED_INLINE TextList::TextList(std::initializer_list<std::string_view> texts)
    : TextList(copy_of(texts)) {}

HEED_INLINE void TextList::reserve(std::size_t count, std::size_t characters) {
  ends_.reserve(count);
  characters_.reserve(characters);
}

HEED_INLINE void TextList::push_back(std::string_view text) {
  if (text.size() > UINT32_MAX - characters_.size()) {
    throw_invalid_argument("TextList: more than 4 GiB of characters");
  }
  characters_ += text;
  ends_.push_back(static_cast<std::uint32_t>(characters_.size()));
}

}  // namespace heed
// NOLINTEND(misc-definitions-in-headers)
#endif
