// SPDX-License-Identifier: MIT
#include <heed/masks/describe.hpp>

#include <gtest/gtest.h>

#include <string>

#include <heed/masks/combine.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/masks/mask.hpp>
#include <heed/masks/sparse.hpp>

namespace heed::masks {
namespace {

TEST(Describe, DrawsAndCounts) {
  EXPECT_EQ(describe(Causal{}, {.queries = 3, .keys = 4}, "x", "."),
            "xx..\nxxx.\nxxxx\n"
            "9 of 12 scores visible (75.0 %); tiles of 64 x 96: 0 full, 1 partial, 0 skipped\n");
  EXPECT_EQ(describe(Causal{}, 2, 3, ascii_on, ascii_off).substr(0, 12), "# # .\n# # #\n");
  EXPECT_EQ(describe([](Index, Index key) { return key == 1; }, 1, 2, "x", ".").substr(0, 3),
            ".x\n");
  EXPECT_EQ(describe(Causal{}, 0, 0).substr(0, 8), "0 of 0 s");
}

TEST(Describe, StatisticsOfTiles) {
  const auto counts =
      statistics(Causal{}, {.queries = 8, .keys = 8, .tile_queries = 4, .tile_keys = 4});
  EXPECT_EQ(counts.visible, 36);
  EXPECT_EQ(counts.tiles_none, 1);
  EXPECT_EQ(counts.tiles_full, 1);
  EXPECT_EQ(counts.tiles_partial, 2);
  EXPECT_DOUBLE_EQ(counts.computed_share(), 0.75);
  EXPECT_EQ(statistics(Causal{}, 8, 8).visible, 36);
}

TEST(Describe, RefusesSizesThatAreNone) {
  EXPECT_THROW(describe(Causal{}, 5, -2), InvalidArgument);
  EXPECT_THROW(statistics(Causal{}, {.tile_keys = 0}), InvalidArgument);
}

TEST(Describe, RefusesWhatDoesNotFit) {
  EXPECT_THROW(describe(Strided{0}, 5, 5), InvalidArgument) << "was a division by 0";
  EXPECT_THROW(describe(Segments({0, 4}), 5, 5), ShapeError);
  EXPECT_NE(describe(partial(Segments({0, 4})), 5, 5), "");
  EXPECT_NE(describe(Padding({3, 4, 5}), {.queries = 5, .keys = 5, .batch = 2}), "");
}

TEST(Describe, RefusesRangesThatMoveBack) {
  struct MovesBack {
    KeyRange keys(Position at) const { return {0, 9 - at.query}; }
  };
  const auto message = [] {
    try {
      describe(MovesBack{}, 4, 9);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(),
            "mask: keys {0, 3} of query 6 behind {0, 4} of the query before it; neither end may "
            "move back");
  EXPECT_THROW(statistics(MovesBack{}, {.queries = 2, .keys = 2}), InvalidArgument);
}

}  // namespace
}  // namespace heed::masks
