// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <heed/masks.hpp>

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

/// The mask's answer for every score, asked once.
class Answers {
 public:
  template <MaskPolicy M>
  Answers(const M& mask, const Plane& plane) : plane_(plane) {
    for (Index query = 0; query < plane.queries; ++query) {
      for (Index key = 0; key < plane.keys; ++key) {
        bits_.push_back(mask.allows({plane.batch, plane.head, plane.first_query + query, key}));
      }
    }
  }
  bool operator()(Index query, Index key) const {
    return bits_[static_cast<std::size_t>((query - plane_.first_query) * plane_.keys + key)];
  }
  /// The exact coverage of a tile.
  Coverage coverage(const Tile& tile) const {
    bool some = false, all = true;
    for (Index query = tile.first_query; query <= tile.last_query; ++query) {
      for (Index key = tile.first_key; key <= tile.last_key; ++key) {
        ((*this)(query, key) ? some : all) = (*this)(query, key);
      }
    }
    return !some ? Coverage::none : all ? Coverage::full : Coverage::partial;
  }
  friend bool operator==(const Answers& a, const Answers& b) { return a.bits_ == b.bits_; }

 private:
  Plane plane_;
  std::vector<bool> bits_;
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

/// Coverage never promises what `allows` does not hold. `exact`: it also always promises what
/// holds.
template <MaskPolicy M>
void check_coverage(const M& mask, const Plane& plane, bool exact) {
  const Answers answers(mask, plane);
  Index wrong = 0, vague = 0;
  for_each_tile(plane, [&](const Tile& tile) {
    const Coverage truth = answers.coverage(tile);
    const Coverage said = coverage_of(mask, tile);
    wrong += said != Coverage::partial && said != truth;
    vague += said == Coverage::partial && truth != Coverage::partial;
  });
  EXPECT_EQ(wrong, 0) << "tiles whose coverage contradicts allows";
  EXPECT_TRUE(!exact || vague == 0) << vague << " tiles are none or full but called partial";
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

/// All laws of one mask: coverage, lane words, and that erasing it changes no answer.
template <MaskPolicy M>
void check_mask_laws(const M& mask, const std::string& name, const Plane& plane = {},
                     bool exact = false) {
  SCOPED_TRACE(name + ", first query " + std::to_string(plane.first_query) + ", batch " +
               std::to_string(plane.batch) + ", head " + std::to_string(plane.head));
  check_coverage(mask, plane, exact);
  check_lane_words(mask, plane);
  const Mask erased(mask);
  check_lane_words(erased, plane);
  EXPECT_TRUE(Answers(erased, plane) == Answers(mask, plane));
  Index different = 0;
  for_each_tile(plane, [&](const Tile& tile) {
    const Coverage coverage = coverage_of(mask, tile);
    different += erased.coverage(tile) != coverage || MaskRef(mask).coverage(tile) != coverage;
  });
  EXPECT_EQ(different, 0) << "tiles where the erased mask answers otherwise";
  EXPECT_EQ(erased.depends_on_head(), heed::depends_on_head(mask));
}

}  // namespace heed::laws
