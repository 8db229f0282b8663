// SPDX-License-Identifier: MIT
#pragma once

/// Tokenizers: text to token numbers and back.
#include <heed/text/byte_pair_encoding.hpp>
#include <heed/text/load_tokenizer.hpp>
#include <heed/text/tokenizer.hpp>
#include <heed/text/unicode.hpp>
#include <heed/text/word_piece.hpp>
