// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/text_list.hpp>
#include <heed/io/error.hpp>
#include <heed/io/gguf.hpp>
#include <heed/text/byte_pair_encoding.hpp>

namespace heed {

namespace detail {

/// The texts of an array of a GGUF file.
inline TextList gguf_texts(const Gguf& file, std::string_view key) {
  std::size_t count = 0, characters = 0;
  file.for_each<std::string_view>(key, [&](std::string_view text) {
    ++count;
    characters += text.size();
  });
  TextList texts;
  texts.reserve(count, characters);
  file.for_each<std::string_view>(key, [&](std::string_view text) { texts.push_back(text); });
  return texts;
}

/// The numbers of the tokens whose text is a name.
inline std::vector<Index> gguf_special_tokens(const Gguf& file, std::size_t tokens) {
  constexpr const char* key = "tokenizer.ggml.token_type";
  std::vector<Index> special;
  if (!file.has_field(key)) return special;
  Index at = 0, count = 0;
  const auto for_each_special = [&](const auto& visit) {
    at = 0;
    file.for_each<std::int64_t>(key, [&](std::int64_t type) {
      constexpr std::int64_t control = 3, user_defined = 4;
      if (type == control || type == user_defined) visit(at);
      ++at;
    });
  };
  for_each_special([&](Index) { ++count; });
  if (static_cast<std::size_t>(at) != tokens) {
    file.fail_at(file.field(key), "has ", at, " types for ", tokens, " tokens");
  }
  special.reserve(static_cast<std::size_t>(count));
  for_each_special([&](Index token) { special.push_back(token); });
  return special;
}

}  // namespace detail

/// The tokenizer in the metadata of a GGUF file: byte-level byte pairs (`tokenizer.ggml.model` is
/// gpt2) with the pre-tokenizers gpt-2 or smollm. Throws FileError, naming the field, for any
/// other.
inline BytePairEncoding read_tokenizer(const Gguf& file) {
  const auto model = file.value<std::string_view>("tokenizer.ggml.model");
  if (model != "gpt2") {
    file.fail_at(file.field("tokenizer.ggml.model"), "is ", quote(model), ", expected 'gpt2'");
  }
  const auto pre = file.value<std::string_view>("tokenizer.ggml.pre", "gpt-2");
  if (pre != "gpt-2" && pre != "smollm") {
    file.fail_at(file.field("tokenizer.ggml.pre"), "is ", quote(pre),
                 ", expected 'gpt-2' or 'smollm'");
  }
  try {
    BytePairVocabulary vocabulary;
    vocabulary.pre_tokenizer = pre == "smollm" ? PreTokenizer::smollm : PreTokenizer::gpt2;
    vocabulary.tokens = detail::gguf_texts(file, "tokenizer.ggml.tokens");
    vocabulary.merges = detail::gguf_texts(file, "tokenizer.ggml.merges");
    vocabulary.special = detail::gguf_special_tokens(file, vocabulary.tokens.size());
    return BytePairEncoding(std::move(vocabulary));
  } catch (const InvalidArgument& error) {
    file.fail_at(file.field("tokenizer.ggml.tokens"), "make no tokenizer: ", error.what());
  }
}

}  // namespace heed
