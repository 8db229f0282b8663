// SPDX-License-Identifier: MIT
// Masks as a user writes them, and the walks over shapes and masks that tests of the forward and
// the backward pass share.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/masks/combine.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>

#include "support/attention_cases.hpp"
#include "support/mask_catalogue.hpp"

namespace heed::test {

/// No coverage, no lane words, holes everywhere, some empty rows and columns.
struct Irregular {
  bool allows(Position at) const {
    return (at.query * 7 + at.key * 3 + at.head) % 5 < 2 && at.key % 11 != 4 && at.query % 9 != 2;
  }
};

/// Only a few keys are seen by anyone: runs with holes are gathered.
struct EverySeventhKey {
  bool allows(Position at) const { return at.key % 7 == 3 && at.key <= at.query; }
};

/// Sees every third key before the query; queries 0 … 3 and multiples of 10 see nothing.
struct Sparse {
  bool allows(Position at) const {
    return at.key <= at.query && at.key % 3 == 1 && at.query > 3 && at.query % 10 != 0;
  }
};

/// All keys but the first ones, known by the tile.
struct NotTheFirst {
  Index count;
  bool allows(Position at) const { return at.key >= count; }
  Coverage coverage(Tile tile) const {
    if (tile.last_key < count) return Coverage::none;
    return tile.first_key >= count ? Coverage::full : Coverage::partial;
  }
};

struct First {
  Index count;
  bool allows(Position at) const { return at.key < count; }
};

/// Calls check(shape, mask, seed) for shapes on and beside the edges of tiles, the last with `keys`
/// keys, under four masks.
template <class Check>
void for_each_shape_and_mask(Index keys, const Check& check) {
  const std::vector<Shape> shapes = {
      {1, 1, 1, 1, 1, 1, 1},       {1, 1, 1, 5, 7, 3, 2},      {2, 4, 2, 17, 33, 8, 5},
      {1, 2, 1, 64, 96, 16, 16},   {1, 1, 1, 65, 97, 17, 31},  {2, 2, 2, 63, 95, 33, 6},
      {1, 3, 1, 130, 200, 12, 64}, {1, 2, 2, 100, 40, 70, 72}, {1, 1, 1, 33, keys, 9, 7},
  };
  std::uint64_t seed = 1;
  for (const Shape& shape : shapes) {
    check(shape, masks::Full{}, ++seed);
    check(shape, masks::Causal{}, ++seed);
    check(shape, Irregular{}, ++seed);
    check(shape, EverySeventhKey{}, ++seed);
  }
}

/// Calls check(mask) for each mask of the catalogue with `picks` (four at most) others drawn by
/// `seed`, joined in as many ways.
template <class Check>
void for_each_pair_of_masks(Index length, std::uint64_t seed, int picks, const Check& check) {
  std::vector<std::pair<std::string, Mask>> masks;
  for_each_mask(length,
                [&](const auto& named) { masks.emplace_back(named.name, Mask(named.mask)); });
  std::mt19937_64 bits(seed);
  for (const auto& [name, a] : masks) {
    for (int pick = 0; pick < picks; ++pick) {
      const auto& [other, b] = masks[bits() % masks.size()];
      SCOPED_TRACE(name + " with " + other);
      check(pick == 0   ? Mask(a & b)
            : pick == 1 ? Mask(a | b)
            : pick == 2 ? Mask(~a & b)
                        : Mask(a & ~b));
    }
  }
}

/// Calls check(poisoned, poison) with each poison in the keys and values that no query of the
/// first head sees.
template <class In, class M, class Check>
void for_each_poison_where_masked(const Shape& shape, const In& clean, const M& mask,
                                  const Check& check) {
  using T = std::remove_cvref_t<decltype(clean.keys(0, 0, 0, 0))>;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, 1e38f}) {
    In in = clean;
    for (Index key = 0; key < shape.keys; ++key) {
      bool seen = false;
      for (Index q = 0; q < shape.queries; ++q) {
        seen = seen || allows(mask, {0, 0, q + shape.keys - shape.queries, key});
      }
      if (seen) continue;
      for (Index d = 0; d < shape.head_dim; ++d) in.keys(0, 0, key, d) = T(poison);
      for (Index d = 0; d < shape.value_dim; ++d) in.values(0, 0, key, d) = T(poison);
    }
    check(in, poison);
  }
}

}  // namespace heed::test
