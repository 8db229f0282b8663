// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed::masks {

/// Keys that are there or not, one by one, for each batch item: padding wherever it stands (left,
/// right, inside), cells of an image grid that are filled. What was not given is not there.
/// Coverage is exact, by running counts.
class ValidKeys {
 public:
  static constexpr bool depends_on_head = false;

  /// `valid(item, key)` for every key of every item.
  template <std::predicate<Index, Index> Valid>
  ValidKeys(Index batch, Index keys, Valid valid)
      : batch_(batch), keys_(keys), counts_(counted(batch, keys, valid)) {}

  Index batch() const { return batch_; }
  Index keys() const { return keys_; }
  /// How many keys of an item are there before this one.
  Index before(Index item, Index key) const { return key > 0 ? count(item, 0, key - 1) : 0; }

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
    if (!shape.has_batch(batch_) || (keys_ != shape.keys && !shape.partial)) {
      throw_shape_error("ValidKeys: made for (batch, keys) (", batch_, ", ", keys_,
                        "), used with (", shape.batch, ", ", shape.keys,
                        "); partial(mask) for other keys on purpose");
    }
  }

 private:
  template <class Valid>
  static detail::SharedArray<Index> counted(Index batch, Index keys, Valid& valid) {
    constexpr Index limit = std::numeric_limits<Index>::max() / 2;
    if (batch < 0 || keys < 0 || (batch > 0 && keys > limit / batch - 1)) {
      throw_shape_error("ValidKeys: ", batch, " items of ", keys, " keys");
    }
    return detail::SharedArray<Index>::filled(batch * (keys + 1), [&](Index* counts) {
      for (Index item = 0; item < batch; ++item) {
        Index count = 0;
        *counts++ = count;
        for (Index key = 0; key < keys; ++key) *counts++ = count += valid(item, key) ? 1 : 0;
      }
    });
  }
  /// Valid keys of an item in [first, last], first >= 0.
  Index count(Index item, Index first, Index last) const {
    if (item < 0 || item >= batch_ || first >= keys_) return 0;
    const Index row = item * (keys_ + 1);
    return counts_[row + (last < keys_ ? last + 1 : keys_)] - counts_[row + first];
  }

  Index batch_;
  Index keys_;
  detail::SharedArray<Index> counts_;  // [item][key]: valid keys before it
};

/// Cells of an image grid that are filled, `valid(item, row, column)`: positions run along the
/// rows, position = row · columns + column, as for GridNeighborhood.
template <std::predicate<Index, Index, Index> Valid>
ValidKeys valid_cells(Index batch, Index rows, Index columns, Valid valid) {
  if (rows < 0 || columns < 0) throw_shape_error("valid_cells: ", rows, " × ", columns, " cells");
  return ValidKeys(batch, rows * columns, [&](Index item, Index cell) {
    return valid(item, cell / columns, cell % columns);
  });
}

/// Token ids one after another: a vector, array or span of integers.
template <class Ids>
concept TokenIds = requires(const Ids& ids) {
  requires std::integral<typename decltype(std::span(ids))::value_type>;
};
template <TokenIds Ids>
using TokenOf = typename decltype(std::span(std::declval<const Ids&>()))::value_type;

/// Padding found in the tokens themselves: `tokens` holds rows of `length` ids, one per batch item;
/// every id but `pad` is a real key.
template <TokenIds Ids>
ValidKeys padding_of_tokens(const Ids& tokens, Index length, TokenOf<Ids> pad) {
  const std::span ids(tokens);
  const auto count = static_cast<Index>(ids.size());
  if (length < 0 || (length == 0 ? count != 0 : count % length != 0)) {
    throw_shape_error("padding_of_tokens: ", count, " ids are not rows of ", length);
  }
  return ValidKeys(length == 0 ? 0 : count / length, length, [&](Index item, Index key) {
    return ids[static_cast<std::size_t>(item * length + key)] != pad;
  });
}

}  // namespace heed::masks
