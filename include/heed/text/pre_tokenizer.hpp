// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <heed/core/utf8.hpp>
#include <heed/text/unicode.hpp>

namespace heed {

/// How text is cut into pieces that byte pairs never cross.
enum class PreTokenizer {
  gpt2,   // contractions; letters, numbers or neither, each with a space before them; white space
  smollm  // every digit alone, between them as gpt2
};

namespace detail {

/// Cuts text as the regular expression of GPT-2 does, without one:
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Radford et al., Language models are unsupervised multitask learners, 2019.
class Gpt2Pieces {
 public:
  explicit Gpt2Pieces(std::string_view text) : text_(text) {}

  /// The next piece, empty at the end.
  std::string_view next() {
    const std::size_t begin = at_;
    if (begin < text_.size()) at_ = end_of_piece(begin);
    return text_.substr(begin, at_ - begin);
  }

 private:
  enum class Kind { letter, number, space, other };

  struct Next {
    Kind kind;
    std::size_t end;
  };
  Next look(std::size_t at) const {
    const Utf8Character character = decode_utf8(text_, at);
    const auto classes = unicode::classes_of(character.code);
    const Kind kind = classes.letter()   ? Kind::letter
                      : classes.number() ? Kind::number
                      : classes.space()  ? Kind::space
                                         : Kind::other;
    return {kind, at + character.size};
  }

  std::size_t end_of_piece(std::size_t begin) const {
    if (text_[begin] == '\'') {
      for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
        if (text_.substr(begin, ending.size()) == ending) return begin + ending.size();
      }
    }
    std::size_t first = begin;
    if (text_[begin] == ' ' && begin + 1 < text_.size() && look(begin + 1).kind != Kind::space) {
      ++first;
    }
    const Kind kind = look(first).kind;
    std::size_t end = first, last = first;  // of the run, and where its last character begins
    while (end < text_.size()) {
      const Next next = look(end);
      if (next.kind != kind) break;
      last = end;
      end = next.end;
    }
    // White space leaves its last character to what follows.
    const bool leaves = kind == Kind::space && end < text_.size() && last > first;
    return leaves ? last : end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// Calls visit with the pieces of the text, in order; together they are the text.
template <class Visit>
void for_each_piece(std::string_view text, PreTokenizer kind, const Visit& visit) {
  const auto cut = [&](std::string_view part) {
    detail::Gpt2Pieces pieces(part);
    for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) visit(piece);
  };
  if (kind == PreTokenizer::gpt2) return cut(text);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    const std::size_t end = at + character.size;
    if (unicode::classes_of(character.code).digit()) {
      cut(text.substr(begin, at - begin));
      visit(text.substr(at, character.size));
      begin = end;
    }
    at = end;
  }
  cut(text.substr(begin));
}

}  // namespace heed
