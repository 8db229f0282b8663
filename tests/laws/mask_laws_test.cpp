// SPDX-License-Identifier: MIT
#include "laws/mask_laws.hpp"

#include <gtest/gtest-spi.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/mask_catalogue.hpp"

namespace heed::laws {
namespace {

constexpr Index length = 23;

TEST(MaskLaws, EveryPolicy) {
  test::for_each_mask(length, [](const auto& named) {
    for (const Index first_query : {0, 3, -7, -40}) {
      for (const Index which : {0, 1}) {
        const Plane plane{.first_query = first_query, .batch = which, .head = which};
        check_mask_laws(named.mask, named.name, plane, named.exact);
        check_mask_laws(~named.mask, "not " + named.name, plane, named.exact);
      }
    }
  });
}

TEST(MaskLaws, PastTheArraysOfAMask) {
  // More queries and keys than the mask has arrays for, and no such item or head: no law breaks
  // and nothing outside the arrays is read (which a sanitizer run sees).
  test::for_each_mask(length, [](const auto& named) {
    for (const Index first_query : {0, 11, -9}) {
      for (const Index which : {1, 9}) {
        const Plane plane{40, 37, first_query, which, which};
        check_mask_laws(named.mask, named.name, plane);
        check_mask_laws(~named.mask, "not " + named.name, plane);
      }
    }
  });
}

TEST(MaskLaws, WholeBlocksOfSixtyFourQueries) {
  test::for_each_mask(150, [](const auto& named) {
    for (const Index first_query : {0, -70}) {
      SCOPED_TRACE(named.name + ", first query " + std::to_string(first_query));
      check_lane_words(named.mask, Plane{150, 100, first_query, 1, 1});
      check_lane_words(named.mask & masks::last_n(70), Plane{150, 100, first_query});
      check_lane_words(masks::Chunked{33} | ~named.mask, Plane{150, 100, first_query});
    }
  });
}

/// A joined mask means `expected` and keeps the laws, also negated; its coverage is exact where
/// that of both parts is, and they do not ask every score.
template <MaskPolicy M>
void check_joined(const M& mask, const Plane& plane, const Bits& expected, bool exact) {
  const Answers answers(mask, plane);
  EXPECT_TRUE(answers == Answers(plane, expected));
  check_coverage(mask, plane, exact);
  check_coverage(~mask, plane, exact);
  check_lane_words(mask, plane);
  check_lane_words(~mask, plane);
}

/// `a & b` and `a | b` against the answers of a and b, as one erased type to spare the compiler.
void check_pair(const Mask& a, const Mask& b, const Plane& plane, bool exact) {
  Bits both, either;
  for (Index query = plane.first_query; query < plane.first_query + plane.queries; ++query) {
    for (Index key = 0; key < plane.keys; ++key) {
      const Position at{plane.batch, plane.head, query, key};
      both.push_back(a.allows(at) && b.allows(at));
      either.push_back(a.allows(at) || b.allows(at));
    }
  }
  check_joined(a & b, plane, both, exact);
  check_joined(a | b, plane, either, exact);
  EXPECT_TRUE(Answers(b & a, plane) == Answers(plane, both));
  EXPECT_TRUE(Answers(b | a, plane) == Answers(plane, either));
  EXPECT_TRUE(Answers(~(a | b), plane) == Answers(~a & ~b, plane));
  EXPECT_TRUE(Answers(~(a & b), plane) == Answers(~a | ~b, plane));
}

TEST(MaskLaws, EveryPairUnderAndAndOr) {
  struct Named {
    std::string name;
    Mask mask;
    bool exact;
  };
  std::vector<Named> masks;
  test::for_each_mask(length, [&](const auto& named) {
    masks.push_back({named.name, named.mask, named.exact && !asks_every_score(named.mask)});
  });
  const Plane planes[] = {{.batch = 1, .head = 1}, {.first_query = 3}, {.first_query = -7}};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (std::size_t j = i; j < masks.size(); ++j) {
      for (std::size_t k = i + j; k < i + j + 2; ++k) {  // two of them each: time
        const Plane& plane = planes[k % std::size(planes)];
        SCOPED_TRACE(masks[i].name + " with " + masks[j].name + ", first query " +
                     std::to_string(plane.first_query));
        check_pair(masks[i].mask, masks[j].mask, plane, masks[i].exact && masks[j].exact);
      }
    }
  }
}

/// Tiles of 64 queries by 96 keys, as kernels cut 2048 of each.
template <MaskPolicy M>
void check_tiles(const M& mask) {
  const Plane plane{2048, 2048};
  const Answers answers(mask, plane);
  Index open = 0;
  for (Index query = 0; query < plane.queries; query += 64) {
    for (Index key = 0; key < plane.keys; key += 96) {
      const Tile tile{0, 0, query, query + 63, key, std::min(key + 95, plane.keys - 1)};
      const Coverage truth = answers.coverage(tile), said = coverage_of(mask, tile);
      open += said != truth;
    }
  }
  EXPECT_EQ(open, 0) << "tiles are none or full but called partial";
}

TEST(MaskLaws, CombinedRunsOfKeysLeaveNoTileOpen) {
  using namespace masks;
  std::vector<Index> texts = {0}, others = {0};
  while (texts.back() < 2048) texts.push_back(std::min<Index>(texts.back() + 97, 2048));
  while (others.back() < 2048) others.push_back(std::min<Index>(others.back() + 131, 2048));
  check_tiles(last_n(300) & ~last_n(200));
  check_tiles(Segments(texts) & ~Segments(others));
  check_tiles(Prefix(500) & ~Causal{});
  check_tiles(Causal{} & (Segments(texts) | ~last_n(400)));
  check_tiles(Mask(last_n(300)) & ~Mask(last_n(200)));
  check_tiles(Segments(texts) & Causal{} & last_n(40));
}

TEST(MaskLaws, OfAUsersMask) {
  // [laws]
  struct EveryOther {
    bool allows(Position at) const { return (at.query - at.key) % 2 == 0; }
  };
  heed::laws::check_mask_laws(EveryOther{}, "every other");
  heed::laws::check_mask_laws(EveryOther{} & masks::Causal{}, "every other before");
  // [/laws]
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

struct SecretHeads {
  static constexpr bool depends_on_head = false;
  bool allows(Position at) const { return at.key < at.head; }
};

TEST(MaskLaws, AWrongMaskIsCaught) {
  EXPECT_NONFATAL_FAILURE(check_coverage(Overpromising{}, Plane{}, false), "contradicts allows");
  EXPECT_NONFATAL_FAILURE(check_coverage(~Overpromising{}, Plane{}, false), "said none, is");
  EXPECT_NONFATAL_FAILURE(check_coverage(test::EveryOther{}, Plane{}, true), "called partial");
  EXPECT_NONFATAL_FAILURE(check_lane_words(WrongLanes{}, Plane{}), "contradict allows");
  EXPECT_NONFATAL_FAILURE(check_mask_laws(SecretHeads{}, "secret", Plane{.head = 1}),
                          "depends on the head");
}

}  // namespace
}  // namespace heed::laws
