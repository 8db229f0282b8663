// SPDX-License-Identifier: MIT
#pragma once

#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <heed/masks.hpp>

namespace heed::test {

/// A mask with its name and whether its coverage is exact for every tile (docs/contract.md).
template <class M>
struct NamedMask {
  std::string name;
  bool exact;
  M mask;
};
template <class M>
NamedMask(const char*, bool, M) -> NamedMask<M>;

/// A user's mask with nothing but a meaning.
struct EveryOther {
  bool allows(Position at) const { return (at.query - at.key) % 2 == 0; }
};

/// A user's mask with nothing but runs of keys, five queries a step; those of odd steps are empty.
struct Steps {
  KeyRange keys(Position at) const {
    const Index step = (at.query + 500) / 5;
    return {(step + 1) / 2 * 8 - 400 + at.batch, step / 2 * 8 - 395};
  }
};

inline bool irregular(Index a, Index b) { return (a * 7 + b * 5 + a * b) % 3 == 0; }

/// One or more of every policy, for a batch of 2, 2 heads and sequences of `length` (queries and
/// keys alike; arrays are that long, or `partial`).
inline auto mask_catalogue(Index length) {
  using namespace masks;
  std::vector<Index> groups, special;
  for (Index i = 0; i < length; ++i) groups.push_back(i * i % 5 / 2);
  for (Index i = 2; i < length; i += 5) special.push_back(i);
  const auto bits = [](Index item, Index head, Index row, Index key) {
    return irregular(row + item, key + head) || (row > 5 && key < 4);
  };
  return std::tuple{
      NamedMask{"Full", true, Full{}},
      NamedMask{"Causal", true, Causal{}},
      NamedMask{"SlidingWindow 3 0", true, SlidingWindow{.left = 3, .right = 0}},
      NamedMask{"SlidingWindow 0 2", true, SlidingWindow{.left = 0, .right = 2}},
      NamedMask{"SlidingWindow open 4", true, SlidingWindow{.left = unbounded, .right = 4}},
      NamedMask{"SlidingWindow huge", true,
                SlidingWindow{.left = 2, .right = std::numeric_limits<Index>::max()}},
      NamedMask{"last_n 5", true, last_n(5)},
      NamedMask{"first_n 4", true, first_n(4)},
      NamedMask{"Padding", true, Padding({length / 2, length - 3})},
      NamedMask{"Padding both sides", true, Padding({3, 0}, {length - 2, 0})},
      NamedMask{"ValidKeys", true,
                ValidKeys(2, length, [](Index item, Index key) { return (key + item) % 4 != 1; })},
      NamedMask{"Prefix", true, Prefix(6)},
      NamedMask{"Prefix each", true, Prefix(std::vector<Index>{0, 9})},
      NamedMask{"Chunked", true, Chunked{5}},
      NamedMask{"Strided", true, Strided{4}},
      NamedMask{"Strided 1", true, Strided{1}},
      NamedMask{"EveryNthKey", true, EveryNthKey{6}},
      NamedMask{"Segments", true, partial(Segments({0, 4, 4, 11, length - 2}))},
      NamedMask{"Groups", false, Groups(groups)},
      NamedMask{"consecutive_groups", true, consecutive_groups({5, 8, 6, length - 19})},
      NamedMask{"BlockSparse", true, partial(BlockSparse(6, 6, 4, irregular))},
      NamedMask{"Dense", true, Dense({2, 2, length, length}, bits)},
      NamedMask{"Dense broadcast", true, Dense({1, 1, 1, length}, bits)},
      NamedMask{"GlobalTokens", true, GlobalTokens(special)},
      NamedMask{"MaskedToken", true, MaskedToken(special)},
      NamedMask{"Tree", false, partial(Tree(8, {-1, 0, 0, 1, 1, 2, -1, 6, 3, 3, 9}))},
      NamedMask{"GridNeighborhood", false, partial(GridNeighborhood{4, 5, 1})},
      NamedMask{"PerHead", true, PerHead({Causal{}, last_n(2)})},
      NamedMask{"predicate of two", false,
                predicate([](Index query, Index key) { return (query ^ key) % 3 == 0; })},
      NamedMask{"predicate of a position", false, predicate([](Position at) {
                  return (at.query + at.key + at.head + at.batch) % 3 != 0;
                })},
      NamedMask{"predicate with captures and coverage", true,
                predicate([groups](Index, Index key) { return key < std::ssize(groups) / 2; },
                          [half = length / 2](Tile tile) {
                            return tile.last_key < half    ? Coverage::full
                                   : tile.first_key < half ? Coverage::partial
                                                           : Coverage::none;
                          })},
      NamedMask{"a user's mask", false, EveryOther{}},
      NamedMask{"a user's runs of keys", true, Steps{}},
  };
}

/// visit(named mask) for each of the catalogue.
template <class Visit>
void for_each_mask(Index length, Visit visit) {
  std::apply([&](const auto&... named) { (visit(named), ...); }, mask_catalogue(length));
}

}  // namespace heed::test
