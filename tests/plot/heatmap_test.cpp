// SPDX-License-Identifier: MIT
#include <heed/plot/heatmap.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

Tensor<float, 2> counting(Index rows, Index columns) {
  Tensor<float, 2> tensor({rows, columns});
  for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<float>(i);
  return tensor;
}

TEST(Heatmap, OfAnyView) {
  const auto matrix = counting(2, 3);
  const Heatmap heatmap = heatmap_of(matrix.view().permute({1, 0}), {"a", "b", "c"}, "title");
  ASSERT_EQ(heatmap.values.extents(), (Extents<2>{3, 2}));
  EXPECT_EQ(heatmap.values(2, 1), 5);
  EXPECT_EQ(heatmap.row_labels.size(), 3u);
  EXPECT_TRUE(heatmap.column_labels.empty()) << "three labels do not name two columns";
  EXPECT_EQ(heatmap.title, "title");
  EXPECT_EQ(heatmap_of(counting(2, 2), {"a", "b"}).column_labels.size(), 2u);
  EXPECT_THROW(heatmap_of(matrix, {"a", "b", "c"}), ShapeError);
}

TEST(Heatmap, RangeOfTheFiniteValues) {
  auto matrix = counting(2, 3);
  matrix(0, 0) = NAN;
  matrix(1, 2) = INFINITY;
  Heatmap heatmap = heatmap_of(matrix);
  fit_range(heatmap);
  EXPECT_EQ(heatmap.low, 1);
  EXPECT_EQ(heatmap.high, 4);
  Heatmap both[] = {heatmap, heatmap_of(counting(1, 9))};
  fit_range(both);
  EXPECT_EQ(both[0].low, 0) << "a color means the same in all of them";
  EXPECT_EQ(both[0].high, 8);
  EXPECT_EQ(both[1].high, 8);
  Heatmap empty;
  fit_range(empty);
  EXPECT_EQ(empty.high, 1);
}

TEST(Heatmap, LabelsAndRangesThatDoNotFitAreRefused) {
  Heatmap heatmap = heatmap_of(counting(2, 3));
  EXPECT_NO_THROW(detail::check_heatmap(heatmap));
  heatmap.column_labels = {"a", "b"};
  try {
    detail::check_heatmap(heatmap);
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "heatmap: 2 column labels for 3 columns");
  }
  heatmap.column_labels.clear();
  for (const auto& [low, high] : {std::pair{1., 0.},
                                  {0., NAN},
                                  {0., INFINITY},
                                  {-1e308, 1e308},
                                  {INFINITY, INFINITY},
                                  {-INFINITY, -INFINITY}}) {
    heatmap.low = low;
    heatmap.high = high;
    EXPECT_THROW(detail::check_heatmap(heatmap), InvalidArgument) << low << " " << high;
  }
}

TEST(Heatmap, Shares) {
  Heatmap heatmap;
  heatmap.low = -1;
  heatmap.high = 3;
  EXPECT_EQ(detail::share_of(heatmap, -1), 0);
  EXPECT_EQ(detail::share_of(heatmap, 1), 0.5);
  EXPECT_EQ(detail::share_of(heatmap, 7), 2);
  EXPECT_TRUE(std::isnan(detail::share_of(heatmap, NAN)));
  heatmap.colors = ColorMap::diverging;
  EXPECT_EQ(detail::share_of(heatmap, 0), 0.5);
  EXPECT_EQ(detail::share_of(heatmap, -3), 0);
  heatmap.low = heatmap.high = 0;
  EXPECT_EQ(detail::share_of(heatmap, 0), 0.5);
  heatmap.colors = ColorMap::viridis;
  heatmap.low = heatmap.high = 3;
  EXPECT_EQ(detail::share_of(heatmap, 5), 0);
}

TEST(Heatmap, ShrunkToMeans) {
  auto matrix = counting(3, 5);  // 0 1 2 3 4 / 5 6 7 8 9 / 10 11 12 13 14
  matrix(0, 0) = NAN;
  matrix(2, 4) = NAN;
  const Heatmap small = detail::shrunk(heatmap_of(matrix, {"a", "b", "c"}, "t"), 2, 2);
  ASSERT_EQ(small.values.extents(), (Extents<2>{2, 3}));
  EXPECT_EQ(small.values(0, 0), (1. + 5 + 6) / 3);
  EXPECT_EQ(small.values(0, 2), (4. + 9) / 2);
  EXPECT_EQ(small.values(1, 0), (10. + 11) / 2);
  EXPECT_TRUE(std::isnan(small.values(1, 2)));
  EXPECT_TRUE(small.row_labels.empty());
  EXPECT_EQ(small.title, "t");
  Heatmap ranged = heatmap_of(matrix);
  ranged.low = -2;
  ranged.high = 20;
  EXPECT_EQ(detail::shrunk(ranged, 2, 2).low, -2);
  EXPECT_EQ(detail::shrunk(ranged, 2, 2).high, 20);
  ranged.values(0, 1) = ranged.values(1, 0) = -INFINITY;
  EXPECT_EQ(detail::shrunk(ranged, 2, 2).values(0, 0), 6) << "the only one that is not masked";
  ranged.values(1, 1) = -INFINITY;
  EXPECT_EQ(detail::shrunk(ranged, 2, 2).values(0, 0), -INFINITY);
  ranged = heatmap_of(counting(3, 5));
  ranged.categories = {"off", "on"};
  EXPECT_EQ(detail::shrunk(ranged, 3, 2).values(0, 0), 11) << "the most";
  EXPECT_EQ(detail::shrunk_note(ranged, 3, 2), "a cell is the most of 3 x 2");
}

}  // namespace
}  // namespace heed
