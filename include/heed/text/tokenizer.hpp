// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/core/index.hpp>

namespace heed {

/// Text to token numbers and back. Numbers run from 0 to vocab_size() − 1; decode refuses
/// others with a ShapeError.
template <class X>
concept Tokenizer = requires(const X& tokenizer, std::string_view text,
                             std::span<const Index> tokens) {
  { tokenizer.encode(text) } -> std::same_as<std::vector<Index>>;
  { tokenizer.decode(tokens) } -> std::same_as<std::string>;
  { tokenizer.vocab_size() } -> std::same_as<Index>;
};

}  // namespace heed
