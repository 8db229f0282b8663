// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed::detail {

/// A merge of byte-pair encoding: `left` and `right` beside one another become `result`.
struct PairMerge {
  std::int32_t left, right, result;
};

/// Applies merges to a piece of text in the order of their ranks, the leftmost of a rank first, in
/// O(n log n).
/// Sennrich et al., Neural machine translation of rare words with subword units, 2016.
class PairMerger {
 public:
  PairMerger() = default;
  /// The merges by rank, among tokens 0 to `vocabulary` − 1. InvalidArgument when a pair stands
  /// twice.
  PairMerger(const std::vector<PairMerge>& merges, Index vocabulary)
      : begins_(static_cast<std::size_t>(vocabulary) + 1) {
    if (merges.size() > 0x7fffffff) throw_invalid_argument("merges: too many");
    for (const PairMerge& merge : merges) ++begins_[static_cast<std::size_t>(merge.left) + 1];
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    merges_.resize(merges.size());
    std::vector<std::uint32_t> at(begins_);
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const PairMerge& merge = merges[rank];
      merges_[at[static_cast<std::size_t>(merge.left)]++] = {
          merge.right, static_cast<std::int32_t>(rank), merge.result};
    }
    for (std::size_t left = 0; left + 1 < begins_.size(); ++left) {
      const auto first = merges_.begin() + static_cast<Index>(begins_[left]);
      const auto last = merges_.begin() + static_cast<Index>(begins_[left + 1]);
      std::sort(first, last, [](const Entry& a, const Entry& b) { return a.right < b.right; });
      const auto twice = std::adjacent_find(
          first, last, [](const Entry& a, const Entry& b) { return a.right == b.right; });
      if (twice != last)
        throw_invalid_argument("merges: ", std::max(twice->rank, (twice + 1)->rank),
                               " again merges tokens ", left, " and ", twice->right);
    }
  }

  /// Merges the tokens of a piece in place.
  void merge(std::vector<std::int32_t>& tokens) const {
    std::vector<Symbol> symbols(tokens.size());
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto size = static_cast<std::int32_t>(tokens.size());
    for (std::int32_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      symbols[at] = {tokens[at], i - 1, i + 1 < size ? i + 1 : -1};
    }
    for (std::int32_t i = 0; i + 1 < size; ++i) consider(symbols, i, queue);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<std::size_t>(best.at)];
      if (left.token != best.left || left.next < 0) continue;  // one of the two is gone
      Symbol& right = symbols[static_cast<std::size_t>(left.next)];
      if (right.token != best.right) continue;
      left.token = best.result;
      right.token = -1;
      left.next = right.next;
      if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.at;
      consider(symbols, left.previous, queue);
      consider(symbols, best.at, queue);
    }
    std::size_t count = 0;
    for (const Symbol& symbol : symbols) {
      if (symbol.token >= 0) tokens[count++] = symbol.token;
    }
    tokens.resize(count);
  }

 private:
  struct Entry {
    std::int32_t right, rank, result;
  };
  struct Symbol {
    std::int32_t token, previous, next;
  };
  struct Candidate {
    std::int32_t rank, at, left, right, result;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

  /// Notes the merge of the symbol at `at` with the next one, if there is one.
  void consider(const std::vector<Symbol>& symbols, std::int32_t at, Queue& queue) const {
    if (at < 0) return;
    const Symbol& left = symbols[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    const std::int32_t right = symbols[static_cast<std::size_t>(left.next)].token;
    const auto first =
        merges_.begin() + static_cast<Index>(begins_[static_cast<std::size_t>(left.token)]);
    const auto last =
        merges_.begin() + static_cast<Index>(begins_[static_cast<std::size_t>(left.token) + 1]);
    const auto found = std::lower_bound(
        first, last, right,
        [](const Entry& entry, std::int32_t wanted) { return entry.right < wanted; });
    if (found == last || found->right != right) return;
    queue.push({found->rank, at, left.token, right, found->result});
  }

  std::vector<std::uint32_t> begins_;  // of each left token's merges
  std::vector<Entry> merges_;          // by left token, then right
};

}  // namespace heed::detail
