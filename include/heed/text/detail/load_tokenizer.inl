// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/text/load_tokenizer.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/detail/exceptions.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/text.hpp>
#include <heed/io/detail/json_reader.hpp>
#include <heed/io/file.hpp>

namespace heed {

namespace detail {

/// Parser of a tokenizer.json whose model is of a type, BPE or WordPiece.
class TokenizerJson {
 public:
  TokenizerJson(std::string_view text, const std::string& name, const std::string& type = "BPE")
      : json_(text, name), type_(type) {
    read_entries([&](const std::string& key) {
      if (key == "model") return read_model();
      if (key == "added_tokens") return json_.array([&] { read_added(); });
      if (key == "pre_tokenizer" && json_.peek() == '{') return read_pre_tokenizer();
      if (key == "normalizer" && json_.peek() == '{') return read_normalizer();
      json_.skip();
    });
    json_.end();
  }

  BytePairVocabulary vocabulary() {
    pairs_.pre_tokenizer = pre_tokenizer();
    auto& found = pairs_.nfc ? pairs_.added_nfc : pairs_.added;
    found.insert(found.end(), normalized_.begin(), normalized_.end());
    pairs_.tokens = tokens();
    pairs_.unknown = unknown_token(pairs_.tokens);
    return std::move(pairs_);
  }

  std::pair<TextList, WordPieceOptions> word_pieces() {
    if (steps_ != "BertPreTokenizer " || !normalizer_) {
      json_.fail("no BertNormalizer, or no BertPreTokenizer");
    }
    if (unknown_ != "[UNK]") json_.fail("'unk_token' is ", quote(unknown_), ", expected '[UNK]'");
    TextList all = tokens();
    const std::size_t known = vocabulary_.texts.size();
    if (all.size() > known) json_.fail("token ", quote(all[known]), " is not in the vocabulary");
    normalizer_->longest_word = longest_word_;
    normalizer_->special = std::move(pairs_.special);
    return {std::move(all), *normalizer_};
  }

 private:
  struct Numbered {
    TextList texts;
    std::vector<Index> ids;
  };

  /// Visits the entries of an object and refuses duplicates.
  template <class Visit>
  void read_entries(const Visit& visit) {
    std::set<std::string> seen;
    json_.object([&](const std::string& key) {
      if (!seen.insert(key).second) json_.fail(quote(key), " twice");
      visit(key);
    });
  }

  void read_model() {
    bool pairs = false;  // older files, such as GPT-2's own, have merges and no type
    read_entries([&](const std::string& key) {
      const bool prefix = key == "continuing_subword_prefix";
      pairs = pairs || key == "type" || key == "merges";
      if (key == "type") {
        expect_text(key, type_);
      } else if (key == "vocab") {
        json_.object([&](const std::string& token) { add(vocabulary_, token); });
      } else if (key == "merges") {
        json_.array([&] { read_merge(); });
      } else if (key == "unk_token" && json_.peek() == '"') {
        unknown_ = json_.string();
      } else if (key == "fuse_unk" && json_.peek() != 'n') {
        pairs_.joins_unknown = json_.boolean();
      } else if (key == "ignore_merges") {
        pairs_.ignores_merges = json_.boolean();
      } else if (key == "byte_fallback") {
        expect_flag(key, false);
      } else if (key == "max_input_chars_per_word") {
        longest_word_ = json_.integer();
      } else if ((prefix || key == "end_of_word_suffix") && json_.peek() == '"') {
        expect_text(key, prefix && type_ == "WordPiece" ? "##" : "");
      } else {
        json_.skip();
      }
    });
    if (!pairs) json_.fail("no 'type' of the model, expected ", quote(type_), ", and no 'merges'");
  }
  /// A merge, "Ġ t" or ["Ġ", "t"].
  void read_merge() {
    if (json_.peek() == '"') return pairs_.merges.push_back(json_.string());
    std::string merge;
    int parts = 0;
    json_.array([&] {
      if (parts++ > 0) merge += ' ';
      merge += json_.string();
    });
    if (parts != 2) json_.fail("a merge of ", parts, " tokens, expected 2");
    pairs_.merges.push_back(merge);
  }
  void read_added() {
    std::string content;
    Index id = -1;
    bool before = false, after = false, special = true, normalized = false;
    read_entries([&](const std::string& key) {
      if (key == "id") {
        id = static_cast<Index>(json_.integer());
      } else if (key == "content") {
        content = json_.string();
      } else if (key == "lstrip") {
        before = json_.boolean();
      } else if (key == "rstrip") {
        after = json_.boolean();
      } else if (key == "special") {
        special = json_.boolean();
      } else if (key == "normalized") {
        normalized = json_.boolean();
      } else if (key == "single_word") {
        expect_flag(key, false);
      } else {
        json_.skip();
      }
    });
    const bool name = special && !normalized;   // others are found in plain text, or in any case
    const auto end = std::end(special_pieces);  // libc++ 14 has no algorithms of ranges
    if (type_ == "WordPiece" && !name && std::find(special_pieces, end, content) == end) {
      json_.fail("added token ", quote(content), " is not special, or normalized: not read");
    }
    added_.texts.push_back(content);
    added_.ids.push_back(id);
    (special ? pairs_.special : normalized ? normalized_ : pairs_.added).push_back(id);
    if (before) pairs_.takes_space_before.push_back(id);
    if (after) pairs_.takes_space_after.push_back(id);
  }
  void read_nfc() {
    read_entries([&](const std::string& key) {
      if (key != "type") return json_.skip();
      const std::string type = json_.string();
      if (type != "NFC") json_.fail("a normalizer, ", quote(type), ", which is not read");
      pairs_.nfc = true;
    });
  }
  void read_normalizer() {
    if (type_ == "BPE") return read_nfc();
    WordPieceOptions options;
    std::optional<bool> strip_accents;  // where letters become small, unless it says otherwise
    read_entries([&](const std::string& key) {
      if (key == "type") return expect_text(key, "BertNormalizer");
      if (key == "clean_text") return expect_flag(key, true);
      if (key == "lowercase") {
        options.lower_case = json_.boolean();
      } else if (key == "handle_chinese_chars") {
        options.split_cjk = json_.boolean();
      } else if (key == "strip_accents" && json_.peek() != 'n') {
        strip_accents = json_.boolean();
      } else {
        json_.skip();
      }
    });
    options.strip_accents = strip_accents.value_or(options.lower_case);
    normalizer_ = options;
  }
  void read_pre_tokenizer() {
    std::string type, pattern, behavior;
    read_entries([&](const std::string& key) {
      if (key == "type") {
        type = json_.string();
        if (type != "Sequence") steps_ += type + " ";
      } else if (key == "pretokenizers") {
        json_.array([&] { read_pre_tokenizer(); });
      } else if (key == "pattern" && json_.peek() == '{') {
        read_entries([&](const std::string&) { pattern = json_.string(); });
      } else if (key == "behavior") {
        behavior = json_.string();
      } else if (key == "use_regex" && split_) {
        expect_flag(key, false);
        split_alone_ = true;
      } else if (key == "individual_digits" || key == "use_regex") {
        expect_flag(key, true);
      } else if (key == "add_prefix_space" || key == "invert") {
        expect_flag(key, false);
      } else {
        json_.skip();
      }
    });
    if (type == "Split") split_ = split(pattern, behavior);
  }
  /// What cuts like the regular expression of a step Split.
  PreTokenizer split(const std::string& pattern, const std::string& behavior) const {
    constexpr std::string_view before =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})";
    constexpr std::string_view after = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    if (behavior != "Isolated") {
      json_.fail("the 'behavior' of Split is ", quote(behavior), ", expected 'Isolated'");
    }
    if (pattern.starts_with(before) && pattern.ends_with(after)) {
      const auto numbers = std::string_view(pattern).substr(before.size());
      if (numbers == after) return PreTokenizer::qwen2;
      if (numbers.substr(0, 5) == "{1,3}" && numbers.substr(5) == after) {
        return PreTokenizer::llama3;
      }
    }
    json_.fail("the pattern of Split is '", printable(pattern, 1000),
               "', expected that of Llama 3 or of Qwen2");
  }

  void add(Numbered& to, const std::string& token) {
    to.texts.push_back(token);
    to.ids.push_back(static_cast<Index>(json_.integer()));
  }
  void expect_flag(const std::string& key, bool expected) {
    if (json_.boolean() != expected) {
      json_.fail(quote(key), " is ", expected ? "false" : "true", ", which is not read");
    }
  }
  void expect_text(const std::string& key, const std::string& expected) {
    const std::string text = json_.string();
    if (text != expected)
      json_.fail(quote(key), " is ", quote(text), ", expected ", quote(expected));
  }

  PreTokenizer pre_tokenizer() const {
    if (steps_ == "ByteLevel ") return PreTokenizer::gpt2;
    if (steps_ == "Digits ByteLevel ") return PreTokenizer::smollm;
    if (steps_ == "Split ByteLevel ") {
      if (split_ && split_alone_) return *split_;
      json_.fail("'use_regex' of ByteLevel behind Split is true, which is not read");
    }
    json_.fail("the pre-tokenizer is ", quote(steps_),
               ", expected ByteLevel, or Digits or Split before it");
  }
  /// The tokens by number; an added token may also be in the vocabulary.
  TextList tokens() const {
    constexpr std::uint32_t none = UINT32_MAX;
    const std::size_t most = vocabulary_.texts.size() + added_.texts.size();
    std::vector<std::uint32_t> order(most, none);
    std::size_t count = 0, characters = 0;
    const auto text = [&](std::size_t i) {
      const std::size_t first = vocabulary_.texts.size();
      return i < first ? vocabulary_.texts[i] : added_.texts[i - first];
    };
    for (std::size_t i = 0; i < most; ++i) {
      const std::size_t first = vocabulary_.texts.size();
      const Index id = i < first ? vocabulary_.ids[i] : added_.ids[i - first];
      if (id < 0 || id >= static_cast<Index>(most)) {
        json_.fail("token ", quote(text(i)), " has the number ", id, " of ", most);
      }
      std::uint32_t& place = order[static_cast<std::size_t>(id)];
      if (place != none && (i < first || text(place) != text(i))) {
        json_.fail("tokens ", quote(text(place)), " and ", quote(text(i)), " have one number, ",
                   id);
      }
      if (place != none) continue;
      place = static_cast<std::uint32_t>(i);
      ++count;
      characters += text(i).size();
    }
    TextList tokens;
    tokens.reserve(count, characters);
    for (std::size_t id = 0; id < count; ++id) {
      if (order[id] == none) json_.fail("no token has the number ", id, " of ", count);
      tokens.push_back(text(order[id]));
    }
    return tokens;
  }

  /// The number of the unknown token, or −1. GPT-2's own file names an empty one: none.
  Index unknown_token(const TextList& tokens) const {
    if (unknown_.empty()) return -1;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id] == unknown_) return static_cast<Index>(id);
    }
    const ByteLetters letters;
    int bytes = 0;  // that are tokens
    for (const std::string_view token : tokens) {
      const auto read = letters.read(token);
      bytes += read && read->size() == 1 ? 1 : 0;
    }
    if (bytes == 256) return -1;  // it would stand for nothing
    json_.fail("'unk_token' is ", quote(unknown_), ", which is no token");
  }

  JsonReader json_;
  Numbered vocabulary_, added_;
  std::string type_, unknown_;
  std::optional<WordPieceOptions> normalizer_;
  Index longest_word_ = 100;
  BytePairVocabulary pairs_;
  std::vector<Index> normalized_;  // added tokens that are looked for in normalized text
  std::string steps_;              // of the pre-tokenizer
  std::optional<PreTokenizer> split_;
  bool split_alone_ = false;  // without the pattern that ByteLevel has otherwise
};

}  // namespace detail

HEED_INLINE BytePairEncoding load_tokenizer(const FilePath& path) {
  BytePairVocabulary vocabulary;
  {
    const auto bytes = read_file(path);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with("GGUF")) return load_tokenizer(Gguf::open(path));
    vocabulary = detail::TokenizerJson(text, path).vocabulary();
  }
  return detail::made_of_file(path, [&] { return BytePairEncoding(std::move(vocabulary)); });
}

HEED_INLINE BytePairEncoding parse_tokenizer(std::string_view text, const std::string& name) {
  return detail::made_of_file(
      name, [&] { return BytePairEncoding(detail::TokenizerJson(text, name).vocabulary()); });
}

HEED_INLINE WordPiece load_word_piece(const FilePath& path) {
  auto pieces = [&] {
    const auto bytes = read_file(path);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return detail::TokenizerJson(text, path, "WordPiece").word_pieces();
  }();
  return detail::made_of_file(path,
                              [&] { return WordPiece(std::move(pieces.first), pieces.second); });
}

namespace detail {

/// The texts in an array of a GGUF file.
inline TextList gguf_texts(const Gguf& file, std::string_view key) {
  return TextList::of([&](const auto& visit) { file.for_each<std::string_view>(key, visit); });
}

inline PreTokenizer gguf_pre_tokenizer(const Gguf& file) {
  constexpr const char* key = "tokenizer.ggml.pre";
  const auto name = file.value<std::string_view>(key, "gpt-2");
  if (name == "gpt-2") return PreTokenizer::gpt2;
  if (name == "smollm") return PreTokenizer::smollm;
  if (name == "llama-bpe") return PreTokenizer::llama3;
  if (name == "qwen2") return PreTokenizer::qwen2;
  file.fail_at(file.field(key), "is ", quote(name),
               ", expected 'gpt-2', 'smollm', 'llama-bpe' or 'qwen2'");
}

/// The numbers of the tokens of a type: 3 for special ones, 4 for other added ones.
inline std::vector<Index> gguf_tokens(const Gguf& file, std::int64_t wanted, std::size_t tokens) {
  constexpr const char* key = "tokenizer.ggml.token_type";
  std::vector<Index> found;
  if (!file.has_field(key)) return found;
  Index at = 0, count = 0;
  const auto for_each_found = [&](const auto& visit) {
    at = 0;
    file.for_each<std::int64_t>(key, [&](std::int64_t type) {
      if (type == wanted) visit(at);
      ++at;
    });
  };
  for_each_found([&](Index) { ++count; });
  if (static_cast<std::size_t>(at) != tokens) {
    file.fail_at(file.field(key), "has ", at, " types for ", tokens, " tokens");
  }
  found.reserve(static_cast<std::size_t>(count));
  for_each_found([&](Index token) { found.push_back(token); });
  return found;
}

}  // namespace detail

HEED_INLINE BytePairEncoding load_tokenizer(const Gguf& file) {
  const auto model = file.value<std::string_view>("tokenizer.ggml.model");
  if (model != "gpt2") {
    file.fail_at(file.field("tokenizer.ggml.model"), "is ", quote(model), ", expected 'gpt2'");
  }
  const PreTokenizer pre = detail::gguf_pre_tokenizer(file);
  const auto read = [&] {
    BytePairVocabulary vocabulary;
    vocabulary.pre_tokenizer = pre;
    vocabulary.ignores_merges = pre == PreTokenizer::llama3;
    vocabulary.nfc = pre == PreTokenizer::qwen2;
    vocabulary.tokens = detail::gguf_texts(file, "tokenizer.ggml.tokens");
    vocabulary.merges = detail::gguf_texts(file, "tokenizer.ggml.merges");
    vocabulary.special = detail::gguf_tokens(file, 3, vocabulary.tokens.size());
    vocabulary.added = detail::gguf_tokens(file, 4, vocabulary.tokens.size());
    return BytePairEncoding(std::move(vocabulary));
  };
  return detail::handled<InvalidArgument>(
      read, [&](const InvalidArgument& error) -> BytePairEncoding {
        file.fail_at(file.field("tokenizer.ggml.tokens"), "make no tokenizer: ", error.what());
      });
}

}  // namespace heed
