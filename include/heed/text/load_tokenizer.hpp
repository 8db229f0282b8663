// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <heed/core/config.hpp>
#include <heed/io/file.hpp>
#include <heed/io/gguf.hpp>
#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/word_piece.hpp>

namespace heed {

/// Loads a tokenizer.json, as Hugging Face publishes it with a model: byte-level byte pairs with
/// the pre-tokenizer of GPT-2 (ByteLevel), SmolLM2 (Digits, ByteLevel), Llama 3 or Qwen2 (Split by
/// the regular expression of either, ByteLevel) and with the normalizer NFC or none. What its
/// post_processor adds around a text, its truncation, padding and dropout are not applied. The path
/// may be that of a GGUF file too. Throws FileError for any other tokenizer and for invalid files.
BytePairEncoding load_tokenizer(const FilePath& path);
/// The same from the file's text; `name` appears in error messages.
BytePairEncoding parse_tokenizer(std::string_view text, const std::string& name);

/// Loads the tokenizer.json of a BERT: WordPiece with BERT's normalizer and pre-tokenizer, without
/// tokens beyond its vocabulary. Added tokens within it must be special and not normalized: they
/// are names. Throws FileError for any other.
WordPiece load_word_piece(const FilePath& path);

/// Loads the tokenizer in the metadata of a GGUF file: byte-level byte pairs
/// (`tokenizer.ggml.model` is gpt2) with the pre-tokenizer gpt-2, smollm, llama-bpe (Llama 3) or
/// qwen2, which means the normalizer NFC too. add_bos_token and unknown_token_id are not applied.
/// Throws FileError, with the field's name, for any other.
BytePairEncoding load_tokenizer(const Gguf& file);

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/text/detail/load_tokenizer.inl>
#endif
