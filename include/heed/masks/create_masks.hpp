// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>

#include <heed/core/error.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/tokens.hpp>

namespace heed::masks {

/// The three masks of an encoder-decoder for one batch of padded token ids.
struct TranslationMasks {
  ValidKeys source;               // encoder: every real source token
  And<Causal, ValidKeys> target;  // decoder self-attention: real tokens up to its own position
  ValidKeys memory;               // cross-attention to the encoder: every real source token
};

/// Source, target and memory masks from token ids: rows of `source_length` and `target_length` ids,
/// one per batch item, with `pad` at padded positions. The target mask hides padded keys. A common
/// recipe masks the rows of padded queries instead, which lets a real token see the padding before
/// it.
template <TokenIds Source, TokenIds Target>
TranslationMasks create_masks(const Source& source, Index source_length, const Target& target,
                              Index target_length, TokenOf<Source> pad) {
  static_assert(std::same_as<TokenOf<Source>, TokenOf<Target>>,
                "create_masks: source and target ids must have one integer type");
  const ValidKeys real_source = padding_of_tokens(source, source_length, pad);
  const ValidKeys real_target = padding_of_tokens(target, target_length, pad);
  if (real_source.batch() != real_target.batch()) {
    throw_shape_error("create_masks: ", real_source.batch(), " source rows and ",
                      real_target.batch(), " target rows");
  }
  return {real_source, Causal{} & real_target, real_source};
}

}  // namespace heed::masks
