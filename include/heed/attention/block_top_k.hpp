// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include <heed/attention/weights.hpp>
#include <heed/core/error.hpp>
#include <heed/masks/block_sparse.hpp>
#include <heed/masks/full.hpp>
#include <heed/masks/policy.hpp>
#include <heed/masks/shared_array.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A mask made of content: for every batch item and head, and every block of queries, the blocks of
/// keys that suit it best. Made by block_top_k.
class ContentBlocks {
 public:
  ContentBlocks(Index heads, detail::SharedArray<masks::BlockSparse> layouts)
      : heads_(heads), layouts_(std::move(layouts)) {}

  bool allows(Position at) const { return layout(at.batch, at.head).allows(at); }
  Coverage coverage(Tile tile) const { return layout(tile.batch, tile.head).coverage(tile); }
  void lane_words(Tile tile, std::uint64_t* words) const {
    layout(tile.batch, tile.head).lane_words(tile, words);
  }
  void check(MaskShape shape) const {
    if (shape.heads != heads_ || shape.batch * shape.heads != layouts_.size()) {
      throw_shape_error("block_top_k: made for ", layouts_.size(), " heads of a batch, asked for ",
                        shape.batch, " times ", shape.heads);
    }
  }

 private:
  const masks::BlockSparse& layout(Index item, Index head) const {
    return layouts_[item * heads_ + head];
  }

  Index heads_;
  detail::SharedArray<masks::BlockSparse> layouts_;
};

namespace detail {

/// What sums of T are kept in.
template <class T>
using SumOf = decltype(T{} + double{});

/// The mean row of every block of positions [i · block, (i + 1) · block), (blocks, dim); row 0
/// stands at `first`.
template <class T>
Tensor<SumOf<T>, 2> block_means(const TensorView<const T, 4>& tensor, Index item, Index head,
                                Index first, Index block) {
  using Sum = SumOf<T>;
  const Index rows = tensor.extent(2), dim = tensor.extent(3);
  Tensor<Sum, 2> means({(first + rows + block - 1) / block, dim});
  for (Index row = 0; row < rows; ++row) {
    const Index at = (first + row) / block;
    const Index begin = detail::larger(first, at * block),
                end = detail::smaller(first + rows, (at + 1) * block);
    for (Index d = 0; d < dim; ++d) {
      means(at, d) += static_cast<Sum>(tensor(item, head, row, d)) / static_cast<Sum>(end - begin);
    }
  }
  return means;
}

/// Switches the `count` best of `scores` on, lower indices first among equals, and always the last
/// one.
template <class Sum>
void choose_blocks(const Tensor<Sum, 1>& scores, Index count, bool* on) {
  const Index last = scores.size() - 1;
  on[last] = true;
  for (Index chosen = 1; chosen < count && chosen <= last; ++chosen) {
    Index best = -1;
    for (Index i = 0; i < last; ++i) {
      if (!on[i] && (best < 0 || scores(i) > scores(best))) best = i;
    }
    on[best] = true;
  }
}

template <class T>
masks::BlockSparse top_blocks(const AttentionProblem<T>& problem, Index item, Index head,
                              Index block, Index count) {
  using Sum = SumOf<T>;
  const Index first = problem.first_query_of(item);
  const auto queries = block_means<T>(problem.queries, item, head, first, block);
  const auto keys = block_means<T>(problem.keys, item, problem.key_head(head), 0, block);
  const Index rows = queries.extent(0), columns = keys.extent(0);
  Tensor<bool, 2> on({rows, columns});
  for (Index row = first / block; row < rows; ++row) {
    // Blocks up to the queries' own, which is always seen.
    Tensor<Sum, 1> scores({smaller(row + 1, columns)});
    for (Index column = 0; column < scores.size(); ++column) {
      Sum dot = 0;
      for (Index d = 0; d < problem.head_dim(); ++d) dot += queries(row, d) * keys(column, d);
      scores(column) = dot == dot ? dot : -std::numeric_limits<Sum>::infinity();
    }
    choose_blocks(scores, count, on.data() + row * columns);
  }
  return masks::BlockSparse(rows, columns, block,
                            [&](Index row, Index column) { return on(row, column); });
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
  block = detail::smaller(block, detail::larger(1, problem.key_count()));  // more is the same
  const Index heads = problem.heads();
  return {heads,
          detail::SharedArray<masks::BlockSparse>::made(problem.batch() * heads, [&](Index i) {
            return detail::top_blocks<T>(problem, i / heads, i % heads, block, count);
          })};
}

}  // namespace heed
