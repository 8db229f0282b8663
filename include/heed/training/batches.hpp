// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// How items are put into batches.
struct BatchOptions {
  Index batch_size = 32;
  bool shuffle = true;
  std::uint64_t seed = 0;
  /// Items of like length together, so that little is padded: so many batches' worth of shuffled
  /// items are sorted by length before they are cut into batches. 0: not.
  Index bucket_batches = 0;
};

namespace detail {

/// Puts elements into a random order: Fisher and Yates.
template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1],
              values[static_cast<std::size_t>(random.integer(static_cast<Index>(i)))]);
  }
}

}  // namespace detail

/// The batches of one epoch, as numbers of the items whose lengths are given: every item in exactly
/// one batch, the last partial batch kept. A pure function of its arguments, so that a position in
/// the data is an epoch and a batch number. Throws InvalidArgument for a batch_size below 1 or
/// bucket_batches below 0.
inline std::vector<std::vector<Index>> make_batches(std::span<const Index> lengths, Index epoch,
                                                    const BatchOptions& options = {}) {
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
    const std::size_t window = size * static_cast<std::size_t>(options.bucket_batches);
    for (std::size_t begin = 0; begin < items.size(); begin += window) {
      const auto end = std::min(items.size(), begin + window);
      std::stable_sort(items.begin() + static_cast<Index>(begin),
                       items.begin() + static_cast<Index>(end), [&](Index a, Index b) {
                         return lengths[static_cast<std::size_t>(a)] <
                                lengths[static_cast<std::size_t>(b)];
                       });
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

/// Sequences side by side, padded to the longest, with the token that follows as the target of
/// each.
struct TokenBatch {
  Tensor<Index, 2> tokens;     // (batch, length)
  Tensor<Index, 2> targets;    // (batch, length); `ignored` behind the end of a sequence
  std::vector<Index> lengths;  // (batch): tokens that are not padding
};

/// What stands behind the end of a sequence.
struct PaddingTokens {
  Index padding = 0;
  Index ignored = -100;
};

/// Chosen sequences of n + 1 tokens as n tokens and n targets each. Throws InvalidArgument for a
/// number that is no sequence and for a sequence of no tokens.
inline TokenBatch next_token_batch(std::span<const std::vector<Index>> sequences,
                                   std::span<const Index> chosen, const PaddingTokens& pad = {}) {
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

/// `count` stretches of `length` + 1 tokens from anywhere in a text, as tokens and targets. Throws
/// InvalidArgument when the text is shorter than that.
inline TokenBatch random_windows(std::span<const Index> text, Index count, Index length,
                                 Random& random) {
  const Index places = static_cast<Index>(text.size()) - length;
  if (count < 0 || length < 1 || places < 1) {
    throw_invalid_argument("random_windows: ", count, " stretches of ", length, " + 1 tokens from ",
                           text.size());
  }
  TokenBatch batch{Tensor<Index, 2>({count, length}), Tensor<Index, 2>({count, length}),
                   std::vector<Index>(static_cast<std::size_t>(count), length)};
  for (Index row = 0; row < count; ++row) {
    const Index begin = random.integer(places);
    for (Index i = 0; i < length; ++i) {
      batch.tokens(row, i) = text[static_cast<std::size_t>(begin + i)];
      batch.targets(row, i) = text[static_cast<std::size_t>(begin + i + 1)];
    }
  }
  return batch;
}

}  // namespace heed
