// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A mask computed from content: for every query of every head, the key blocks it selected.
/// block_top_k makes it for the queries, keys and positions of one call. Queries outside that call
/// see no key.
class ContentBlocks {
 public:
  bool allows(Position at) const {
    const Index column = at.key / block_;
    return has(at.batch, at.head) && column < columns_ &&
           (lanes(at.batch, at.head, column, at.query) & 1) != 0;
  }
  /// Exact; reads one word per key block and 64 queries of the tile.
  Coverage coverage(Tile tile) const {
    if (!has(tile.batch, tile.head)) return Coverage::none;
    const Index last = detail::smaller(tile.last_key / block_, columns_ - 1);
    bool some = false, all = tile.last_key / block_ == last;
    for (Index column = tile.first_key / block_; column <= last; ++column) {
      for (Index query = tile.first_query; query <= tile.last_query; query += 64) {
        const std::uint64_t everyone = lanes_between(0, tile.last_query - query);
        const std::uint64_t word = lanes(tile.batch, tile.head, column, query) & everyone;
        some = some || word != 0;
        all = all && word == everyone;
        if (some && !all) return Coverage::partial;
      }
    }
    return some ? Coverage::full : Coverage::none;
  }
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key;) {
      const Index column = key / block_;
      const bool inside = has(tile.batch, tile.head) && column < columns_;
      const std::uint64_t word =
          inside ? lanes(tile.batch, tile.head, column, tile.first_query) : 0;
      for (; key <= tile.last_key && key / block_ == column; ++key) *words++ = word;
    }
  }
  void check(MaskShape shape) const {
    if (!shape.has_batch(made_for_.batch) || !shape.has_heads(made_for_.heads) ||
        shape.queries > made_for_.queries || shape.keys > made_for_.keys) {
      throw_shape_error("block_top_k: made for (batch, heads, queries, keys) ", made_for_.extents(),
                        ", asked for ", shape.extents());
    }
  }

  /// `choose(item, head, choices)` sets bits: bit row % 64 of choices[column ·
  /// words_per_block(queries) + row / 64] says whether query `row` sees block `column`. Heads run
  /// in parallel.
  template <class Choose>
  static ContentBlocks made(MaskShape shape, Index block, detail::SharedArray<Index> first_queries,
                            const Choose& choose) {
    ContentBlocks mask(shape, block, std::move(first_queries));
    const Index size = mask.columns_ * mask.block_words_;
    mask.words_ = detail::SharedArray<std::uint64_t>::filled(
        shape.batch * shape.heads * size, [&](std::uint64_t* words) {
          parallel_for(shape.batch * shape.heads, [&](Index i) {
            choose(i / shape.heads, i % shape.heads, words + i * size);
          });
        });
    return mask;
  }
  static Index words_per_block(Index queries) { return (queries + 63) / 64; }

 private:
  ContentBlocks(MaskShape shape, Index block, detail::SharedArray<Index> first_queries)
      : made_for_(shape),
        block_(block),
        columns_(detail::parts_of(shape.keys, block)),
        block_words_(words_per_block(shape.queries)),
        first_queries_(std::move(first_queries)) {}

  bool has(Index item, Index head) const {
    return first_queries_.has(item) && head >= 0 && head < made_for_.heads;
  }
  /// A bit for each of the 64 queries from `first` on: whether it sees the block.
  std::uint64_t lanes(Index item, Index head, Index column, Index first) const {
    const Index row = first - first_queries_[item];
    if (row <= -64 || row >= made_for_.queries || made_for_.queries == 0) return 0;
    const std::uint64_t* rows =
        words_.data() + ((item * made_for_.heads + head) * columns_ + column) * block_words_;
    return window_of_bits(rows, block_words_, row);
  }

  MaskShape made_for_;
  Index block_;
  Index columns_;      // key blocks
  Index block_words_;  // words per key block
  detail::SharedArray<Index> first_queries_;
  detail::SharedArray<std::uint64_t> words_;  // [item][head][block][query / 64], one bit per query
};

namespace detail {

/// The type in which sums of T are accumulated.
template <class T>
using SumOf = decltype(T{} + double{});

/// The mean key of every block of one head, over the keys that a query sees. Sums run from the
/// first key to the last, so that later keys do not change the bits of a mean.
template <class T>
class BlockMeans {
 public:
  using Sum = SumOf<T>;

  BlockMeans(const TensorView<const T, 2>& keys, Index block)
      : keys_(keys),
        block_(block),
        means_({keys.extent(1), parts_of(keys.extent(0), block)}),
        mean_({keys.extent(1)}),
        summed_({keys.extent(0)}),
        whole_({blocks()}) {}

  Index blocks() const { return means_.extent(1); }

  /// Whether the query at `at` sees any key of a block. With `mean_too`, the block's mean is then
  /// updated to the mean of the keys it sees.
  template <MaskPolicy M>
  bool look(const M& mask, Position at, Index column, bool mean_too) {
    const Index first = column * block_, past = smaller(first + block_, keys_.extent(0));
    const Coverage coverage = coverage_of(
        mask, Tile{at.batch, at.head, at.query, at.query, first, past - 1, at.call_first_query});
    if (coverage == Coverage::none) return false;
    const bool whole = coverage == Coverage::full;
    if (whole && (whole_(column) || !mean_too)) return true;
    bool some = false, changed = false;
    for (at.key = first; at.key < past; ++at.key) {
      const bool seen = whole || heed::allows(mask, at);
      some = some || seen;
      if (!mean_too) continue;
      changed = changed || seen != summed_(at.key);
      summed_(at.key) = seen;
    }
    if (changed) make(column, first, past);
    if (mean_too) whole_(column) = whole;
    return some;
  }
  /// gates[column] = query · mean of block `column`, for the blocks [first, past).
  template <class Query>
  void gates(const Query& query, Index first, Index past, Sum* gates) const {
    for (Index column = first; column < past; ++column) gates[column] = 0;
    for (Index d = 0; d < keys_.extent(1); ++d) {
      const Sum x = static_cast<Sum>(query(d));
      const Sum* means = means_.data() + d * blocks();
      for (Index column = first; column < past; ++column) gates[column] += x * means[column];
    }
  }

 private:
  void make(Index column, Index first, Index past) {
    const Index dim = keys_.extent(1);
    Sum* mean = mean_.data();
    for (Index d = 0; d < dim; ++d) mean[d] = 0;
    Index count = 0;
    for (Index key = first; key < past; ++key) {
      if (!summed_(key)) continue;
      ++count;
      for (Index d = 0; d < dim; ++d) mean[d] += static_cast<Sum>(keys_(key, d));
    }
    for (Index d = 0; d < dim; ++d) means_(d, column) = mean[d] / static_cast<Sum>(count);
  }

  TensorView<const T, 2> keys_;
  Index block_;
  Tensor<Sum, 2> means_;    // (dim, blocks)
  Tensor<Sum, 1> mean_;     // scratch for one mean
  Tensor<bool, 1> summed_;  // the keys included in the means
  Tensor<bool, 1> whole_;   // blocks whose mean includes all their keys
};

/// The open block with the largest gate: the first among equals; NaN ranks above everything.
template <class Sum>
Index best_block(const Sum* gates, const bool* open, Index first, Index past) {
  Index best = -1;
  for (Index column = first; column < past; ++column) {
    if (!open[column]) continue;
    const bool better = best < 0 || gates[column] > gates[best] ||
                        (gates[column] != gates[best] && gates[best] == gates[best] &&
                         gates[column] != gates[column]);
    if (better) best = column;
  }
  return best;
}

/// The choices of one head's queries, in the format of ContentBlocks::made.
template <class T, MaskPolicy M>
void choose_blocks(const AttentionArgs<T>& args, const M& mask, Index item, Index head, Index block,
                   Index count, std::uint64_t* choices) {
  const Index keys = args.key_count_of(item),
              block_words = ContentBlocks::words_per_block(args.query_count());
  const auto head_keys = args.keys.view().select(0, item).select(0, args.key_head(head));
  BlockMeans<T> means(head_keys.slice(0, 0, keys), block);
  Tensor<SumOf<T>, 1> gates({means.blocks()});
  Tensor<bool, 1> open({means.blocks()});
  for (Index row = 0; row < args.query_count(); ++row) {
    const Index query = args.first_query_of(item) + row;
    const Index own = query < 0 || query >= keys ? -1 : query / block;
    Index first = means.blocks(), past = 0, left = 0;
    for (Index column = 0; column < means.blocks(); ++column) {
      open(column) = means.look(mask, position_of(args, item, head, row, 0), column, column != own);
      if (!open(column)) continue;
      first = smaller(first, column);
      past = column + 1;
      ++left;
    }
    const auto take = [&](Index column) {
      open(column) = false;
      choices[column * block_words + row / 64] |= std::uint64_t{1} << (row % 64);
    };
    left = smaller(left, count);
    if (own >= 0 && open(own)) {
      take(own);
      --left;
    }
    if (left > 0) {
      const auto head_queries = args.queries.view().select(0, item).select(0, head);
      means.gates([&](Index d) { return head_queries(row, d); }, first, past, gates.data());
    }
    for (; left > 0; --left) take(best_block(gates.data(), open.data(), first, past));
  }
}

template <class T, class M>
ContentBlocks chosen(const AttentionArgs<T>& args, const M& mask, Index block, Index count) {
  const MaskShape shape = shape_of_call(args);
  block = smaller(block, larger(1, shape.keys));  // a larger block is the same block
  return ContentBlocks::made(
      shape, block,
      SharedArray<Index>::made(shape.batch, [&](Index item) { return args.first_query_of(item); }),
      [&](Index item, Index head, std::uint64_t* choices) {
        choose_blocks<T>(args, mask, item, head, block, count, choices);
      });
}

}  // namespace detail

/// Content-adaptive block-sparse attention: narrows `mask` to the key blocks that every query
/// selects by content. Keys form blocks [i · block, (i + 1) · block) of positions. The gate of a
/// block is the product of the query with the mean of the block's keys that `mask` shows it; the
/// query keeps the `count` blocks with the largest gates. The block that contains the query's own
/// position always comes first among them if the query sees any key of it. Among equal gates the
/// lower block wins; NaN ranks above everything, so that it is never hidden.
///
/// The result is a mask for `attention` on the same tensors and options. It shows nothing that
/// `mask` hides, and a choice depends on nothing that its query may not see: under Causal, later
/// tokens change no bit of it, and decoding token by token makes the same choices; padding, other
/// sequences of a pack, other heads and batch items have no influence where `mask` hides them.
///
/// Costs queries · keys / block · head_dim per head. Float or double, not bfloat16. The result
/// holds a copy of `mask` and of the choices, and refers to no tensor. The choice has no
/// gradient. Throws the errors of `attention`, and ShapeError for a `block` or `count` below 1.
/// After Lu et al. 2025 (MoBA), which makes this choice under Causal.
template <class Q, class K, class M, detail::IsOptions Options = detail::OptionsOf<Q>>
auto block_top_k(const Q& queries, const K& keys, const M& mask, Index block, Index count,
                 const Options& options = {}) {
  if constexpr (detail::expect_weights_call<Options, M, Q, K>()) {
    if (block < 1 || count < 1) {
      throw_shape_error("block_top_k: ", count, " blocks of ", block, "; both must be at least 1");
    }
    const auto args = detail::weights_args(queries, keys, mask, options);
    return masks::And<M, ContentBlocks>{mask, detail::chosen(args, mask, block, count)};
  } else {
    return masks::Full{};
  }
}

}  // namespace heed
