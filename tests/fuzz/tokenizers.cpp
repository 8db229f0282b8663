// SPDX-License-Identifier: MIT
// Any bytes are a vocabulary or a tokenizer.json, or a FileError, and are encoded; bytes and byte
// pairs give them back, or their normal form, characters do where they are UTF-8.
#include <string>
#include <vector>

#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/load_tokenizer.hpp>
#include <heed/text/tokenizer.hpp>
#include <heed/text/unicode.hpp>
#include <heed/text/word_piece.hpp>

#include "fuzz/fuzz.hpp"

namespace {

heed::BytePairEncoding byte_pairs(heed::PreTokenizer kind) {
  heed::BytePairVocabulary source;
  const heed::detail::ByteLetters letters;
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<char>(byte);
    source.tokens.push_back(letters.write({&value, 1}));
  }
  for (const char* merge : {"Ġ t", "h e", "Ġt he", "a a", "aa aa", "Ã ©", "Ċ Ċ", "' s", "1 2"}) {
    source.merges.emplace_back(merge);
    std::string token = merge;
    token.erase(token.find(' '), 1);
    source.tokens.push_back(token);
  }
  source.special = {static_cast<heed::Index>(source.tokens.size())};
  source.tokens.emplace_back("<|end|>");
  source.pre_tokenizer = kind;
  source.ignores_merges = kind == heed::PreTokenizer::llama3;
  source.nfc = kind == heed::PreTokenizer::qwen2;
  return heed::BytePairEncoding(source);
}

heed::WordPiece word_pieces() {
  return heed::WordPiece({"[UNK]", "[CLS]", "[SEP]", "a", "##a", "the", "##e", "中", "1", "##2",
                          ".", "'", "e", "##ing", "i"});
}

/// The text as a vocab.txt.
void read_vocabulary(const std::string& text) {
  try {
    const auto pieces = heed::WordPiece::parse(text, "x");
    for (heed::Index i = 0; i < pieces.vocab_size(); ++i) {
      heed::fuzz::require(pieces.token(pieces.name(i)) == i);
    }
    pieces.decode(pieces.encode(std::string_view(text).substr(0, 200)));
  } catch (const heed::FileError&) {
  }
}

/// The text as a tokenizer.json.
void read_tokenizer_json(const std::string& text) {
  try {
    const auto tokenizer = heed::parse_tokenizer(text, "x");
    const auto tokens = tokenizer.encode(text, heed::SpecialTokens::recognized);
    tokenizer.decode(tokens);
  } catch (const heed::FileError&) {
  }
}

template <class X>
void round_trip(const X& tokenizer, std::string_view text) {
  const auto tokens = tokenizer.encode(text);
  for (const heed::Index token : tokens) {
    heed::fuzz::require(token >= 0 && token < tokenizer.vocab_size());
  }
  heed::fuzz::require(tokenizer.decode(tokens) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto gpt2 = byte_pairs(heed::PreTokenizer::gpt2);
  static const auto smollm = byte_pairs(heed::PreTokenizer::smollm);
  static const auto llama3 = byte_pairs(heed::PreTokenizer::llama3);
  static const auto qwen2 = byte_pairs(heed::PreTokenizer::qwen2);
  static const auto pieces = word_pieces();
  const std::string text(data, data + size);
  read_vocabulary(text);
  read_vocabulary("[UNK]\n" + text);
  read_tokenizer_json(text);
  round_trip(heed::ByteTokenizer(), text);
  round_trip(gpt2, text);
  round_trip(smollm, text);
  round_trip(llama3, text);
  const std::string normal = heed::unicode::nfc(text);
  round_trip(qwen2, normal);
  heed::fuzz::require(qwen2.encode(text) == qwen2.encode(normal));
  heed::fuzz::require(gpt2.decode(gpt2.encode(text, heed::SpecialTokens::recognized)) == text);
  pieces.decode(pieces.encode(text, heed::SpecialTokens::recognized));
  if (heed::is_utf8(text)) round_trip(heed::CharacterTokenizer(text), text);
  return 0;
}
