// SPDX-License-Identifier: MIT
#include <heed/training/train.hpp>

#include <gtest/gtest.h>

#include <map>

namespace heed {
namespace {

std::vector<Index> flat(const std::vector<std::vector<Index>>& batches) {
  std::vector<Index> items;
  for (const auto& batch : batches) items.insert(items.end(), batch.begin(), batch.end());
  return items;
}

TEST(Batches, EveryItemOnceAndTheLastPartialBatchKept) {
  const std::vector<Index> lengths(103, 5);
  for (const bool shuffle : {false, true}) {
    const auto batches = make_batches(lengths, 0, {.batch_size = 10, .shuffle = shuffle});
    ASSERT_EQ(batches.size(), 11u);
    EXPECT_EQ(batches.back().size(), 3u);
    auto items = flat(batches);
    EXPECT_EQ(std::is_sorted(items.begin(), items.end()), !shuffle);
    std::sort(items.begin(), items.end());
    for (Index i = 0; i < 103; ++i) EXPECT_EQ(items[static_cast<std::size_t>(i)], i);
  }
  EXPECT_TRUE(make_batches({}, 0).empty());
}

TEST(Batches, EpochsAndSeedsDifferAndRepeat) {
  const std::vector<Index> lengths(100, 1);
  const auto first = make_batches(lengths, 3, {.seed = 5});
  EXPECT_EQ(make_batches(lengths, 3, {.seed = 5}), first);
  EXPECT_NE(make_batches(lengths, 4, {.seed = 5}), first);
  EXPECT_NE(make_batches(lengths, 3, {.seed = 6}), first);
}

TEST(Batches, EveryOrderIsEquallyLikely) {
  std::map<std::vector<Index>, int> counts;
  const std::vector<Index> lengths(3, 1);
  for (Index epoch = 0; epoch < 6000; ++epoch) {
    ++counts[flat(make_batches(lengths, epoch, {.seed = 1}))];
  }
  ASSERT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.) * (count - 1000.) / 1000;
  EXPECT_LT(chi_square, 20.5) << "0.1 % of the chi-square distribution of 5 degrees of freedom";
}

TEST(Batches, BucketsPutLikeLengthsTogether) {
  std::vector<Index> lengths;
  Random random(1);
  for (int i = 0; i < 1000; ++i) lengths.push_back(1 + random.integer(100));
  const auto padded = [&](Index buckets) {
    Index tokens = 0;
    const auto batches = make_batches(lengths, 0, {.batch_size = 16, .bucket_batches = buckets});
    auto items = flat(batches);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(std::unique(items.begin(), items.end()), items.end());
    EXPECT_EQ(items.size(), 1000u);
    for (const auto& batch : batches) {
      Index longest = 0;
      for (const Index item : batch) {
        longest = std::max(longest, lengths[static_cast<std::size_t>(item)]);
      }
      tokens += longest * static_cast<Index>(batch.size());
    }
    return tokens;
  };
  const Index real = std::accumulate(lengths.begin(), lengths.end(), Index{0});
  EXPECT_GT(padded(0), real * 17 / 10);
  EXPECT_LT(padded(20), real * 12 / 10);
}

TEST(Batches, NextTokensPaddedToTheLongest) {
  const std::vector<std::vector<Index>> sequences = {{1, 2, 3, 4}, {5}, {6, 7}};
  const std::vector<Index> chosen = {2, 0, 1};
  const auto batch = next_token_batch(sequences, chosen, {.padding = 9});
  ASSERT_EQ(batch.tokens.extents(), (Extents<2>{3, 3}));
  const Index tokens[] = {6, 9, 9, 1, 2, 3, 9, 9, 9};
  const Index targets[] = {7, -100, -100, 2, 3, 4, -100, -100, -100};
  for (Index i = 0; i < 9; ++i) {
    EXPECT_EQ(batch.tokens.data()[i], tokens[i]);
    EXPECT_EQ(batch.targets.data()[i], targets[i]);
  }
  EXPECT_EQ(batch.lengths, (std::vector<Index>{1, 3, 0}));
}

TEST(Batches, WindowsOfAText) {
  std::vector<Index> text(20);
  for (std::size_t i = 0; i < 20; ++i) text[i] = static_cast<Index>(i);
  Random random(3);
  const auto batch = random_windows(text, 200, 4, random);
  Index first = 99, last = 0;
  for (Index row = 0; row < 200; ++row) {
    first = std::min(first, batch.tokens(row, 0));
    last = std::max(last, batch.targets(row, 3));
    for (Index i = 0; i < 4; ++i) {
      EXPECT_EQ(batch.tokens(row, i), batch.tokens(row, 0) + i);
      EXPECT_EQ(batch.targets(row, i), batch.tokens(row, i) + 1);
    }
  }
  EXPECT_EQ(first, 0);
  EXPECT_EQ(last, 19);
}

TEST(Batches, Refuse) {
  const std::vector<Index> lengths(3, 1);
  EXPECT_THROW(make_batches(lengths, 0, {.batch_size = 0}), InvalidArgument);
  EXPECT_THROW(make_batches(lengths, 0, {.bucket_batches = -1}), InvalidArgument);
  const std::vector<std::vector<Index>> sequences = {{1, 2}, {}};
  EXPECT_THROW(next_token_batch(sequences, std::vector<Index>{2}), InvalidArgument);
  EXPECT_THROW(next_token_batch(sequences, std::vector<Index>{-1}), InvalidArgument);
  EXPECT_THROW(next_token_batch(sequences, std::vector<Index>{1}), InvalidArgument);
  Random random(1);
  EXPECT_THROW(random_windows(lengths, 1, 3, random), InvalidArgument);
  EXPECT_THROW(random_windows(lengths, 1, 0, random), InvalidArgument);
}

}  // namespace
}  // namespace heed
