// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <heed/attention/weights.hpp>
#include <heed/core/error.hpp>
#include <heed/core/shared.hpp>
#include <heed/masks/block_sparse.hpp>
#include <heed/masks/full.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A mask made of content: for every batch item and head, and every block of queries, the blocks of
/// keys that suit it best. Made by block_top_k.
class ContentBlocks {
 public:
  ContentBlocks(Index heads, std::vector<masks::BlockSparse> layouts)
      : heads_(heads), layouts_(new std::vector<masks::BlockSparse>(std::move(layouts))) {}

  bool allows(Position at) const { return layout(at.batch, at.head).allows(at); }
  Coverage coverage(Tile tile) const { return layout(tile.batch, tile.head).coverage(tile); }
  void lane_words(Tile tile, std::uint64_t* words) const {
    layout(tile.batch, tile.head).lane_words(tile, words);
  }
  void check(MaskShape shape) const {
    if (shape.heads != heads_ ||
        shape.batch * shape.heads != static_cast<Index>(layouts_->size())) {
      throw_shape_error("block_top_k: made for ", layouts_->size(), " heads of a batch, asked for ",
                        shape.batch, " times ", shape.heads);
    }
  }

 private:
  const masks::BlockSparse& layout(Index item, Index head) const {
    return (*layouts_)[static_cast<std::size_t>(item * heads_ + head)];
  }

  Index heads_;
  detail::Shared<std::vector<masks::BlockSparse>> layouts_;
};

namespace detail {

/// The mean row of every block of positions [i · block, (i + 1) · block); row 0 stands at `first`.
template <class T>
std::vector<std::vector<double>> block_means(const TensorView<const T, 4>& tensor, Index item,
                                             Index head, Index first, Index block) {
  const Index rows = tensor.extent(2), dim = tensor.extent(3);
  const auto blocks = static_cast<std::size_t>((first + rows + block - 1) / block);
  std::vector<std::vector<double>> means(blocks,
                                         std::vector<double>(static_cast<std::size_t>(dim)));
  for (Index row = 0; row < rows; ++row) {
    const Index at = (first + row) / block;
    const Index begin = detail::larger(first, at * block),
                end = detail::smaller(first + rows, (at + 1) * block);
    for (Index d = 0; d < dim; ++d) {
      means[static_cast<std::size_t>(at)][static_cast<std::size_t>(d)] +=
          static_cast<double>(tensor(item, head, row, d)) / static_cast<double>(end - begin);
    }
  }
  return means;
}

/// The `count` best of `scores`, lower indices first among equals, and always the last one.
inline std::vector<Index> best_blocks(const std::vector<double>& scores, Index count) {
  const Index last = static_cast<Index>(scores.size()) - 1, kept = smaller(count - 1, last);
  const auto score = [&](Index i) { return scores[static_cast<std::size_t>(i)]; };
  std::vector<Index> best;  // in falling order
  for (Index i = 0; i < last && kept > 0; ++i) {
    auto to = best.end();
    while (to != best.begin() && score(i) > score(*(to - 1))) --to;
    best.insert(to, i);
    if (static_cast<Index>(best.size()) > kept) best.pop_back();
  }
  best.push_back(last);
  return best;
}

template <class T>
masks::BlockSparse top_blocks(const AttentionProblem<T>& problem, Index item, Index head,
                              Index block, Index count) {
  const Index first = problem.first_query_of(item);
  const auto queries = block_means<T>(problem.queries, item, head, first, block);
  const auto keys = block_means<T>(problem.keys, item, problem.key_head(head), 0, block);
  const auto rows = static_cast<Index>(queries.size()), columns = static_cast<Index>(keys.size());
  std::vector<bool> on(static_cast<std::size_t>(rows * columns), false);
  for (Index row = first / block; row < rows; ++row) {
    // Blocks up to the queries' own, which is always seen.
    std::vector<double> scores;
    for (Index column = 0; column <= row && column < columns; ++column) {
      double dot = 0;
      const auto& q = queries[static_cast<std::size_t>(row)];
      const auto& k = keys[static_cast<std::size_t>(column)];
      for (std::size_t d = 0; d < q.size(); ++d) dot += q[d] * k[d];
      scores.push_back(dot == dot ? dot : -std::numeric_limits<double>::infinity());
    }
    for (const Index column : best_blocks(scores, count)) {
      on[static_cast<std::size_t>(row * columns + column)] = true;
    }
  }
  return masks::BlockSparse(rows, columns, block, [&](Index row, Index column) {
    return on[static_cast<std::size_t>(row * columns + column)];
  });
}

}  // namespace detail

/// Content-adaptive block-sparse attention: for every `block` consecutive queries the `count`
/// blocks of keys, at or before their own, whose mean key fits their mean query best; their own is
/// always one of them. Compose with Causal{}. Positions are those of `attention` on the same
/// tensors. Costs (length / block)² · head_dim. After Lu et al. 2025 (MoBA).
template <Viewable Q, Viewable K>
ContentBlocks block_top_k(const Q& queries, const K& keys, Index block, Index count) {
  using T = ValueOf<Q>;
  if (block < 1 || count < 1) {
    throw_shape_error("block_top_k: ", count, " blocks of ", block, "; both must be at least 1");
  }
  const auto problem = detail::weights_problem(queries, keys, masks::Full{}, {});
  if (problem.query_count() > problem.key_count()) {
    throw_shape_error("block_top_k: ", problem.query_count(), " queries for ", problem.key_count(),
                      " keys; queries before the first key have no block");
  }
  std::vector<masks::BlockSparse> layouts;
  for (Index item = 0; item < problem.batch(); ++item) {
    for (Index head = 0; head < problem.heads(); ++head) {
      layouts.push_back(detail::top_blocks<T>(problem, item, head, block, count));
    }
  }
  return {problem.heads(), std::move(layouts)};
}

}  // namespace heed
