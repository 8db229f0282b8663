// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/training/train.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace heed {

HEED_INLINE std::vector<std::vector<Index>> make_batches(const OwnedArray<Index>& lengths,
                                                         Index epoch, const BatchOptions& options) {
  if (options.batch_size < 1 || options.bucket_batches < 0) {
    throw_invalid_argument("make_batches: batch_size ", options.batch_size, ", bucket_batches ",
                           options.bucket_batches, "; expected 1 or more, 0 or more");
  }
  std::vector<Index> items(lengths.size());
  std::iota(items.begin(), items.end(), Index{0});
  Random random(options.seed, static_cast<std::uint64_t>(epoch));
  if (options.shuffle) detail::shuffle(items, random);
  const auto size = static_cast<std::size_t>(options.batch_size);
  if (options.bucket_batches > 0) {
    std::vector<Index> place(items.size());  // items of one length keep their order
    for (std::size_t i = 0; i < items.size(); ++i) {
      place[static_cast<std::size_t>(items[i])] = static_cast<Index>(i);
    }
    const auto key = [&](Index item) {
      const auto i = static_cast<std::size_t>(item);
      return std::pair(lengths[i], place[i]);
    };
    const auto batches = static_cast<std::size_t>(options.bucket_batches);
    const std::size_t window = batches <= items.size() / size ? size * batches : items.size();
    for (std::size_t begin = 0; begin < items.size(); begin += window) {
      const auto end = std::min(items.size(), begin + window);
      std::sort(items.begin() + static_cast<Index>(begin), items.begin() + static_cast<Index>(end),
                [&](Index a, Index b) { return key(a) < key(b); });
    }
  }
  std::vector<std::vector<Index>> batches;
  for (std::size_t begin = 0; begin < items.size(); begin += size) {
    const auto end = std::min(items.size(), begin + size);
    batches.emplace_back(items.begin() + static_cast<Index>(begin),
                         items.begin() + static_cast<Index>(end));
  }
  if (options.shuffle && options.bucket_batches > 0) detail::shuffle(batches, random);
  return batches;
}

HEED_INLINE TokenBatch next_token_batch(std::span<const std::vector<Index>> sequences,
                                        const OwnedArray<Index>& chosen, const PaddingTokens& pad) {
  TokenBatch batch;
  Index longest = 0;
  for (const Index item : chosen) {
    if (item < 0 || item >= static_cast<Index>(sequences.size())) {
      throw_invalid_argument("next_token_batch: sequence ", item, " of ", sequences.size());
    }
    const auto length = static_cast<Index>(sequences[static_cast<std::size_t>(item)].size()) - 1;
    if (length < 0) throw_invalid_argument("next_token_batch: sequence ", item, " has no tokens");
    batch.lengths.push_back(length);
    longest = std::max(longest, length);
  }
  const auto rows = static_cast<Index>(chosen.size());
  batch.tokens = Tensor<Index, 2>({rows, longest});
  batch.targets = Tensor<Index, 2>({rows, longest});
  std::fill(batch.tokens.begin(), batch.tokens.end(), pad.padding);
  std::fill(batch.targets.begin(), batch.targets.end(), pad.ignored);
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    const auto& sequence = sequences[static_cast<std::size_t>(chosen[row])];
    for (Index i = 0; i < batch.lengths[row]; ++i) {
      batch.tokens(row, i) = sequence[static_cast<std::size_t>(i)];
      batch.targets(row, i) = sequence[static_cast<std::size_t>(i + 1)];
    }
  }
  return batch;
}

HEED_INLINE TokenBatch random_windows(std::span<const Index> text, Index count, Index length,
                                      Random& random) {
  const auto token = [&](Index place) { return text[static_cast<std::size_t>(place)]; };
  return detail::draw_windows(text.size(), token, count, length, random);
}

HEED_INLINE TokenBatch detail::draw_windows(std::size_t size, FunctionRef<Index(Index)> token,
                                            Index count, Index length, Random& random) {
  const Index places = length < 1 ? 0 : static_cast<Index>(size) - length;
  if (count < 0 || places < 1) {
    throw_invalid_argument("random_windows: ", count, " stretches of ", length,
                           " tokens and a target from ", size,
                           " tokens; expected 0 stretches or more, of 1 token or more");
  }
  TokenBatch batch{Tensor<Index, 2>({count, length}), Tensor<Index, 2>({count, length}),
                   std::vector<Index>(static_cast<std::size_t>(count), length)};
  for (Index row = 0; row < count; ++row) {
    const Index begin = random.integer(places);
    for (Index i = 0; i < length; ++i) {
      batch.tokens(row, i) = token(begin + i);
      batch.targets(row, i) = token(begin + i + 1);
    }
  }
  return batch;
}

HEED_INLINE double detail::seconds_now() {
  std::timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace heed
