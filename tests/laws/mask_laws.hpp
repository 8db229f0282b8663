// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heed/masks.hpp>
#include <heed/masks/detail/mask_ref.hpp>

// What every mask must obey, a user's too: include this, call check_mask_laws(mask, "name").

namespace heed::laws {

/// A plane of scores small enough to try every tile of.
struct Plane {
  Index queries = 20;
  Index keys = 23;
  Index first_query = 0;
  Index batch = 0;
  Index head = 0;
};

/// Answers, a byte each: laws read them more often than anything else.
using Bits = std::vector<std::uint8_t>;

/// The mask's answer for every score, asked once.
class Answers {
 public:
  template <MaskPolicy M>
  Answers(const M& mask, const Plane& plane) : Answers(plane, asked(mask, plane)) {}
  /// Row by row, as given.
  Answers(const Plane& plane, Bits bits) : plane_(plane), bits_(std::move(bits)) {
    seen_.resize(static_cast<std::size_t>((plane.queries + 1) * (plane.keys + 1)));
    for (Index row = 0; row < plane.queries; ++row) {
      for (Index key = 0; key < plane.keys; ++key) {
        seen(row + 1, key + 1) = seen(row, key + 1) + seen(row + 1, key) - seen(row, key) +
                                 ((*this)(plane.first_query + row, key) ? 1 : 0);
      }
    }
  }
  bool operator()(Index query, Index key) const {
    return bits_[static_cast<std::size_t>((query - plane_.first_query) * plane_.keys + key)] != 0;
  }
  /// The exact coverage of a tile.
  Coverage coverage(const Tile& tile) const {
    const Index top = tile.first_query - plane_.first_query, bottom = top + tile.queries();
    const Index left = tile.first_key, right = left + tile.keys();
    const Index count =
        seen(bottom, right) - seen(top, right) - seen(bottom, left) + seen(top, left);
    if (count == 0) return Coverage::none;
    return count == tile.queries() * tile.keys() ? Coverage::full : Coverage::partial;
  }
  friend bool operator==(const Answers& a, const Answers& b) { return a.bits_ == b.bits_; }

 private:
  template <MaskPolicy M>
  static Bits asked(const M& mask, const Plane& plane) {
    Bits bits;
    for (Index query = 0; query < plane.queries; ++query) {
      for (Index key = 0; key < plane.keys; ++key) {
        bits.push_back(allows(mask, {plane.batch, plane.head, plane.first_query + query, key}));
      }
    }
    return bits;
  }
  std::size_t corner(Index row, Index key) const {
    return static_cast<std::size_t>(row * (plane_.keys + 1) + key);
  }
  Index& seen(Index row, Index key) { return seen_[corner(row, key)]; }
  Index seen(Index row, Index key) const { return seen_[corner(row, key)]; }

  Plane plane_;
  Bits bits_;
  std::vector<Index> seen_;  // visible scores above and left of a corner
};

/// Calls visit(tile) for every tile of 1 … 9 queries by 1 … 9 keys of the plane.
template <class Visit>
void for_each_tile(const Plane& plane, Visit visit) {
  const Index end = plane.first_query + plane.queries;
  for (Index query = plane.first_query; query < end; ++query) {
    for (Index last_query = query; last_query < end && last_query < query + 9; ++last_query) {
      for (Index key = 0; key < plane.keys; ++key) {
        for (Index last_key = key; last_key < plane.keys && last_key < key + 9; ++last_key) {
          visit(Tile{plane.batch, plane.head, query, last_query, key, last_key});
        }
      }
    }
  }
}

/// A tile, what a mask said of it and what holds, for messages.
inline std::string words_for(const Tile& tile, Coverage said, Coverage truth) {
  const auto name = [](Coverage coverage) {
    return std::string(coverage == Coverage::none   ? "none"
                       : coverage == Coverage::full ? "full"
                                                    : "partial");
  };
  return "queries " + std::to_string(tile.first_query) + " … " + std::to_string(tile.last_query) +
         ", keys " + std::to_string(tile.first_key) + " … " + std::to_string(tile.last_key) +
         ": said " + name(said) + ", is " + name(truth);
}

/// Coverage never promises what `allows` does not hold. `exact`: it also always promises what
/// holds.
template <MaskPolicy M>
void check_coverage(const M& mask, const Plane& plane, bool exact) {
  const Answers answers(mask, plane);
  Index wrong = 0, vague = 0;
  std::string first_wrong, first_vague;
  for_each_tile(plane, [&](const Tile& tile) {
    const Coverage truth = answers.coverage(tile);
    const Coverage said = coverage_of(mask, tile);
    if (said == truth) return;
    const bool promised = said != Coverage::partial;
    if ((promised ? wrong : vague)++ == 0) {
      (promised ? first_wrong : first_vague) = words_for(tile, said, truth);
    }
  });
  EXPECT_EQ(wrong, 0) << "tiles whose coverage contradicts allows; first " << first_wrong;
  EXPECT_TRUE(!exact || vague == 0)
      << vague << " tiles are none or full but called partial; first " << first_vague;
}

/// Lane words say what `allows` says, for tiles of any height up to 64 and every place of keys.
template <MaskPolicy M>
void check_lane_words(const M& mask, const Plane& plane) {
  const Answers answers(mask, plane);
  const Index end = plane.first_query + plane.queries;
  std::vector<std::uint64_t> words(static_cast<std::size_t>(plane.keys));
  Index wrong = 0;
  for (Index first = plane.first_query; first < end; ++first) {
    for (const Index height : {1, 2, 7, 33, 64}) {
      const Index last = (first + height < end ? first + height : end) - 1;
      for (const Index key : {Index{0}, plane.keys / 3, plane.keys - 1}) {
        const Tile tile{plane.batch, plane.head, first, last, key, plane.keys - 1};
        fill_lane_words(mask, tile, words.data());
        for (Index k = key; k < plane.keys; ++k) {
          for (Index query = first; query <= last; ++query) {
            const std::uint64_t word = words[static_cast<std::size_t>(k - key)];
            wrong += ((word >> (query - first) & 1) != 0) != answers(query, k);
          }
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "lane bits that contradict allows";
}

/// A mask whose lane words come through MaskRef, as the kernels ask for them.
template <MaskPolicy M>
struct AsKernelsSeeIt {
  const M* mask;
  bool allows(Position at) const { return heed::allows(*mask, at); }
  void lane_words(Tile tile, std::uint64_t* words) const { MaskRef(*mask).lane_words(tile, words); }
};

/// All laws of one mask: coverage, lane words, that erasing it changes no answer, and that one
/// which says it does not depend on the head answers every head as it answers head 0.
template <MaskPolicy M>
void check_mask_laws(const M& mask, const std::string& name, const Plane& plane = {},
                     bool exact = false) {
  SCOPED_TRACE(name + ", first query " + std::to_string(plane.first_query) + ", batch " +
               std::to_string(plane.batch) + ", head " + std::to_string(plane.head));
  check_coverage(mask, plane, exact);
  check_lane_words(mask, plane);
  const Mask erased(mask);
  check_lane_words(erased, plane);
  check_lane_words(AsKernelsSeeIt<M>{&mask}, plane);
  EXPECT_TRUE(Answers(erased, plane) == Answers(mask, plane));
  Index different = 0;
  for_each_tile(plane, [&](const Tile& tile) {
    const Coverage coverage = coverage_of(mask, tile);
    different += erased.coverage(tile) != coverage || MaskRef(mask).coverage(tile) != coverage;
  });
  EXPECT_EQ(different, 0) << "tiles where the erased mask answers otherwise";
  EXPECT_EQ(erased.depends_on_head(), heed::depends_on_head(mask));
  if (!heed::depends_on_head(mask)) {
    Plane first_head = plane;
    first_head.head = 0;
    EXPECT_TRUE(Answers(mask, first_head) == Answers(mask, plane)) << "depends on the head";
  }
}

}  // namespace heed::laws
