// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>
#include <heed/io/error.hpp>
#include <heed/io/gguf.hpp>
#include <heed/text/byte_pair_encoding.hpp>

namespace heed {

/// The tokenizer in the metadata of a GGUF file: byte-level byte pairs (`tokenizer.ggml.model` is
/// gpt2) with the pre-tokenizers gpt-2 or smollm. Throws FileError, naming the field, for any
/// other.
inline BytePairEncoding read_tokenizer(const Gguf& file) {
  const auto fail = [&](const auto&... parts) { throw_file_error(file.name(), ": ", parts...); };
  const auto model = file.value<std::string_view>("tokenizer.ggml.model");
  if (model != "gpt2") fail("'tokenizer.ggml.model' is ", quote(model), ", expected 'gpt2'");
  const auto pre = file.value<std::string_view>("tokenizer.ggml.pre", "gpt-2");
  if (pre != "gpt-2" && pre != "smollm") {
    fail("'tokenizer.ggml.pre' is ", quote(pre), ", expected 'gpt-2' or 'smollm'");
  }
  BytePairVocabulary vocabulary;
  vocabulary.pre_tokenizer = pre == "smollm" ? PreTokenizer::smollm : PreTokenizer::gpt2;
  bool empty = false;  // found; of a million empty ones none is kept
  for (const auto token : file.values<std::string_view>("tokenizer.ggml.tokens")) {
    if (token.empty() && std::exchange(empty, true)) {
      fail("'tokenizer.ggml.tokens' has two empty tokens");
    }
    vocabulary.tokens.emplace_back(token);
  }
  for (const auto merge : file.values<std::string_view>("tokenizer.ggml.merges")) {
    vocabulary.merges.emplace_back(merge);
  }
  if (file.has_field("tokenizer.ggml.token_type")) {
    constexpr std::int32_t control = 3, user_defined = 4;
    const auto types = file.values<std::int32_t>("tokenizer.ggml.token_type");
    if (types.size() != vocabulary.tokens.size()) {
      fail("'tokenizer.ggml.token_type' has ", types.size(), " types for ",
           vocabulary.tokens.size(), " tokens");
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] == control || types[i] == user_defined)
        vocabulary.special.push_back(static_cast<Index>(i));
    }
  }
  try {
    return BytePairEncoding(vocabulary);
  } catch (const ShapeError& error) {
    throw_file_error(file.name(), ": ", error.what());
  }
}

}  // namespace heed
