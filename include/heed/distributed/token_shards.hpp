// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// The tokens first, …, end − 1.
struct TokenRange {
  Index first = 0;
  Index end = 0;

  Index count() const { return end - first; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

/// Which rank holds which tokens of a sequence: every token lies on one rank. A rank's tensors hold
/// its ranges one after another, in ascending order; a rank may hold none.
class TokenShards {
 public:
  /// The ranges of each rank, in ascending order. Throws InvalidArgument unless they cover the
  /// tokens 0, …, n − 1 once each.
  explicit TokenShards(std::vector<std::vector<TokenRange>> of_ranks)
      : of_ranks_(std::move(of_ranks)) {
    std::vector<TokenRange> all;
    for (auto& ranges : of_ranks_) {
      std::erase_if(ranges, [](const TokenRange& range) { return range.first == range.end; });
      Index end = 0;
      for (const TokenRange& range : ranges) {
        if (range.first < end || range.end < range.first) {
          throw_invalid_argument("token shards: [", range.first, ", ", range.end, ") after token ",
                                 end, "; the ranges of a rank ascend");
        }
        end = range.end;
        all.push_back(range);
      }
    }
    std::sort(all.begin(), all.end(),
              [](const TokenRange& a, const TokenRange& b) { return a.first < b.first; });
    for (const TokenRange& range : all) {
      if (range.first != tokens_) {
        throw_invalid_argument("token shards: token ", detail::smaller(range.first, tokens_),
                               range.first < tokens_ ? " lies on two ranks" : " lies on no rank");
      }
      tokens_ = range.end;
    }
  }

  /// Runs of consecutive tokens, of these sizes, rank by rank.
  static TokenShards of_sizes(std::span<const Index> sizes) {
    std::vector<std::vector<TokenRange>> of_ranks;
    Index first = 0;
    for (const Index size : sizes) {
      if (size < 0) throw_invalid_argument("token shards: a shard of ", size, " tokens");
      of_ranks.push_back({{first, first + size}});
      first += size;
    }
    return TokenShards(std::move(of_ranks));
  }
  static TokenShards of_sizes(std::initializer_list<Index> sizes) {
    return of_sizes(std::span<const Index>(sizes.begin(), sizes.size()));
  }
  /// Runs of consecutive tokens, as equal as they can be if they begin at multiples of `unit`. Like
  /// the others, throws InvalidArgument for tokens or sizes below 0, and ranks, units or turns
  /// below 1.
  static TokenShards even(Index tokens, Index ranks, Index unit = 1) {
    check(tokens, ranks);
    if (unit < 1) throw_invalid_argument("token shards: units of ", unit, " tokens");
    const Index units = detail::parts_of(tokens, unit);
    std::vector<std::vector<TokenRange>> of_ranks;
    for (Index rank = 0; rank < ranks; ++rank) {
      const TokenRange some = part(units, ranks, rank);
      of_ranks.push_back(
          {{detail::smaller(some.first * unit, tokens), detail::smaller(some.end * unit, tokens)}});
    }
    return TokenShards(std::move(of_ranks));
  }
  /// Under causal masks late queries see more keys. This gives every rank the same work: two runs,
  /// one from each end of the sequence; or `turns` times two, in which the ranks come in turns, up
  /// and down. With many turns the work is the same at any time too, as keys come in order.
  static TokenShards zigzag(Index tokens, Index ranks, Index turns = 1) {
    check(tokens, ranks);
    if (turns < 1) throw_invalid_argument("token shards: ", turns, " turns");
    std::vector<std::vector<TokenRange>> of_ranks(static_cast<std::size_t>(ranks));
    for (Index i = 0; i < 2 * ranks * turns; ++i) {
      const Index place = i % (2 * ranks), rank = detail::smaller(place, 2 * ranks - 1 - place);
      const TokenRange run = part(tokens, 2 * ranks * turns, i);
      auto& ranges = of_ranks[static_cast<std::size_t>(rank)];
      if (!ranges.empty() && ranges.back().end == run.first) {
        ranges.back().end = run.end;
      } else {
        ranges.push_back(run);
      }
    }
    return TokenShards(std::move(of_ranks));
  }

  Index ranks() const { return static_cast<Index>(of_ranks_.size()); }
  /// Over all ranks.
  Index tokens() const { return tokens_; }
  /// The runs of a rank, below ranks(), which is not checked; valid as long as this object.
  std::span<const TokenRange> ranges(Index rank) const {
    return of_ranks_[static_cast<std::size_t>(rank)];
  }
  /// The number of tokens of a rank.
  Index count(Index rank) const {
    Index sum = 0;
    for (const TokenRange& range : ranges(rank)) sum += range.count();
    return sum;
  }

 private:
  static void check(Index tokens, Index ranks) {
    if (tokens < 0 || ranks < 1) {
      throw_invalid_argument("token shards: ", tokens, " tokens for ", ranks, " ranks");
    }
  }
  /// Part `index` of `parts`; the first ones are longer by one token if they must.
  static TokenRange part(Index tokens, Index parts, Index index) {
    const auto begin = [&](Index i) {
      return tokens / parts * i + detail::smaller(i, tokens % parts);
    };
    return {begin(index), begin(index + 1)};
  }

  std::vector<std::vector<TokenRange>> of_ranks_;
  Index tokens_ = 0;
};

}  // namespace heed
