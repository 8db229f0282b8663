// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <heed/attention/detail/bfloat16_views.hpp>
#include <heed/attention/detail/key_blocks.hpp>
#include <heed/attention/detail/narrow_products.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/simd/pair_kernels.hpp>

namespace heed::detail {

/// Products of bfloat16 tensors in pairs. Keys 2i and 2i + 1 make a pair wherever they are met,
/// since pairs decide bits.
template <class T>
class Bfloat16Products final : public NarrowProducts<T> {
 public:
  /// `factor`: scores times this are in units of log2.
  Bfloat16Products(const Bfloat16Views& views, const simd::PairKernels<T>& kernels, T factor)
      : views_(views), kernels_(kernels), factor_(factor) {}

  void pack(Index item, Index head, Index first, Index count, T* packed) const override {
    const Bfloat16Rows rows(views_.queries, nullptr, item, head);
    kernels_.pack({rows.at(first), rows.row_stride(), rows.column_stride()}, count, rows.columns(),
                  reinterpret_cast<std::uint16_t*>(packed));
  }
  void copy_query(Index item, Index head, Index query, Index row, T* rows) const override {
    const Bfloat16Rows from(views_.queries, nullptr, item, head);
    const Index padded = whole_pairs(from.columns());
    from.copy(query, padded, reinterpret_cast<std::uint16_t*>(rows) + row * padded);
  }

  simd::PairKeys bring(Index item, Index key_head, const VisibleKeys& seen) const override {
    const Bfloat16Rows keys(views_.keys, views_.cached_keys, item, key_head);
    const Bfloat16Rows values(views_.values, views_.cached_values, item, key_head);
    const Memory memory = memory_for(keys.columns(), values.columns());
    const Run run = whole(seen, memory);
    simd::PairKeys block;
    block.count = run.count;
    block.words = run.words;
    block.keys = rows_of(keys, run, whole_pairs(keys.columns()), memory.keys);
    kernels_.zip(rows_of(values, run, values.columns(), memory.values), run.count, values.columns(),
                 memory.pairs);
    block.values = memory.pairs;
    block.guard_values =
        run.words != nullptr &&
        !kernels_.all_finite(memory.pairs, whole_pairs(run.count) * values.columns());
    return block;
  }

  void attend(const simd::PairKeys& keys, const simd::QueryBlock<T>& queries,
              const simd::SoftmaxState<T>& state, bool first) const override {
    const simd::PairQueries<T> block{reinterpret_cast<const std::uint16_t*>(queries.packed),
                                     queries.probabilities,
                                     factor_,
                                     queries.count,
                                     queries.head_dim,
                                     queries.value_dim};
    kernels_.attend(keys, block, state, first);
  }
  void decode(const simd::PairKeys& keys, const simd::QueryRows<T>& rows) const override {
    simd::PairRows<T> pairs;
    pairs.rows = reinterpret_cast<const std::uint16_t*>(rows.rows);
    pairs.packed = reinterpret_cast<std::uint16_t*>(rows.packed);
    pairs.scores = rows.scores;
    pairs.probabilities = reinterpret_cast<std::uint16_t*>(rows.probabilities);
    pairs.maximum = rows.maximum;
    pairs.sum = rows.sum;
    pairs.output = rows.output;
    pairs.output_stride = rows.output_stride;
    pairs.visible = rows.visible;
    pairs.factor = factor_;
    pairs.count = rows.count;
    pairs.head_dim = rows.head_dim;
    pairs.depth = whole_pairs(rows.head_dim) / 2;
    pairs.value_dim = rows.value_dim;
    kernels_.decode(keys, pairs);
  }

 private:
  static Index whole_pairs(Index columns) { return (columns + 1) / 2 * 2; }

  /// This thread's arrays for a block of keys.
  struct Memory {
    std::uint16_t* keys = nullptr;
    std::uint16_t* values = nullptr;
    std::uint16_t* pairs = nullptr;
    std::uint64_t* words = nullptr;
    Index* kept = nullptr;
  };
  static Memory memory_for(Index head_dim, Index value_dim) {
    Memory memory;
    const auto carve = [&](Carver carver) {
      memory.keys = carver.take<std::uint16_t>(simd::key_block * (head_dim + 1));
      memory.values = carver.take<std::uint16_t>(simd::key_block * value_dim);
      memory.pairs = carver.take<std::uint16_t>(simd::key_block * value_dim + 32);
      memory.words = carver.take<std::uint64_t>(simd::key_block);
      memory.kept = carver.take<Index>(simd::key_block);
      return carver.used();
    };
    carve(Carver(Scratch::of_this_thread<Bfloat16Products>(carve(Carver(nullptr)))));
    return memory;
  }

  /// Keys in whole pairs: the seen ones and their partners.
  struct Run {
    Index first = 0;  // even
    Index count = 0;
    const std::uint64_t* words = nullptr;
    const Index* kept = nullptr;  // not null: only the keys first + kept[0], first + kept[1], …
  };
  static Run whole(const VisibleKeys& seen, const Memory& memory) {
    const Index before = seen.first % 2;
    Run run{seen.first - before, seen.count + before, seen.words, nullptr};
    if (before != 0 || seen.holes) {
      memory.words[0] = 0;
      for (Index i = 0; i < seen.count; ++i) {
        memory.words[before + i] = seen.words != nullptr ? seen.words[i] : ~std::uint64_t{0};
      }
      run.words = memory.words;
    }
    if (!seen.holes) return run;
    const Index end = run.count;
    run.count = 0;
    for (Index key = 0; key < end; key += 2) {
      const Index last = key + 1 < end ? key + 1 : key;
      if ((memory.words[key] | memory.words[last]) == 0) continue;
      for (Index each = key; each <= last; ++each) {
        memory.kept[run.count] = each;
        memory.words[run.count++] = memory.words[each];
      }
    }
    run.kept = memory.kept;
    return run;
  }

  /// The run's rows where they lie, if a kernel can read `columns` columns of them there; or
  /// copied.
  static simd::MatrixRef<std::uint16_t> rows_of(const Bfloat16Rows& rows, const Run& run,
                                                Index columns, std::uint16_t* to) {
    if (run.kept == nullptr && columns == rows.columns() && rows.column_stride() == 1 &&
        rows.in_one_piece(run.first, run.count)) {
      return {rows.at(run.first), rows.row_stride(), 1};
    }
    for (Index i = 0; i < run.count; ++i) {
      rows.copy(run.first + (run.kept != nullptr ? run.kept[i] : i), columns, to + i * columns);
    }
    return {to, columns, 1};
  }

  const Bfloat16Views& views_;
  const simd::PairKernels<T>& kernels_;
  T factor_;
};

}  // namespace heed::detail
