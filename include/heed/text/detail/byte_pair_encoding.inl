// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/byte_pair_encoding.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/core/text.hpp>
#include <heed/text/unicode.hpp>

namespace heed {

namespace detail {

HEED_INLINE ByteLetters::ByteLetters() {
  bytes_.fill(-1);
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte > ' ' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    letters_[byte] = prints ? byte : next++;
    bytes_[letters_[byte]] = static_cast<std::int16_t>(byte);
  }
}

HEED_INLINE std::string ByteLetters::write(std::string_view bytes) const {
  std::string letters;
  for (const char byte : bytes) append_utf8(letters, letters_[static_cast<unsigned char>(byte)]);
  return letters;
}

HEED_INLINE std::optional<std::string> ByteLetters::read(std::string_view letters) const {
  std::string bytes;
  bytes.reserve(letters.size());  // growing step by step would take three times as much
  for (std::size_t at = 0; at < letters.size();) {
    const Utf8Character next = decode_utf8(letters, at);
    if (!next.valid || next.code >= bytes_.size() || bytes_[next.code] < 0) return std::nullopt;
    bytes += static_cast<char>(bytes_[next.code]);
    at += next.size;
  }
  return bytes;
}

HEED_INLINE PairMerger::PairMerger(const std::vector<PairMerge>& merges, Index vocabulary)
    : begins_(static_cast<std::size_t>(vocabulary) + 1) {
  if (merges.size() > 0x7fffffff) throw_invalid_argument("merges: too many");
  for (const PairMerge& merge : merges) ++begins_[static_cast<std::size_t>(merge.left) + 1];
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  merges_.resize(merges.size());
  std::vector<std::uint32_t> at(begins_);
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const PairMerge& merge = merges[rank];
    merges_[at[static_cast<std::size_t>(merge.left)]++] = {
        merge.right, static_cast<std::int32_t>(rank), merge.result};
  }
  for (std::size_t left = 0; left + 1 < begins_.size(); ++left) {
    const auto first = merges_.begin() + static_cast<Index>(begins_[left]);
    const auto last = merges_.begin() + static_cast<Index>(begins_[left + 1]);
    std::sort(first, last, [](const Entry& a, const Entry& b) { return a.right < b.right; });
    const auto twice = std::adjacent_find(
        first, last, [](const Entry& a, const Entry& b) { return a.right == b.right; });
    if (twice != last)
      throw_invalid_argument("merges: ", std::max(twice->rank, (twice + 1)->rank),
                             " again merges tokens ", left, " and ", twice->right);
  }
}

/// The symbols of a piece, and the merges that its neighbors offer.
struct PairMerger::Work {
  struct Symbol {
    std::int32_t token, previous, next;
  };
  struct Candidate {
    std::int32_t rank, at, left, right, result;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

  /// Queues the merge of the symbol at `at` with the next one, if the two have a merge.
  void consider(std::int32_t at) {
    if (at < 0) return;
    const Symbol& left = symbols[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    const std::int32_t right = symbols[static_cast<std::size_t>(left.next)].token;
    const auto first = merger.merges_.begin() +
                       static_cast<Index>(merger.begins_[static_cast<std::size_t>(left.token)]);
    const auto last = merger.merges_.begin() +
                      static_cast<Index>(merger.begins_[static_cast<std::size_t>(left.token) + 1]);
    const auto found = std::lower_bound(
        first, last, right,
        [](const Entry& entry, std::int32_t wanted) { return entry.right < wanted; });
    if (found == last || found->right != right) return;
    queue.push({found->rank, at, left.token, right, found->result});
  }

  const PairMerger& merger;
  std::vector<Symbol> symbols;
  Queue queue = {};
};

HEED_INLINE void PairMerger::merge(std::vector<std::int32_t>& tokens) const {
  Work work{*this, std::vector<Work::Symbol>(tokens.size())};
  const auto size = static_cast<std::int32_t>(tokens.size());
  for (std::int32_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    work.symbols[at] = {tokens[at], i - 1, i + 1 < size ? i + 1 : -1};
  }
  for (std::int32_t i = 0; i + 1 < size; ++i) work.consider(i);
  while (!work.queue.empty()) {
    const Work::Candidate best = work.queue.top();
    work.queue.pop();
    Work::Symbol& left = work.symbols[static_cast<std::size_t>(best.at)];
    if (left.token != best.left || left.next < 0) continue;  // one of the two is gone
    Work::Symbol& right = work.symbols[static_cast<std::size_t>(left.next)];
    if (right.token != best.right) continue;
    left.token = best.result;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0) work.symbols[static_cast<std::size_t>(left.next)].previous = best.at;
    work.consider(left.previous);
    work.consider(best.at);
  }
  std::size_t count = 0;
  for (const Work::Symbol& symbol : work.symbols) {
    if (symbol.token >= 0) tokens[count++] = symbol.token;
  }
  tokens.resize(count);
}

/// The characters of a text, as the rules below tell them apart.
class PieceRule {
 protected:
  explicit PieceRule(std::string_view text) : text_(text) {}

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
  bool is_line_end(std::size_t at) const {
    return at < text_.size() && (text_[at] == '\n' || text_[at] == '\r');
  }

  /// Where a run of characters of a kind ends that goes on at `at`, at most so many of them.
  std::size_t end_of_run(std::size_t at, Kind kind, std::size_t most = SIZE_MAX) const {
    for (; at < text_.size() && most > 0; --most) {
      const Next next = look(at);
      if (next.kind != kind) break;
      at = next.end;
    }
    return at;
  }
  /// The white space from `begin` on, but its last character if anything follows.
  std::size_t end_of_spaces(std::size_t begin) const {
    std::size_t end = begin, last = begin;  // where its last character begins
    while (end < text_.size()) {
      const Next next = look(end);
      if (next.kind != Kind::space) break;
      last = end;
      end = next.end;
    }
    return end < text_.size() && last > begin ? last : end;
  }

  std::string_view text_;
};

/// Cuts text like the regular expression of GPT-2,
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Radford et al., Language models are unsupervised multitask learners, 2019.
class Gpt2Rule : private PieceRule {
 public:
  explicit Gpt2Rule(std::string_view text) : PieceRule(text) {}

  std::size_t end_of_piece(std::size_t begin) const {
    if (text_[begin] == '\'') {
      for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
        if (text_.substr(begin, ending.size()) == ending) return begin + ending.size();
      }
    }
    Next first = look(begin);
    if (text_[begin] == ' ' && begin + 1 < text_.size()) {
      const Next second = look(begin + 1);
      if (second.kind != Kind::space) first = second;
    }
    if (first.kind == Kind::space) return end_of_spaces(begin);
    return end_of_run(first.end, first.kind);
  }
};

/// Cuts text like the regular expression of Llama 3, which is that of GPT-4, with up to three
/// numbers in a piece, or like that of Qwen2, with one:
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
///   | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
class Llama3Rule : private PieceRule {
 public:
  Llama3Rule(std::string_view text, std::size_t most_numbers)
      : PieceRule(text), most_numbers_(most_numbers) {}

  std::size_t end_of_piece(std::size_t begin) const {
    if (const std::size_t size = contraction(begin); size > 0) return begin + size;
    Next next = look(begin);
    if (next.kind == Kind::number) return end_of_run(begin, Kind::number, most_numbers_);
    if (next.kind != Kind::letter && next.end < text_.size() && !is_line_end(begin)) {
      const Next second = look(next.end);  // one character in front of letters, a space of others
      const bool other = text_[begin] == ' ' && second.kind == Kind::other;
      if (other || second.kind == Kind::letter) next = second;
    }
    if (next.kind == Kind::space) return end_of_lines(begin);
    std::size_t end = end_of_run(next.end, next.kind);
    while (next.kind == Kind::other && is_line_end(end)) ++end;
    return end;
  }

 private:
  /// The bytes of a contraction in any case, or 0.
  std::size_t contraction(std::size_t begin) const {
    if (text_[begin] != '\'') return 0;
    if (text_.substr(begin + 1, 2) == "\u017f") return 3;  // ſ is a small s
    const auto small = [&](std::size_t at) { return at < text_.size() ? text_[at] | ' ' : 0; };
    const int first = small(begin + 1), second = small(begin + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const bool two = first == 'l' ? second == 'l' : (first == 'r' || first == 'v') && second == 'e';
    return two ? 3 : 0;
  }
  /// The white space from `begin` on up to its last line end; without one, as for GPT-2.
  std::size_t end_of_lines(std::size_t begin) const {
    std::size_t end = end_of_run(begin, Kind::space);
    const std::size_t last = text_.substr(begin, end - begin).find_last_of("\r\n");
    return last != text_.npos ? begin + last + 1 : end_of_spaces(begin);
  }

  std::size_t most_numbers_;
};

template <class Rule>
void cut(std::string_view text, const Rule& rule, FunctionRef<void(std::string_view)> visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = rule.end_of_piece(begin);
    visit(text.substr(begin, end - begin));
    begin = end;
  }
}
HEED_INLINE void cut_smollm(std::string_view text, FunctionRef<void(std::string_view)> visit) {
  const auto between = [&](std::string_view part) { cut(part, Gpt2Rule(part), visit); };
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text, at);
    const std::size_t end = at + character.size;
    if (unicode::classes_of(character.code).digit()) {
      between(text.substr(begin, at - begin));
      visit(text.substr(at, character.size));
      begin = end;
    }
    at = end;
  }
  between(text.substr(begin));
}

}  // namespace detail

HEED_INLINE void for_each_piece(std::string_view text, PreTokenizer kind,
                                FunctionRef<void(std::string_view)> visit) {
  switch (kind) {
    case PreTokenizer::gpt2:
      return detail::cut(text, detail::Gpt2Rule(text), visit);
    case PreTokenizer::smollm:
      return detail::cut_smollm(text, visit);
    case PreTokenizer::llama3:
      return detail::cut(text, detail::Llama3Rule(text, 3), visit);
    case PreTokenizer::qwen2:
      return detail::cut(text, detail::Llama3Rule(text, 1), visit);
  }
}

HEED_INLINE BytePairEncoding::BytePairEncoding(BytePairVocabulary source)
    : pre_tokenizer_(source.pre_tokenizer),
      joins_unknown_(source.joins_unknown),
      ignores_merges_(source.ignores_merges),
      nfc_(source.nfc) {
  const Vocabulary vocabulary(std::move(source.tokens));
  const detail::ByteLetters letters;
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const auto value = static_cast<char>(byte);
    bytes_[byte] = static_cast<std::int32_t>(vocabulary.find(letters.write({&value, 1})));
  }
  // Each source is freed before the next is read: a file of many short texts must not take many
  // times its size.
  read_merges(std::move(source.merges), vocabulary);
  read_special(source, vocabulary);
  read_texts(vocabulary.texts());
}

HEED_INLINE std::vector<Index> BytePairEncoding::encode(std::string_view text,
                                                        SpecialTokens special) const {
  std::vector<Index> tokens;
  const auto found = [&](Index token) { tokens.push_back(token); };
  const auto merged = [&](std::string_view part) {
    for_each_piece(part, pre_tokenizer_,
                   [&](std::string_view piece) { encode_piece(piece, tokens); });
  };
  const auto normal = [&](std::string_view part) {
    if (!nfc_) return added_nfc_.split(texts_, part, merged, found);
    added_nfc_.split(texts_, unicode::nfc(part), merged, found);
  };
  const auto plain = [&](std::string_view part) { added_.split(texts_, part, normal, found); };
  special_.split(texts_, text, plain, found, special);
  return tokens;
}

HEED_INLINE std::string BytePairEncoding::decode(const OwnedArray<Index>& tokens) const {
  std::string result;
  for (const Index token : tokens) result += text_of(token);
  return result;
}

HEED_INLINE std::string_view BytePairEncoding::text_of(Index token) const {
  if (token < 0 || token >= vocab_size()) {
    throw_invalid_argument("token ", token, " of ", vocab_size());
  }
  return texts_[static_cast<std::size_t>(token)];
}

HEED_INLINE void BytePairEncoding::encode_piece(std::string_view piece,
                                                std::vector<Index>& tokens) const {
  if (piece.size() > 0x7fffffff)
    throw_invalid_argument("encode: a piece of ", piece.size(), " bytes");
  if (ignores_merges_) {
    const std::int32_t whole = whole_.find(texts_, piece);
    if (whole >= 0) return tokens.push_back(whole);
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(piece.size());
  bool unknown = false;
  for (const char byte : piece) {
    std::int32_t token = bytes_[static_cast<unsigned char>(byte)];
    const bool joins = joins_unknown_ && unknown;
    unknown = token < 0;
    if (unknown) token = joins ? -1 : unknown_;
    if (token >= 0) symbols.push_back(token);
  }
  merger_.merge(symbols);
  tokens.insert(tokens.end(), symbols.begin(), symbols.end());
}

HEED_INLINE void BytePairEncoding::read_texts(const TextList& tokens) {
  texts_.reserve(tokens.size(), tokens.characters());
  const detail::ByteLetters letters;
  std::vector<std::uint32_t> pieces;
  if (ignores_merges_) pieces.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    // A text in other letters stands for itself, as the names of special tokens do.
    const auto bytes = letters.read(tokens[i]);
    const auto token = static_cast<Index>(i);
    const bool name =
        !bytes || special_.contains(token) || added_.contains(token) || added_nfc_.contains(token);
    texts_.push_back(name ? tokens[i] : std::string_view(*bytes));
    if (ignores_merges_ && !name) pieces.push_back(static_cast<std::uint32_t>(i));
  }
  whole_ = detail::TokenFinder(texts_, std::move(pieces));
}

HEED_INLINE void BytePairEncoding::read_special(const BytePairVocabulary& source,
                                                const Vocabulary& vocabulary) {
  if (source.unknown != -1) static_cast<void>(vocabulary.text(source.unknown));
  unknown_ = static_cast<std::int32_t>(source.unknown);
  for (const auto* tokens : {&source.special, &source.added, &source.added_nfc,
                             &source.takes_space_before, &source.takes_space_after}) {
    for (const Index token : *tokens) static_cast<void>(vocabulary.text(token));
  }
  for (const Index token : source.added_nfc) {
    const std::string_view text = vocabulary.text(token);
    if (nfc_ && unicode::nfc(text) != text) {
      throw_invalid_argument("added token ", quote(text), " is not in normal form C");
    }
  }
  const auto finder = [&](const std::vector<Index>& tokens) {
    return detail::SpecialTokenFinder(vocabulary.texts(), tokens, source.takes_space_before,
                                      source.takes_space_after);
  };
  special_ = finder(source.special);
  added_ = finder(source.added);
  added_nfc_ = finder(source.added_nfc);
}

HEED_INLINE void BytePairEncoding::read_merges(
    TextList texts, const Vocabulary& vocabulary) {  // NOLINT: gone when read
  std::vector<detail::PairMerge> merges;
  merges.reserve(texts.size());
  std::string both;
  for (const std::string_view text : texts) {
    const std::size_t space = text.find(' ');
    const std::string_view left = text.substr(0, space);
    const std::string_view right = space == text.npos ? "" : text.substr(space + 1);
    both.assign(left).append(right);
    const Index tokens[] = {vocabulary.find(left), vocabulary.find(right), vocabulary.find(both)};
    for (const Index token : tokens) {
      if (token >= 0) continue;
      throw_invalid_argument("merges: ", merges.size(), " is ", quote(text),
                             ", which names a token that is not in the vocabulary");
    }
    merges.push_back({static_cast<std::int32_t>(tokens[0]), static_cast<std::int32_t>(tokens[1]),
                      static_cast<std::int32_t>(tokens[2])});
  }
  merger_ = detail::PairMerger(merges, vocabulary.size());
}

}  // namespace heed
