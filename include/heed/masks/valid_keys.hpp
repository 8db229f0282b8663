// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Keys that are there or not, one by one, for each batch item: padding wherever it stands (left,
/// right, inside), cells of an image grid that are filled. Coverage is exact, by running counts.
class ValidKeys {
 public:
  static constexpr bool depends_on_head = false;

  /// `valid(item, key)` for every key of every item.
  template <std::predicate<Index, Index> Valid>
  ValidKeys(Index batch, Index keys, Valid valid)
      : keys_(keys), counts_(static_cast<std::size_t>(batch * (keys + 1))) {
    for (Index item = 0; item < batch; ++item) {
      Index* count = counts_.data() + item * (keys + 1);
      for (Index key = 0; key < keys; ++key)
        count[key + 1] = count[key] + (valid(item, key) ? 1 : 0);
    }
  }

  bool allows(Position at) const { return count(at.batch, at.key, at.key) == 1; }
  Coverage coverage(Tile tile) const {
    const Index valid = count(tile.batch, tile.first_key, tile.last_key);
    if (valid == 0) return Coverage::none;
    return valid == tile.keys() ? Coverage::full : Coverage::partial;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      *words++ = count(tile.batch, key, key) == 1 ? ~std::uint64_t{0} : 0;
    }
  }
  void check(MaskShape shape) const {
    const Index batch = static_cast<Index>(counts_.size()) / (keys_ + 1);
    if (batch != shape.batch || keys_ != shape.keys) {
      throw_shape_error("ValidKeys: made for (batch, keys) (", batch, ", ", keys_, "), used with (",
                        shape.batch, ", ", shape.keys, ")");
    }
  }

 private:
  Index count(Index item, Index first, Index last) const {
    const Index* counts = counts_.data() + item * (keys_ + 1);
    return counts[last + 1] - counts[first];
  }

  Index keys_;
  std::vector<Index> counts_;  // [item][key]: valid keys before it
};

/// Padding found in the tokens themselves: `tokens` holds rows of `length` ids, one per batch item;
/// every id but `pad` is a real key.
template <std::integral Token>
ValidKeys padding_of_tokens(std::span<const Token> tokens, Index length, Token pad) {
  const auto count = static_cast<Index>(tokens.size());
  if (length < 0 || (length == 0 ? count != 0 : count % length != 0)) {
    throw_shape_error("padding_of_tokens: ", count, " ids are not rows of ", length);
  }
  return ValidKeys(length == 0 ? 0 : count / length, length, [&](Index item, Index key) {
    return tokens[static_cast<std::size_t>(item * length + key)] != pad;
  });
}

}  // namespace heed::masks
