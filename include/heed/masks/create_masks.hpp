// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <span>

#include <heed/masks/causal.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/valid_keys.hpp>

namespace heed::masks {

/// The three masks of an encoder-decoder over one batch of padded token ids.
struct TranslationMasks {
  ValidKeys source;               // encoder: every real source token
  And<Causal, ValidKeys> target;  // decoder on itself: real tokens up to its own position
  ValidKeys memory;               // decoder on the encoder's output: every real source token
};

/// Source, target and memory masks from token ids: rows of `source_length` and `target_length`, one
/// per batch item, where `pad` marks what is not there.
template <std::integral Token>
TranslationMasks create_masks(std::span<const Token> source, Index source_length,
                              std::span<const Token> target, Index target_length, Token pad) {
  const ValidKeys real_source = padding_of_tokens(source, source_length, pad);
  return {real_source, Causal{} & padding_of_tokens(target, target_length, pad), real_source};
}

}  // namespace heed::masks
