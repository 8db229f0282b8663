// SPDX-License-Identifier: MIT
#pragma once

/// Text to token numbers and back.
#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/byte_tokenizer.hpp>
#include <heed/text/character_tokenizer.hpp>
#include <heed/text/gguf_tokenizer.hpp>
#include <heed/text/pre_tokenizer.hpp>
#include <heed/text/special_tokens.hpp>
#include <heed/text/tokenizer.hpp>
#include <heed/text/tokenizer_json.hpp>
#include <heed/text/unicode.hpp>
#include <heed/text/vocabulary.hpp>
#include <heed/text/word_piece.hpp>
