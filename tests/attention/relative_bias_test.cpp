// SPDX-License-Identifier: MIT
#include <heed/attention/relative_bias.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(AlibiSlopes, AreThoseOfThePaper) {
  const auto eight = alibi_slopes(8);
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(eight[i], 1.f / static_cast<float>(2 << i));
  // Twelve heads: those of eight, then every second one of sixteen.
  const auto twelve = alibi_slopes<double>(12);
  EXPECT_DOUBLE_EQ(twelve[7], 1.0 / 256);
  EXPECT_DOUBLE_EQ(twelve[8], 0.70710678118654752);
  EXPECT_DOUBLE_EQ(twelve[11], 0.088388347648318447);
  EXPECT_TRUE(alibi_slopes(0).empty());
}

TEST(RelativeBuckets, AreThoseOfT5) {
  // transformers' T5Attention._relative_position_bucket, 32 buckets, distances to 128.
  const RelativeBuckets both;
  const RelativeBuckets causal{.bidirectional = false};
  const struct {
    Index distance, both, causal;
  } cases[] = {{-1000, 15, 31}, {-200, 15, 31}, {-129, 15, 31}, {-128, 15, 31}, {-127, 15, 31},
               {-100, 15, 30},  {-91, 15, 29},  {-90, 14, 29},  {-64, 14, 26},  {-63, 13, 26},
               {-46, 13, 24},   {-45, 12, 23},  {-32, 12, 21},  {-31, 11, 21},  {-23, 11, 18},
               {-22, 10, 18},   {-16, 10, 16},  {-15, 9, 15},   {-12, 9, 12},   {-11, 8, 11},
               {-9, 8, 9},      {-8, 8, 8},     {-7, 7, 7},     {-1, 1, 1},     {0, 0, 0},
               {1, 17, 0},      {5, 21, 0},     {7, 23, 0},     {8, 24, 0},     {9, 24, 0},
               {12, 25, 0},     {15, 25, 0},    {16, 26, 0},    {17, 26, 0},    {23, 27, 0},
               {31, 27, 0},     {32, 28, 0},    {64, 30, 0},    {91, 31, 0},    {100, 31, 0},
               {128, 31, 0},    {500, 31, 0}};
  for (const auto& at : cases) {
    EXPECT_EQ(both(at.distance), at.both) << at.distance;
    EXPECT_EQ(causal(at.distance), at.causal) << at.distance;
  }
}

TEST(RelativeBias, SpreadsATableByDistance) {
  Tensor<float, 2> table({32, 2});
  for (Index i = 0; i < table.size(); ++i) table.data()[i] = static_cast<float>(i);
  const auto spread = relative_bias(table);
  EXPECT_EQ(spread.extents(), (Extents<2>{2, 257}));
  const RelativeBuckets buckets;
  for (Index distance = -128; distance <= 128; ++distance) {
    EXPECT_EQ(spread(1, distance + 128), table(buckets(distance), 1));
  }
  EXPECT_EQ(buckets(-1000), buckets(-128));
  EXPECT_EQ(buckets(1000), buckets(128));
  EXPECT_THROW(relative_bias(Tensor<float, 2>({31, 2})), ShapeError);
  EXPECT_THROW(relative_bias(table, {.max_distance = 8}), InvalidArgument);
}

}  // namespace
}  // namespace heed
