// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <heed/attention/detail/call.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/core/detail/program_code.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/tensor.hpp>

// What the passes share about the scores of a block of queries and a block of keys: the memory of a
// thread, the keys that are seen, and the modification of scores.

namespace heed::detail {

/// Calls below about this many multiply-adds stay on their own thread: waking another costs more.
inline constexpr double parallel_threshold = 2e6;

/// Rounded up to a multiple of a power of two.
constexpr Index rounded_up(Index count, Index step) { return (count + step - 1) & -step; }

/// Number of heads of a batch item in one task of short sequences: as many, up to 16, as share the
/// mask's answers while every thread still has about four tasks.
inline Index heads_together(Index batch, Index heads, const MaskRef& mask) {
  constexpr Index most = 16;
  if (mask.depends_on_head() || batch == 0) return 1;
  const Index groups = parts_of(4 * thread_count(), batch);
  const Index each = parts_of(heads, groups);
  return smaller(each, most);
}

/// One thread's arrays for one block of queries; see divided_scratch.
template <class T>
struct ForwardScratch {
  Carver carver;
  Index head_dim, value_dim;
  bool score_mods;  // with room for a ScoreModArrays
  Index scored = score_mods ? simd::query_block * simd::key_block : 0;
  T* packed = carver.take<T>(simd::query_block * head_dim);
  T* probabilities = carver.take<T>(simd::query_block * simd::key_block);
  simd::SoftmaxState<T> total = take_state();
  simd::SoftmaxState<T> chunk = take_state();
  T* factors = carver.take<T>(simd::query_block);
  T* keys = carver.take<T>(simd::key_block * head_dim);
  T* values = carver.take<T>(simd::key_block * value_dim);
  std::uint64_t* words = carver.take<std::uint64_t>(simd::key_block);
  Index* kept = carver.take<Index>(simd::key_block);
  T* scores = carver.take<T>(scored);
  T* bias = carver.take<T>(scored);
  std::uint64_t* keep = carver.take<std::uint64_t>(score_mods ? simd::key_block : 0);

  simd::SoftmaxState<T> take_state() {
    return {carver.take<T>(simd::query_block), carver.take<T>(simd::query_block),
            carver.take<T>(simd::query_block * value_dim)};
  }
};

/// The lanes of the widest vector of any instruction set.
inline constexpr Index most_lanes = 16;

/// The maximum number of query rows decoded together: heads that share a key head, times queries.
inline constexpr Index decode_rows = 64;

/// The value_dim of decoded outputs: padded to whole vectors of any instruction set.
inline Index padded_value_dim(Index value_dim) { return rounded_up(value_dim, most_lanes); }

/// One thread's arrays for some rows of queries and one block of keys; see divided_scratch.
template <class T>
struct DecodeScratch {
  Carver carver;
  Index row_count, head_dim, value_dim;
  bool score_mods;
  T* rows = carver.take<T>(row_count * head_dim);
  T* packed = carver.take<T>(simd::row_keys * head_dim);
  T* scores = carver.take<T>(scored_blocks(row_count) * simd::row_keys * row_count);
  T* probabilities = carver.take<T>(simd::row_keys * row_count);
  T* tail = carver.take<T>(most_lanes * (simd::key_block + head_dim));
  T* keys = carver.take<T>(simd::key_block * head_dim);
  T* values = carver.take<T>(simd::key_block * value_dim);
  std::uint64_t* words = carver.take<std::uint64_t>(simd::key_block);
  std::uint64_t* visible = carver.take<std::uint64_t>(2 * row_count);
  Index* kept = carver.take<Index>(simd::key_block);
  T* bias = carver.take<T>(score_mods ? simd::row_keys * row_count : 0);
  std::uint64_t* keep = carver.take<std::uint64_t>(score_mods ? 2 * row_count : 0);

  /// How many blocks of keys get their scores before their values are read: those of a chunk, if
  /// their scores are few. Memory that is read in long runs is faster.
  static Index scored_blocks(Index row_count) {
    return row_count <= 8 ? simd::key_chunk / simd::key_block : 1;
  }
};

/// The softmax states of some rows of queries over some keys, row by row, as in decoding.
template <class T>
struct RowStates {
  T* maximum = nullptr;  // [row]
  T* sum = nullptr;      // [row]
  T* output = nullptr;   // [row][padded_value_dim]

  /// The states of the rows from `row` on.
  RowStates from(Index row, Index value_dim) const {
    return {maximum + row, sum + row, output + row * padded_value_dim(value_dim)};
  }
  /// The states of `rows` rows in one piece of memory, of `size` numbers.
  static RowStates in(T* memory, Index rows, Index value_dim) {
    T* const behind = memory + rows * padded_value_dim(value_dim);
    return {behind, behind + rows, memory};
  }
  static Index size(Index rows, Index value_dim) {
    return rows * padded_value_dim(value_dim) + rounded_up(2 * rows, most_lanes);
  }
};

/// The softmax of all rows of a call over some of its keys, kept between the parts of a
/// computation whose keys arrive one after another: a state per block of rows of a head.
template <class T>
class PausedRows {
 public:
  explicit PausedRows(const AttentionArgs<T>& args)
      : blocks_(parts_of(args.query_count(), simd::query_block)),
        states_(Tensor<T, 2>::uninitialized(
            {args.batch() * args.heads() * blocks_, simd::query_block * (2 + args.value_dim())})),
        begun_({states_.extent(0)}) {}

  /// The number of the block that begins at row `row` of a head.
  Index index_of(const AttentionArgs<T>& args, Index item, Index head, Index row) const {
    return (item * args.heads() + head) * blocks_ + row / simd::query_block;
  }
  simd::SoftmaxState<T> state(Index index) {
    T* const from = states_.data() + index * states_.extent(1);
    return {from, from + simd::query_block, from + 2 * simd::query_block};
  }
  /// Whether the state holds any key.
  bool& begun(Index index) { return begun_[index]; }

 private:
  Index blocks_;
  Tensor<T, 2> states_;
  Tensor<bool, 1> begun_;
};

/// The softmax states of all rows of a call over some chunks of keys, each alone, and a total over
/// the keys that have been added up: for calls whose chunks lie in several processes.
template <class T>
class ChunkRows {
 public:
  /// `chunks`, in ascending order, must live as long.
  ChunkRows(Index rows, Index value_dim, std::span<const Index> chunks)
      : rows_(rows),
        value_dim_(value_dim),
        chunks_(chunks),
        states_({count() + 1, RowStates<T>::size(rows, value_dim)}) {}

  Index count() const { return static_cast<Index>(chunks_.size()); }
  Index chunk(Index i) const { return chunks_[static_cast<std::size_t>(i)]; }
  /// The states of the rows from `row` on, over chunk(i).
  RowStates<T> states(Index i, Index row) { return in(i + 1, row); }
  RowStates<T> total(Index row) { return in(0, row); }
  /// The memory of the total, which another process can take over.
  TensorView<T, 1> total() { return states_.view().select(0, 0); }

 private:
  RowStates<T> in(Index place, Index row) {
    T* const memory = states_.data() + place * states_.extent(1);
    return RowStates<T>::in(memory, rows_, value_dim_).from(row, value_dim_);
  }

  Index rows_;
  Index value_dim_;
  std::span<const Index> chunks_;
  Tensor<T, 2> states_;
};

/// Number of keys that a task of the backward pass processes together, starting at absolute
/// multiples of it: their gradients stay in the caches while all queries pass by. The gradient of a
/// query is summed chunk by chunk, in order, so chunks may run on different threads.
inline constexpr Index backward_chunk = 2 * simd::key_block;

/// One thread's arrays for one chunk of keys and one block of queries at a time. `head_row` and
/// `value_row` are the dims padded to whole vectors of `lanes`. See divided_scratch.
template <class T>
struct BackwardScratch {
  Carver carver;
  Index head_dim, value_dim, lanes;
  Index head_row = rounded_up(head_dim, lanes);
  Index value_row = rounded_up(value_dim, lanes);
  T* queries = carver.take<T>(simd::query_block * head_row);
  T* grad_output = carver.take<T>(simd::query_block * value_row);
  T* packed_queries = carver.take<T>(simd::query_block * head_dim);
  T* packed_gradient = carver.take<T>(simd::query_block * value_row);
  T* probabilities = carver.take<T>(simd::query_block * simd::key_block);
  T* grad_scores = carver.take<T>(simd::query_block * simd::key_block);
  T* grad_queries = carver.take<T>(simd::query_block * head_row);
  T* rows = carver.take<T>(simd::query_block * head_row);
  simd::KeyGradients<T> chunk = take_gradients(backward_chunk);
  T* keys = carver.take<T>(simd::key_block * head_dim);
  T* values = carver.take<T>(simd::key_block * value_dim);
  simd::KeyGradients<T> gathered = take_gradients(simd::key_block);
  std::uint64_t* words = carver.take<std::uint64_t>(simd::key_block);
  Index* kept = carver.take<Index>(simd::key_block);

  simd::KeyGradients<T> take_gradients(Index count) {
    return {carver.take<T>(count * head_row), carver.take<T>(count * value_row)};
  }
};
template <class T>
BackwardScratch<T> backward_scratch(const AttentionArgs<T>& call, Index lanes) {
  return divided_scratch<BackwardScratch<T>>(call.head_dim(), call.value_dim(), lanes);
}

/// A range of keys that some query of a block sees, ready for a kernel.
struct VisibleKeys {
  Index first = 0;
  Index count = 0;
  const std::uint64_t* words = nullptr;  // one lane word per key; null: every query sees every key
  bool holes = false;                    // some keys in the range are seen by no query
};

/// The range of keys in the tile's key block that its queries see; count 0 if none. `words` has
/// room for a key block. The keys cut off add nothing to any row, so the cut changes no bit. The
/// queries are `step` apart: those from the tile's first one on, as many as it has.
inline VisibleKeys visible_keys(const MaskRef& mask, const Tile& tile, std::uint64_t* words,
                                Index step = 1) {
  const Coverage coverage = mask.coverage(tile, step);
  if (coverage == Coverage::none) return {};
  if (coverage == Coverage::full) return {tile.first_key, tile.keys(), nullptr, false};
  mask.lane_words(tile, step, words);
  const std::uint64_t everyone = lanes_between(0, tile.queries() - 1);
  Index first = tile.keys();
  Index last = -1;
  Index seen = 0;
  bool full = true;
  for (Index i = 0; i < tile.keys(); ++i) {
    words[i] &= everyone;
    full = full && words[i] == everyone;
    if (words[i] == 0) continue;
    if (first > i) first = i;
    last = i;
    ++seen;
  }
  if (seen == 0) return {};
  const Index count = last - first + 1;
  return {tile.first_key + first, count, full ? nullptr : words + first, seen < count};
}

/// The visible keys of query blocks and key blocks, computed for one head and cached for the
/// others: for masks that are asked about every score (MaskRef::shares_lane_words). Memory of the
/// thread, one key block of words per tile.
class SharedLaneWords {
 public:
  /// Room for `tiles` tiles, none computed yet.
  explicit SharedLaneWords(Index tiles) : tiles_(tiles) {
    divide_scratch<SharedLaneWords>([&](Carver& carver) {
      seen_ = carver.take<Entry>(tiles);
      words_ = carver.take<std::uint64_t>(tiles * simd::key_block);
    });
    forget();
  }

  void forget() {
    for (Index i = 0; i < tiles_; ++i) seen_[i].known = false;
  }

  /// The visible range of the tile's key block; the mask is asked on the first call for `index`.
  VisibleKeys visible_keys(const MaskRef& mask, const Tile& tile, Index index, Index step = 1) {
    Entry& entry = seen_[index];
    if (!entry.known) {
      entry = {detail::visible_keys(mask, tile, words_ + index * simd::key_block, step), true};
    }
    return entry.keys;
  }

 private:
  struct Entry {
    VisibleKeys keys;
    bool known;
  };
  Index tiles_;
  Entry* seen_ = nullptr;
  std::uint64_t* words_ = nullptr;
};

/// Compacts the visible keys of a range with holes, with the others of their groups: their indices
/// to `kept`, their words to the front. Returns their number.
inline Index drop_unseen(std::uint64_t* words, Index count, Index* kept, Index group = 1) {
  Index left = 0;
  for (Index first = 0; first < count; first += group) {
    const Index end = smaller(first + group, count);
    bool seen = false;
    for (Index i = first; i < end; ++i) seen = seen || words[i] != 0;
    for (Index i = first; seen && i < end; ++i) {
      kept[left] = i;
      words[left++] = words[i];
    }
  }
  return left;
}

/// Calls use(seen, first, last) for the blocks [first, last] of the keys [begin, end) of which some
/// are seen, in order. `begin` is a multiple of key_block. ask(first, last) gives the visible keys
/// of a block; it is not asked where `coverage`, that of all these keys, tells it.
template <class Ask, class Use>
void for_each_visible(Coverage coverage, Index begin, Index end, const Ask& ask, const Use& use) {
  if (coverage == Coverage::none) return;
  for (Index first = begin; first < end; first += simd::key_block) {
    const Index last = smaller(first + simd::key_block, end) - 1;
    const VisibleKeys seen = coverage == Coverage::full
                                 ? VisibleKeys{first, last - first + 1, nullptr, false}
                                 : ask(first, last);
    if (seen.count > 0) use(seen, first, last);
  }
}

/// Drops the keys of a block that no query sees from its words, which move to `words`, an array
/// that may hold them already, and writes the places of the others to `kept`.
template <class T>
void drop_unseen(simd::KeyBlock<T>& block, std::uint64_t* words, Index* kept) {
  for (Index i = 0; i < block.count; ++i) words[i] = block.words[i];
  block.words = words;
  block.count = drop_unseen(words, block.count, kept);
}

/// Undoes that for a row of query_block numbers per key, in place: row i moves to kept[i], and the
/// other rows before `end` are 0.
template <class T>
void spread_rows(T* rows, const Index* kept, Index count, Index end) {
  while (end-- > 0) {
    T* const row = rows + end * simd::query_block;
    const bool is_kept = count > 0 && kept[count - 1] == end;
    if (is_kept) --count;
    if (!is_kept) clear_numbers(row, simd::query_block);
    if (is_kept && count != end) {
      copy_rows<T>({rows + count * simd::query_block}, 1, simd::query_block, row,
                   simd::query_block);
    }
  }
}

/// Narrows the keys that `rows` queries see to those seen by the queries with a bit in `seeing`;
/// the log-sum-exp of the other queries says that they saw no key. `words` has room for a key
/// block.
inline VisibleKeys keys_seen_by(VisibleKeys seen, Index rows, std::uint64_t seeing,
                                std::uint64_t* words) {
  if (seeing == lanes_between(0, rows - 1)) return seen;
  std::uint64_t any = 0;
  for (Index i = 0; i < seen.count; ++i) {
    words[i] = seen.words == nullptr ? seeing : seen.words[i] & seeing;
    any |= words[i];
  }
  seen.words = words;
  if (any == 0) seen.count = 0;
  return seen;
}

/// Builds the ScoreModArrays of key blocks for one block of queries: gathers biases into strips
/// or a row, turns dropout's decisions into bits, runs the score function. No number depends on
/// which keys or queries are processed together.
template <class T>
class LaneScoreMods {
 public:
  /// Rows [row, row + rows) of one head.
  LaneScoreMods(const AttentionArgs<T>& args, const ForwardScratch<T>& scratch, Index item,
                Index head, Index row, Index rows)
      : score_mods_(args.score_mods),
        kernels_(simd::kernels<T>()),
        scratch_(scratch),
        first_(position_of(args, item, head, row, 0)),
        row_(row),
        rows_(rows),
        unit_(score_mods_.function.given() ? T{1} : static_cast<T>(bits_per_nat)) {}

  /// Attaches the arrays to the block. Key i of the block is key `first_key + (kept ? kept[i] :
  /// i)`; then keys() has them.
  void attach(simd::KeyBlock<T>& block, const simd::QueryBlock<T>& queries, Index first_key,
              const Index* kept) {
    arrays_ = {};
    arrays_.cap = product(score_mods_.softcap, unit_);
    for (Index i = 0; i < block.count; ++i) keys_[i] = first_key + (kept ? kept[i] : i);
    if (score_mods_.bias.given() || (score_mods_.any_bias() && kept)) {
      make_strips(block.count, kept == nullptr);
    } else if (score_mods_.any_bias()) {
      make_along_diagonal(block.count);
    }
    if (score_mods_.drops()) drop(block.count);
    block.score_mod = &arrays_;
    if (score_mods_.function.given()) run_function(block, queries);
  }
  const Index* keys() const { return keys_; }

 private:
  T on_diagonal(Index key, Index query) const {
    return product(score_mods_.at_distance(first_.head, key - first_.query - query), unit_);
  }

  /// Biases that depend only on key − query: one row, of which every key takes a window, shifted
  /// by one from key to key.
  void make_along_diagonal(Index count) {
    const Index length = count - 1 + simd::query_block;
    for (Index i = 0; i < length; ++i) {
      scratch_.bias[i] = on_diagonal(keys_[0], i - (count - 1));
    }
    arrays_.bias = scratch_.bias + count - 1;
    arrays_.bias_row = -1;
    arrays_.bias_strip = kernels_.strip_lanes;
  }

  /// All biases, [strip][key][lane].
  void make_strips(Index count, bool contiguous) {
    const Index lanes = kernels_.strip_lanes;
    const auto& view = score_mods_.bias.view();
    if (score_mods_.bias.given() && contiguous) {
      const T* from = view.data_handle() + first_.batch * view.stride(0) +
                      first_.head * view.stride(1) + row_ * view.stride(2) +
                      keys_[0] * view.stride(3);
      kernels_.pack({from, view.stride(2), view.stride(3)}, rows_, count, unit_, scratch_.bias);
    }
    for (Index query = 0; query < rows_; ++query) {
      T* to = scratch_.bias + query / lanes * lanes * count + query % lanes;
      for (Index key = 0; key < count; ++key) {
        T& bias = to[key * lanes];
        if (!contiguous) {
          bias = !score_mods_.bias.given()
                     ? T{0}
                     : product(view(first_.batch, first_.head, row_ + query, keys_[key]), unit_);
        }
        if (score_mods_.along_diagonals()) bias += on_diagonal(keys_[key], query);
      }
      if (contiguous && !score_mods_.along_diagonals()) break;
    }
    arrays_.bias = scratch_.bias;
    arrays_.bias_row = lanes;
    arrays_.bias_strip = lanes * count;
  }

  void drop(Index count) {
    const DropoutDraws draws(score_mods_.dropout);
    const auto draw = simd::dropout_kernel<>();
    std::uint64_t words[8] = {};  // of the eight keys of a group, one bit per query
    Index group = -1;
    for (Index key = 0; key < count; ++key) {
      if (keys_[key] >> 3 != group) {
        group = keys_[key] >> 3;
        draw(draws.lanes(first_, group, 0, 1, rows_), words);
      }
      scratch_.keep[key] = words[keys_[key] & 7];
    }
    arrays_.keep = scratch_.keep;
    arrays_.keep_factor = static_cast<T>(draws.factor());
  }

  void run_function(const simd::KeyBlock<T>& block, const simd::QueryBlock<T>& queries) {
    kernels_.scores(block, queries);
    const Index lanes = kernels_.strip_lanes;
    const Index step = lanes * simd::key_block;
    const ProgramCode asked;
    score_mods_.function.to_values(
        {queries.scores, step, lanes, keys_, block.count, block.words, first_, rows_});
    for (Index lane = 0; lane < rows_; lane += lanes) {
      T* strip = queries.scores + lane / lanes * step;
      for (Index i = 0; i < block.count * lanes; ++i) {
        strip[i] = product(strip[i], static_cast<T>(bits_per_nat));
      }
    }
    arrays_.given = true;
  }

  const ScoreMods<T>& score_mods_;
  const simd::Kernels<T>& kernels_;
  const ForwardScratch<T>& scratch_;
  Position first_;  // of the block's first query
  Index row_;
  Index rows_;
  T unit_;  // scores are in powers of 2, or of e for a score function
  Index keys_[simd::key_block];
  simd::ScoreModArrays<T> arrays_;
};

/// Builds the ScoreModArrays of key blocks for rows of queries; the same numbers as LaneScoreMods
/// computes for lanes of queries.
template <class T>
class RowScoreMods {
 public:
  /// Rows: the queries of head `head`, then those of the next head, and so on.
  RowScoreMods(const AttentionArgs<T>& args, const DecodeScratch<T>& scratch, Index item,
               Index head)
      : args_(args),
        score_mods_(args.score_mods),
        scratch_(scratch),
        first_(position_of(args, item, head, 0, 0)),
        unit_(score_mods_.function.given() ? T{1} : static_cast<T>(bits_per_nat)) {}

  /// Attaches the arrays to the block; `keys` are the positions of its keys.
  void attach(simd::KeyBlock<T>& block, const Index* keys, Index rows) {
    arrays_ = {};
    arrays_.cap = product(score_mods_.softcap, unit_);
    if (score_mods_.any_bias()) {
      for (Index row = 0; row < rows; ++row) make_biases(keys, block.count, row);
      arrays_.bias = scratch_.bias;
      arrays_.bias_row = simd::row_keys;
    }
    if (score_mods_.drops()) {
      const DropoutDraws draws(score_mods_.dropout);
      for (Index row = 0; row < rows; ++row) drop(draws, keys, block.count, row);
      arrays_.keep = scratch_.keep;
      arrays_.keep_factor = static_cast<T>(draws.factor());
    }
    block.score_mod = &arrays_;
  }

  /// Runs the score function, if there is one, on the scores of the block.
  void run_function(const simd::QueryRows<T>& rows, const Index* keys, Index count,
                    const std::uint64_t* visible) const {
    if (!score_mods_.function.given()) return;
    const ProgramCode asked;
    const Index lanes = simd::kernels<T>().strip_lanes;
    for (Index row = 0; row < rows.count; ++row) {
      Position at = position(row);
      for (Index key = 0; key < count; ++key) {
        T& score = rows.scores[(key / lanes * rows.count + row) * lanes + key % lanes];
        if (visible == nullptr || (visible[2 * row + (key >> 6)] >> (key & 63) & 1) != 0) {
          at.key = keys[key];
          score = score_mods_.function.value(score, at);
        }
        score = product(score, static_cast<T>(bits_per_nat));
      }
    }
  }

 private:
  Position position(Index row) const {
    const Index queries = args_.query_count();
    Position at = first_;
    at.head += row / queries;
    at.query += row % queries;
    return at;
  }

  void make_biases(const Index* keys, Index count, Index row) const {
    const Position at = position(row);
    const Index query = row % args_.query_count();
    const auto& view = score_mods_.bias.view();
    for (Index key = 0; key < count; ++key) {
      T bias = 0;
      if (score_mods_.bias.given())
        bias = product(view(at.batch, at.head, query, keys[key]), unit_);
      if (score_mods_.along_diagonals()) {
        bias += product(score_mods_.at_distance(at.head, keys[key] - at.query), unit_);
      }
      scratch_.bias[row * simd::row_keys + key] = bias;
    }
  }

  void drop(const DropoutDraws& draws, const Index* keys, Index count, Index row) const {
    std::uint64_t* keep = scratch_.keep + 2 * row;
    keep[0] = keep[1] = 0;
    if (count == 0) return;
    const Index first = keys[0] >> 3, groups = (keys[count - 1] >> 3) - first + 1;
    std::uint64_t words[8];  // of draw i of a group's eight, one bit per group
    simd::dropout_kernel<>()(draws.lanes(position(row), first, 1, 0, groups), words);
    for (Index key = 0; key < count; ++key) {
      const std::uint64_t bit = words[keys[key] & 7] >> ((keys[key] >> 3) - first) & 1;
      keep[key >> 6] |= bit << (key & 63);
    }
  }

  const AttentionArgs<T>& args_;
  const ScoreMods<T>& score_mods_;
  const DecodeScratch<T>& scratch_;
  Position first_;
  T unit_;
  simd::ScoreModArrays<T> arrays_;
};

}  // namespace heed::detail
