// SPDX-License-Identifier: MIT
#include "laws/mask_laws.hpp"

#include <gtest/gtest-spi.h>

#include <utility>

#include "support/mask_catalogue.hpp"

namespace heed::laws {
namespace {

constexpr Index length = 23;

TEST(MaskLaws, EveryPolicy) {
  test::for_each_mask(length, [](const auto& named) {
    for (const Index first_query : {0, 3, -7}) {
      for (const Index which : {0, 1}) {
        const Plane plane{.first_query = first_query, .batch = which, .head = which};
        // The promise of exactness is about positions inside the sequence.
        check_mask_laws(named.mask, named.name, plane, named.exact && first_query >= 0);
        check_mask_laws(~named.mask, "not " + named.name, plane, named.exact && first_query >= 0);
      }
    }
  });
}

TEST(MaskLaws, WholeBlocksOfSixtyFourQueries) {
  test::for_each_mask(150, [](const auto& named) {
    SCOPED_TRACE(named.name);
    check_lane_words(named.mask, Plane{.queries = 150, .keys = 150});
  });
}

/// `a & b` and `a | b` against the answers of a and b, as one erased type to spare the compiler.
void check_pair(const Mask& a, const Mask& b, const std::string& name) {
  SCOPED_TRACE(name);
  const Plane plane{.batch = 1, .head = 1};
  const Answers first(a, plane), second(b, plane);
  const auto both = a & b;
  const auto either = a | b;
  Index wrong = 0, contradictions = 0;
  for (Index query = 0; query < plane.queries; ++query) {
    for (Index key = 0; key < plane.keys; ++key) {
      const Position at{1, 1, query, key};
      wrong += both.allows(at) != (first(query, key) && second(query, key));
      wrong += either.allows(at) != (first(query, key) || second(query, key));
    }
  }
  EXPECT_EQ(wrong, 0);
  const Answers all(both, plane), any(either, plane);
  for_each_tile(plane, [&](const Tile& tile) {
    const Coverage of_both = both.coverage(tile), of_either = either.coverage(tile);
    contradictions += of_both != Coverage::partial && of_both != all.coverage(tile);
    contradictions += of_either != Coverage::partial && of_either != any.coverage(tile);
  });
  EXPECT_EQ(contradictions, 0);
  check_lane_words(both, plane);
  check_lane_words(either, plane);
  EXPECT_TRUE(Answers(b & a, plane) == all);
  EXPECT_TRUE(Answers(b | a, plane) == any);
  EXPECT_TRUE(Answers(~(a | b), plane) == Answers(~a & ~b, plane));
}

TEST(MaskLaws, EveryPairUnderAndAndOr) {
  std::vector<std::pair<std::string, Mask>> masks;
  test::for_each_mask(length,
                      [&](const auto& named) { masks.emplace_back(named.name, named.mask); });
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (std::size_t j = i; j < masks.size(); ++j) {
      check_pair(masks[i].second, masks[j].second, masks[i].first + " with " + masks[j].first);
    }
  }
}

TEST(MaskLaws, AlgebraOfOneMask) {
  const Plane plane{.batch = 1, .head = 1};
  test::for_each_mask(length, [&](const auto& named) {
    SCOPED_TRACE(named.name);
    const Answers answers(named.mask, plane);
    EXPECT_TRUE(Answers(named.mask & named.mask, plane) == answers);
    EXPECT_TRUE(Answers(named.mask & masks::Full{}, plane) == answers);
    EXPECT_TRUE(Answers(named.mask | ~masks::Full{}, plane) == answers);
    EXPECT_TRUE(Answers(~~named.mask, plane) == answers);
    const auto written = masks::dense(named.mask, {2, 2, length, length}, 0);
    EXPECT_TRUE(Answers(written, plane) == answers) << "dense";
    check_mask_laws(written, "dense " + named.name, plane, true);
  });
}

struct Overpromising {
  bool allows(Position at) const { return at.key < at.query; }
  Coverage coverage(Tile) const { return Coverage::full; }
};
struct WrongLanes {
  bool allows(Position at) const { return at.key < at.query; }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index i = 0; i < tile.keys(); ++i) words[i] = 1;
  }
};

TEST(MaskLaws, AWrongMaskIsCaught) {
  EXPECT_NONFATAL_FAILURE(check_coverage(Overpromising{}, Plane{}, false), "contradicts allows");
  EXPECT_NONFATAL_FAILURE(check_lane_words(WrongLanes{}, Plane{}), "contradict allows");
}

}  // namespace
}  // namespace heed::laws
