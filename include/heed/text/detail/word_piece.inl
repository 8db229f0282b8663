// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/word_piece.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/text.hpp>
#include <heed/io/file.hpp>
#include <heed/text/unicode.hpp>

namespace heed {

namespace detail {

/// Calls visit(line, its first byte) for each line, without trailing white space.
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    visit(line, begin);
    begin = end + 1;
  }
}
inline TextList lines_of(std::string_view text, const std::string& name) {
  // A million lines of two bytes would take far more memory than they have: most are duplicates.
  std::vector<bool> seen(1 << 18);
  for_each_line(text, [&](std::string_view line, std::size_t begin) {
    if (line.size() > 2) return;
    std::size_t code = line.size();
    for (const char byte : line) code = code << 8 | static_cast<unsigned char>(byte);
    if (seen[code]) throw_file_error(name, ": byte ", begin, ": ", quote(line), " again");
    seen[code] = true;
  });
  return TextList::of([&](const auto& visit) {
    for_each_line(text, [&](std::string_view line, std::size_t) { visit(line); });
  });
}

/// The blocks that BERT treats as Chinese; its own code leaves out 2B820 to 2B91F.
inline bool is_cjk(char32_t code) {
  const auto in = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return in(0x3400, 0x4dbf) || in(0x4e00, 0x9fff) || in(0xf900, 0xfaff) || in(0x20000, 0x2a6df) ||
         in(0x2a700, 0x2b81f) || in(0x2b920, 0x2ceaf) || in(0x2f800, 0x2fa1f);
}

}  // namespace detail

HEED_INLINE WordPiece::WordPiece(TextList tokens, const WordPieceOptions& options)
    : options_(options), vocabulary_(std::move(tokens)) {
  std::vector<Index> special = options.special;
  for (const Index token : special) static_cast<void>(vocabulary_.text(token));
  for (const std::string_view name : detail::special_pieces) {
    if (const Index token = vocabulary_.find(name); token >= 0) special.push_back(token);
  }
  special_ = detail::SpecialTokenFinder(vocabulary_.texts(), special);
  unknown_ = token("[UNK]");
  for (Index i = 0; i < vocabulary_.size(); ++i) {
    longest_token_ = std::max(longest_token_, vocabulary_.text(i).size());
  }
}

HEED_INLINE WordPiece WordPiece::read(const FilePath& path, const WordPieceOptions& options) {
  auto lines = [&] {
    const auto bytes = read_file(path);
    return detail::lines_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  }();
  return detail::made_of_file(path, [&] { return WordPiece(std::move(lines), options); });
}

HEED_INLINE WordPiece WordPiece::parse(std::string_view text, const std::string& name,
                                       const WordPieceOptions& options) {
  return detail::made_of_file(name,
                              [&] { return WordPiece(detail::lines_of(text, name), options); });
}

HEED_INLINE Index WordPiece::token(std::string_view name) const {
  const Index found = vocabulary_.find(name);
  if (found < 0) throw_invalid_argument("vocabulary: no token ", quote(name));
  return found;
}

HEED_INLINE std::vector<Index> WordPiece::encode(std::string_view text,
                                                 SpecialTokens special) const {
  std::vector<Index> tokens;
  special_.split(
      vocabulary_.texts(), text, [&](std::string_view piece) { encode_plain(piece, tokens); },
      [&](Index token) { tokens.push_back(token); }, special);
  return tokens;
}

HEED_INLINE std::vector<Index> WordPiece::encode_sentence(std::string_view text,
                                                          Index longest) const {
  if (longest < 2)
    throw_invalid_argument("encode_sentence: at most ", longest, " tokens, less than 2");
  std::vector<Index> tokens = encode(text);
  if (static_cast<Index>(tokens.size()) > longest - 2) {
    tokens.resize(static_cast<std::size_t>(longest - 2));
  }
  tokens.insert(tokens.begin(), token("[CLS]"));
  tokens.push_back(token("[SEP]"));
  return tokens;
}

HEED_INLINE std::string WordPiece::decode(const OwnedArray<Index>& tokens) const {
  std::string text;
  for (const Index token : tokens) {
    const std::string_view piece = vocabulary_.text(token);
    const bool inside = piece.size() > 2 && piece.starts_with("##");
    if (!inside && !text.empty()) text += ' ';
    text += piece.substr(inside ? 2 : 0);
  }
  return text;
}

HEED_INLINE void WordPiece::encode_plain(std::string_view text, std::vector<Index>& tokens) const {
  std::string word;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character next = decode_utf8(text, at);
    at += next.size;
    const auto classes = unicode::classes_of(next.code);
    if (classes.dropped()) continue;
    const bool alone = options_.split_cjk && detail::is_cjk(next.code);
    if (alone || classes.space()) flush(word, tokens);
    if (classes.space()) continue;
    fold(next.code, [&](char32_t letter) { put(letter, word, tokens); });
    if (alone) flush(word, tokens);
  }
  flush(word, tokens);
}

HEED_INLINE void WordPiece::put(char32_t letter, std::string& word,
                                std::vector<Index>& tokens) const {
  const bool alone = unicode::classes_of(letter).punctuation();
  if (alone) flush(word, tokens);
  append_utf8(word, letter);
  if (alone) flush(word, tokens);
}

HEED_INLINE void WordPiece::flush(std::string& word, std::vector<Index>& tokens) const {
  if (word.empty()) return;
  const auto is_start = [&](std::size_t at) { return (word[at] & 0xc0) != 0x80; };
  Index characters = 0;
  for (std::size_t at = 0; at < word.size(); ++at) characters += is_start(at) ? 1 : 0;
  const std::size_t before = tokens.size();
  std::string piece;
  bool known = characters <= options_.longest_word;
  for (std::size_t begin = 0; known && begin < word.size();) {
    std::size_t end = std::min(word.size(), begin + longest_token_);
    Index found = -1;
    for (; end > begin; --end) {
      if (end < word.size() && !is_start(end)) continue;
      piece.assign(begin > 0 ? "##" : "").append(word, begin, end - begin);
      if ((found = vocabulary_.find(piece)) >= 0) break;
    }
    known = found >= 0;
    tokens.push_back(found);
    begin = end;
  }
  if (!known) {
    tokens.resize(before);
    tokens.push_back(unknown_);
  }
  word.clear();
}

HEED_INLINE void WordPiece::fold(char32_t code, FunctionRef<void(char32_t)> visit) const {
  const auto small = [&](char32_t letter) {
    if (!options_.lower_case) return visit(letter);
    unicode::lower_case(letter, visit);
  };
  if (!options_.strip_accents) return small(code);
  unicode::without_accents(code, small);
}

}  // namespace heed
