// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/detail/list_iterator.hpp>
#include <heed/core/error.hpp>

namespace heed {

/// Many texts one behind the other in a single run of characters. A text costs its characters and 4
/// bytes, where a std::string of its own takes 32 and often a piece of the heap. At most 4 GiB of
/// characters, else InvalidArgument. What is read from it lives until the list changes.
class TextList {
 public:
  using Iterator = detail::ListIterator<TextList>;

  TextList() = default;
  TextList(std::initializer_list<std::string_view> texts) { append(texts); }
  /// From a container of std::string, std::string_view or const char*.
  template <class Texts>
  requires requires(const Texts& texts) {
    { *texts.begin() } -> std::convertible_to<std::string_view>;
    texts.end();
  }
  TextList(const Texts& texts) { append(texts); }

  /// Room for so many texts of so many characters together.
  void reserve(std::size_t count, std::size_t characters) {
    ends_.reserve(count);
    characters_.reserve(characters);
  }
  void push_back(std::string_view text) {
    if (text.size() > UINT32_MAX - characters_.size()) {
      throw_invalid_argument("TextList: more than 4 GiB of characters");
    }
    characters_ += text;
    ends_.push_back(static_cast<std::uint32_t>(characters_.size()));
  }
  void emplace_back(std::string_view text) { push_back(text); }

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  /// All characters together.
  std::size_t characters() const { return characters_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(characters_).substr(begin, ends_[i] - begin);
  }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  template <class Texts>
  void append(const Texts& texts) {
    std::size_t count = 0, characters = 0;
    for (const std::string_view text : texts) {
      ++count;
      characters += text.size();
    }
    reserve(count, characters);
    for (const std::string_view text : texts) push_back(text);
  }

  std::string characters_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace heed
