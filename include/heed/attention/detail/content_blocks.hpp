// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/detail/shared_array.hpp>
#include <heed/masks/policy.hpp>

namespace heed {

/// A mask made of content: for every query of every head, the blocks of keys that it chose. Made by
/// block_top_k, for the queries, keys and positions of one call. Shows no key of other queries.
class ContentBlocks {
 public:
  bool allows(Position at) const {
    const Index column = at.key / block_;
    return has(at.batch, at.head) && column < columns_ &&
           (lanes(at.batch, at.head, column, at.query) & 1) != 0;
  }
  /// Exact, by a look at one word for each block and 64 queries of the tile.
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
      throw_shape_error("block_top_k: made for (batch, heads, queries, keys) (", made_for_.batch,
                        ", ", made_for_.heads, ", ", made_for_.queries, ", ", made_for_.keys,
                        "), asked for (", shape.batch, ", ", shape.heads, ", ", shape.queries, ", ",
                        shape.keys, ")");
    }
  }

  /// `choose(item, head, choices)` switches bits on: bit row % 64 of
  /// choices[column · words_per_block(queries) + row / 64] says whether query `row` looks into
  /// block `column`. Heads are done side by side.
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
        columns_((shape.keys + block - 1) / block),
        block_words_(words_per_block(shape.queries)),
        first_queries_(std::move(first_queries)) {}

  bool has(Index item, Index head) const {
    return first_queries_.has(item) && head >= 0 && head < made_for_.heads;
  }
  /// Which of the 64 queries from `first` on look into a block.
  std::uint64_t lanes(Index item, Index head, Index column, Index first) const {
    const Index row = first - first_queries_[item];
    if (row <= -64 || row >= made_for_.queries || made_for_.queries == 0) return 0;
    const std::uint64_t* rows =
        words_.data() + ((item * made_for_.heads + head) * columns_ + column) * block_words_;
    return lanes_from(rows, block_words_, row);
  }

  MaskShape made_for_;
  Index block_;
  Index columns_;      // blocks of keys
  Index block_words_;  // of the queries of one block
  detail::SharedArray<Index> first_queries_;
  detail::SharedArray<std::uint64_t> words_;  // [item][head][block][query / 64], a bit a query
};

}  // namespace heed
