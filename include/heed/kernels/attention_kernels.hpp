// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/index.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/kernels/matrix_ref.hpp>

namespace heed::simd {

/// Number of queries in a block: one bit each in a 64-bit lane word.
inline constexpr Index query_block = 64;
/// Number of keys in a block; blocks start at absolute multiples of it. A multiple of the 6
/// rows of a micro tile.
inline constexpr Index key_block = 96;
/// Softmax sums are kept per chunk of this many keys and then merged in key order, so that a
/// decoder that splits its keys over threads at chunk borders gets the same bits.
inline constexpr Index key_chunk = 16 * key_block;

/// Score modifications between the product and the mask, and dropout of probabilities after the
/// sums, in units of log2. Arrays have one row per key of the block, before any keys are cut off
/// its ends.
template <class T>
struct ScoreModArrays {
  bool given = false;  // QueryBlock::scores holds the changed scores already
  T cap = 0;           // not 0: cap · tanh(score · ln(2) / 2), with queries packed for that
  const T* bias =
      nullptr;  // null, or added: element (key, lane) of a strip at key · bias_row + lane
  Index bias_row = 0;
  Index bias_strip = 0;                 // distance between the biases of two strips
  const std::uint64_t* keep = nullptr;  // null, or dropout: one bit per weight, set if it stays
  T keep_factor = 1;                    // the factor on weights that stay
};

/// Up to `key_block` keys in ascending order, not always consecutive ones, with their values.
template <class T>
struct KeyBlock {
  MatrixRef<T> keys;    // (key, dim)
  MatrixRef<T> values;  // (key, value_dim)
  Index count = 0;
  const std::uint64_t* words = nullptr;  // lane word per key; null: all queries see all keys
  bool guard_values = false;             // with words: some value of the block is NaN or Inf
  const ScoreModArrays<T>* score_mod = nullptr;  // null: plain scores
  Index cut = 0;  // keys cut off in front: rows to skip in the arrays of `score_mod`
};

/// The running softmax of one block of queries over some keys, in units of log2: maximum m, sum l
/// of 2^(s - m), and the weighted sum of values, `output`, transposed. A lane that has seen no key
/// has m = lowest(), l = 0 and output = 0; before the first `attend`, output is not set.
template <class T>
struct SoftmaxState {
  T* maximum = nullptr;  // [lane]
  T* sum = nullptr;      // [lane]
  T* output = nullptr;   // [strip][value_dim][lane of strip]
};

/// Rows of several matrices that are read or written soon. Kernels prefetch a few of each while
/// they compute: a burst of prefetches would be waited for.
struct ComingRows {
  struct Rows {
    const char* data;
    Index stride;  // from row to row, in bytes, like all that follows
    Index width;
    Index count;  // of the rows that are not yet prefetched
  };
  Rows matrices[8];
  int count = 0;                          // of the matrices
  bool near = detail::prefetches_near();  // few rows always go into the first-level cache
  bool far = false;   // read late, or with rows of other heads between those of one
  Index size = 0;     // of all matrices
  Index at_once = 1;  // rows of each matrix

  /// Leaves out rows whose numbers lie apart. Inlined because kernels call it, whatever the user's
  /// build optimizes.
  template <class Number>
  __attribute__((always_inline)) void add(const MatrixRef<Number>& rows, Index columns,
                                          Index row_count) {
    if (rows.column_stride != 1) return;
    constexpr auto each = static_cast<Index>(sizeof(Number));
    matrices[count++] = {reinterpret_cast<const char*>(rows.data), rows.row_stride * each,
                         columns * each, row_count};
    far = far || rows.row_stride != columns;
    size += row_count * columns * each;
  }
};

/// A block of queries: its packed rows, its shape and its scratch.
template <class T>
struct QueryBlock {
  const T* packed = nullptr;   // [strip][head_dim][lane of strip], times the call's query_factor:
                               // scale · log2(e), but with a softcap or a score function
  T* probabilities = nullptr;  // scratch: [key_block][lane of strip]; the kernel of that name
                               // writes one such array for every strip
  T* scores = nullptr;  // [strip][key_block][lane of strip], scratch; for ScoreModArrays only
  Index count = 0;      // queries, at most query_block
  Index head_dim = 0;
  Index value_dim = 0;
  ComingRows* coming = nullptr;  // null, or what to prefetch
};

/// The kernels of one instruction set for one scalar type. They are plain functions behind
/// pointers: nothing here depends on a user's type, so they compile once. All work lane by lane; no
/// result depends on the other lanes computed with it.
template <class T>
struct Kernels {
  /// Number of queries in one strip, side by side; a block of query_block queries is query_block /
  /// strip_lanes strips.
  Index strip_lanes;
  /// packed[strip][column][lane] = rows(lane, column) · factor; lanes past `count` are
  /// unspecified.
  void (*pack)(MatrixRef<T> rows, Index count, Index columns, T factor, T* packed);
  /// out(lane, column) = transposed[strip][column][lane] · factors[lane] + 0.
  void (*unpack)(const T* transposed, Index count, Index columns, const T* factors, T* out,
                 Index row_stride, Index column_stride);
  /// Computes the modified scores of a block into QueryBlock::scores, where a score function may
  /// modify them further before `attend` reads them.
  void (*scores)(const KeyBlock<T>& keys, const QueryBlock<T>& queries);
  /// Adds one block of keys to the softmax. `first`: the state is fresh and its output unset.
  void (*attend)(const KeyBlock<T>& keys, const QueryBlock<T>& queries,
                 const SoftmaxState<T>& state, bool first);
  /// probabilities[strip][key of key_block][lane] = 2^(s - maximum[lane]), 0 where masked.
  void (*probabilities)(const KeyBlock<T>& keys, const QueryBlock<T>& queries, T* maximum);
  /// total = total ⊕ part, the log-sum-exp merge of two sets of keys.
  void (*merge)(const SoftmaxState<T>& total, const SoftmaxState<T>& part, Index count,
                Index value_dim);
  /// Whether every element of `rows` × `columns` is finite.
  bool (*all_finite)(const MatrixRef<T>& matrix, Index rows, Index columns);
  /// out[i] = 2^in[i] by the kernels' own exponential; for weights and for measuring its error.
  void (*exp2)(const T* in, T* out, Index count);
};

/// The lazy maximum moves where a block's sum of 2^(s - maximum) exceeds this, 2^40. It is far
/// below overflow, and harmless to accuracy, which is relative.
template <class T>
inline constexpr T lazy_limit = static_cast<T>(1099511627776.0);

/// Number of keys for which rows of scores have room: key_block, rounded up to whole strips.
inline constexpr Index row_keys = 128;

/// What the kernels with keys in the lanes know of a few rows of queries in any format.
template <class T>
struct DecodedRows {
  T* scores = nullptr;                     // [strip of keys][row][lane], scratch
  T* maximum = nullptr;                    // [row], as in SoftmaxState
  T* sum = nullptr;                        // [row]
  T* output = nullptr;                     // [row][output_stride], starts as zeros
  Index output_stride = 0;                 // value_dim, rounded up to a multiple of 16
  const std::uint64_t* visible = nullptr;  // [row][2]: one bit per key; null: all are seen
  Index count = 0;
  Index head_dim = 0;
  Index value_dim = 0;
  bool near = false;       // whether to prefetch into the first-level cache
  bool soon = false;       // whether to prefetch what is read next, see prefetches_soon
  bool later = true;       // whether to prefetch what is read later
  Index next_columns = 0;  // of the rows read after those of the call

  /// The bits of the keys from `key` on, as far as they are in one word. Inlined like
  /// ComingRows::add.
  __attribute__((always_inline)) std::uint64_t bits(Index row, Index key) const {
    return visible[2 * row + (key >> 6)] >> (key & 63);
  }
};

/// A few rows of queries and one block of keys, with keys in the lanes: for decoding, where a block
/// of queries would leave its lanes empty. The chains of additions are those of QueryBlock's
/// kernels, so the bits are the same. In a ScoreModArrays, `bias` and `keep` are (row, key) here.
template <class T>
struct QueryRows : DecodedRows<T> {
  const T* rows = nullptr;     // [row][head_dim], scaled like packed queries
  T* packed = nullptr;         // [strip of keys][head_dim][lane], scratch
  T* probabilities = nullptr;  // [row][row_keys], scratch
  T* tail = nullptr;           // [key_block][a vector], scratch
  MatrixRef<T> next = {};  // the rows read after those of the call, if known: they are prefetched
  /// Where the keys and the values of the next block begin that are to be widened, if any are;
  /// where bits are read in place, the first is `next` in bits.
  MatrixRef<std::uint16_t> next_bits[2] = {};
};

/// The decoding kernels of one instruction set for one scalar type.
template <class T>
struct DecodeKernels {
  // Both are null where few queries are computed like many, with the same bits.
  /// Computes rows.scores of a block of keys, modified by its ScoreModArrays.
  void (*scores)(const KeyBlock<T>& keys, const QueryRows<T>& rows);
  /// Adds the block of keys, whose scores are in rows.scores, to the softmax. Values have
  /// column_stride 1.
  void (*attend)(const KeyBlock<T>& keys, const QueryRows<T>& rows);
};

/// Few queries and few keys of one head, the first of a call.
template <class T>
struct ShortArgs {
  MatrixRef<T> queries;   // (query, head_dim)
  MatrixRef<T> keys;      // (key, head_dim) of its key head
  MatrixRef<T> values;    // (key, value_dim)
  Index query_count = 0;  // at most query_block
  Index key_count = 0;    // at most key_block
  Index head_dim = 0;
  Index value_dim = 0;
  T query_factor = 0;                    // scale · log2(e)
  const std::uint64_t* words = nullptr;  // lane word per key; null: all queries see all keys
};

/// Some heads of one batch item with few queries and few keys, whose queries see the same keys. One
/// call computes all of them, since a single head is too short to be worth a call.
template <class T>
struct ShortForwardArgs : ShortArgs<T> {
  T* out = nullptr;      // (query, value_dim) of the first head
  Index query_head = 0;  // stride between heads
  Index out_head = 0;
  Index key_head = 0;  // stride between key heads
  Index value_head = 0;
  Index out_row = 0;  // stride of rows of out
  Index out_column = 0;
  Index heads = 0;
  Index first_head = 0;          // head `first_head` + i reads key head (first_head + i) / sharing,
  Index sharing = 1;             // counted from the key head of first_head
  T* packed = nullptr;           // [head_dim][a vector], scratch
  T* probabilities = nullptr;    // [key_block][a vector], scratch
  T* output = nullptr;           // [value_dim][a vector], scratch
  T* tail = nullptr;             // [key_block][a vector], scratch
  T* maximum = nullptr;          // [head][query_block]: as in SoftmaxState, for the log-sum-exp
  T* sum = nullptr;              // [head][query_block]
  ComingRows* coming = nullptr;  // not null: prefetch the next head; scratch
};

/// Attention of all heads of a run, including its output. The chains of additions are those of
/// QueryBlock's kernels, so the bits are the same.
template <class T>
using ShortForwardKernel = void (*)(const ShortForwardArgs<T>& run);

/// Where the numbers of a run lie in bfloat16, with column_stride 1. Of its ShortForwardArgs,
/// queries, keys and values are not used, and out is scratch for the results of one vector of
/// queries, (query, value_dim), in consecutive rows.
template <class T>
struct ShortBits {
  MatrixRef<std::uint16_t> queries;
  MatrixRef<std::uint16_t> keys;
  MatrixRef<std::uint16_t> values;
  std::uint16_t* out = nullptr;
  Index out_row = 0;
  T* wide_keys = nullptr;    // [key][head_dim], scratch
  T* wide_values = nullptr;  // [key][value_dim], scratch
};

/// Up to `key_block` consecutive keys with their values, in bfloat16, in groups that start at
/// absolute multiples of PairKernels::group.
struct PairKeys {
  MatrixRef<std::uint16_t> keys;          // (key, dim), column_stride 1, whole groups of columns
  const std::uint16_t* values = nullptr;  // as `turn` or `zip` leave them, in whole rows_at_once
  MatrixRef<std::uint16_t> lying = {};  // of `attend_rows`: values in place (key, column), or null
  Index before = 0;                     // keys in front of these among the values, whole groups
  Index arranged = 0;                   // all keys among the values
  Index count = 0;
  const std::uint64_t* words = nullptr;  // lane word per key; null: all queries see all keys
  bool guard_values = false;             // with words: some value of the block is NaN or Inf
  Index blocks = 1;       // of `attend`: so many, one behind the other, whose keys all queries see
  Index values_step = 0;  // from the values of one of them to those of the next

  /// Moves on to the block behind this one.
  void advance() {
    keys.data += count * keys.row_stride;
    values += values_step;
  }
};

/// A block of queries and the scratch for its scores, with sums of type T.
template <class T>
struct PairQueries {
  const std::uint16_t* packed = nullptr;  // as `pack` leaves them
  T* scores = nullptr;                    // [key_block][lane of strip], scratch
  T factor = 0;                           // scores times this are in units of log2
  Index count = 0;
  Index head_dim = 0;
  Index value_dim = 0;
  ComingRows* coming = nullptr;  // null, or what to prefetch; not by AMX tiles
};

/// A few rows of queries and a block of keys, like QueryRows.
template <class T>
struct PairRows : DecodedRows<T> {
  const std::uint16_t* rows = nullptr;     // [row][2 · depth], zeros after head_dim
  std::uint16_t* packed = nullptr;         // [row_keys][2 · depth], scratch
  std::uint16_t* probabilities = nullptr;  // [row][row_keys] of whole rows_at_once, scratch
  T factor = 0;
  Index depth = 0;                     // pairs in the whole groups of head_dim
  MatrixRef<std::uint16_t> next = {};  // as in QueryRows
};

/// The kernels of a processor that multiplies bfloat16 in pairs or in tiles of pairs, and sums in T
/// = float. Scores are exact products summed in float; weights are rounded to bfloat16. Strips of
/// queries, or of keys in decoding, have Kernels<T>::strip_lanes, and states are those of
/// Kernels<T>.
template <class T>
struct PairKernels {
  /// The terms that one instruction adds to a sum: keys, and columns of queries and keys, come in
  /// groups of this many, a power of two, filled up with zeros. Which keys share a group decides
  /// bits.
  Index group;
  /// Rows of keys, of probabilities and of turned values are read this many at a time, a power of
  /// two; what the rows after the last one hold decides no bit.
  Index rows_at_once;
  /// Up to how many rows `attend_rows` reads values in place for, where there are no words.
  Index most_lying;
  /// packed[strip][column / 2][lane][column % 2] = rows(lane, column), with zeros up to a whole
  /// group of columns; lanes past `count` repeat the last row.
  void (*pack)(MatrixRef<std::uint16_t> rows, Index count, Index columns, std::uint16_t* packed);
  /// pairs[row / 2][column][row % 2] = rows(row, column), with zeros up to a whole group of rows:
  /// values for `attend_rows`.
  void (*zip)(MatrixRef<std::uint16_t> rows, Index count, Index columns, std::uint16_t* pairs);
  /// Values for `attend`: like `zip` where pairs are multiplied, and for tiles turned[column][row]
  /// = rows(row, column), with zeros up to a whole group of rows.
  void (*turn)(MatrixRef<std::uint16_t> rows, Index count, Index columns, std::uint16_t* turned);
  /// Whether no value is NaN or infinite.
  bool (*all_finite)(const std::uint16_t* values, Index count);
  /// Bfloat16Kernels::narrow for operands of these kernels: denormal numbers may become 0.
  void (*narrow)(MatrixRef<T> from, Index rows, Index columns, std::uint16_t* to, Index to_row);
  /// Like Kernels::attend.
  void (*attend)(const PairKeys& keys, const PairQueries<T>& queries, const SoftmaxState<T>& state,
                 bool first);
  /// Null, or what is called before and after some `score_rows`: tiles are in use in between.
  void (*begin_scores)();
  void (*end_scores)();
  /// Like those of DecodeKernels. The visible keys are those of the bits in PairRows, not of the
  /// words in `keys`.
  void (*score_rows)(const PairKeys& keys, const PairRows<T>& rows);
  void (*attend_rows)(const PairKeys& keys, const PairRows<T>& rows);
};

/// The matrix product of a processor that multiplies bfloat16 in tiles and sums in T = float:
/// sums(row, lane) (+)= Σ_k a(row, k) · b(k, lane). `a` holds [rows][depth], `b` [depth /
/// 2][lanes][2], `sums` [rows][lanes]; strides count elements. rows and lanes are multiples of 16,
/// depth of 32. Each 32 terms are two chains of fused multiply-adds from zero, over even and odd k,
/// added up and then added to the sum; denormal numbers count as zero.
template <class T>
using TileKernel = void (*)(const std::uint16_t* a, Index a_row, Index rows, const std::uint16_t* b,
                            Index b_row, Index lanes, Index depth, T* sums, Index sums_row,
                            bool accumulate);

/// Conversions between bfloat16, as bits, and T.
template <class T>
struct Bfloat16Kernels {
  /// to(row, column) = from(row, column), exactly; `to` is contiguous.
  void (*widen)(MatrixRef<std::uint16_t> from, Index rows, Index columns, T* to);
  /// to[row · to_row + column] = from(row, column), rounded to nearest, ties to even; NaN stays
  /// NaN. T = float only, like `round`.
  void (*narrow)(MatrixRef<T> from, Index rows, Index columns, std::uint16_t* to, Index to_row);
  /// The same numbers in T.
  void (*round)(MatrixRef<T> from, Index rows, Index columns, T* to, Index to_row);
  /// Like those of DecodeKernels, for keys and values in bfloat16 that all rows see, with the bits
  /// of widened ones. Both have column_stride 1, and head_dim and value_dim are multiples of
  /// bit_columns. Null where widening the block first is all there is.
  void (*scores)(const KeyBlock<std::uint16_t>& keys, const QueryRows<T>& rows);
  void (*attend)(const KeyBlock<std::uint16_t>& keys, const QueryRows<T>& rows);
  /// Like ShortForwardKernel, with the bits of widened operands and a rounded result. Null where
  /// copies of both are all there is.
  void (*attend_short)(const ShortForwardArgs<T>& run, const ShortBits<T>& bits);
};
/// Columns that Bfloat16Kernels::scores and attend take at a time.
inline constexpr Index bit_columns = 16;

/// Philox counters {group, query, head, batch}, one per lane: lane i has group + i · group_step and
/// query + i · query_step, modulo 2³².
struct DropoutLanes {
  std::uint32_t group = 0;
  std::uint32_t query = 0;
  std::uint32_t head = 0;
  std::uint32_t batch = 0;
  std::uint32_t group_step = 0;
  std::uint32_t query_step = 0;
  std::uint32_t key[2] = {0, 0};  // of the generator
  std::uint32_t dropped = 0;      // of the 65536 values of a draw, the first `dropped` are dropped
  Index lanes = 0;                // at most 64
};

/// Dropout of attention weights. Bit l of words[i]: whether draw i of lane l, bits 16·i … 16·i + 15
/// of its 128, is at least `dropped`. Bits from `lanes` on are unspecified.
using DropoutKernel = void (*)(const DropoutLanes& counters, std::uint64_t (&words)[8]);

/// A block of at most query_block queries in the backward pass: its rows, to be multiplied lane by
/// lane, and the same rows transposed, with a lane per query. Transposed rows are query_block lanes
/// long; lanes past `count` are computed and not used.
template <class T>
struct BackwardQueries {
  const T* queries = nullptr;          // [query][head_dim, padded by zeros to row_lanes]
  const T* grad_output = nullptr;      // [query][value_dim, padded likewise]
  const T* packed_queries = nullptr;   // [strip][head_dim][lane of strip], in the kernels' units
  const T* packed_gradient = nullptr;  // [strip][value_dim][lane of strip], of the output
  const T* log_sum_exp = nullptr;      // [lane], in units of log2
  const T* delta = nullptr;            // [lane], Σ_d grad_output · output − grad_log_sum_exp
  T* probabilities = nullptr;          // [key_block][lane], scratch
  T* grad_scores = nullptr;            // [key_block][lane], scratch
  T* grad_queries = nullptr;           // [head_dim][lane], added to; not yet times scale
  Index count = 0;
  Index head_dim = 0;
  Index value_dim = 0;
  bool guard_rows = false;    // some query or grad_output is NaN or Inf
  const T* scores = nullptr;  // [strip][key_block][lane of strip], where a ScoreModArrays is given
  const T* slopes = nullptr;  // likewise: the derivatives of a score function
  T* capped_grads = nullptr;  // null, or like grad_scores, but for the softcapped scores
  ComingRows* coming = nullptr;  // null, or what to prefetch
};

/// The gradients of a block of keys and of their values, added to; keys not yet times scale.
template <class T>
struct KeyGradients {
  T* keys = nullptr;    // [key][head_dim, padded by zeros to row_lanes]
  T* values = nullptr;  // [key][value_dim, padded likewise]
};

/// The backward kernels of one instruction set for one scalar type; like Kernels, and separate from
/// it so that programs without training do not compile them.
template <class T>
struct BackwardKernels {
  /// Rows that are read beside lanes are padded to a multiple of this.
  Index row_lanes;
  /// rows[lane][column, padded to `row_stride`] = packed[column][lane] · factor + 0.
  void (*unpack)(const T* packed, Index count, Index columns, T factor, T* rows, Index row_stride);
  /// out[row] = Σ_column a(row, column) · b(row, column); column_stride 1, columns a multiple of
  /// row_lanes.
  void (*row_dots)(MatrixRef<T> a, MatrixRef<T> b, Index rows, Index columns, T* out);
  /// out(row, column) = from[row][column] · factor + (out(row, column) if `accumulate`, else 0).
  void (*put_rows)(const T* from, Index from_stride, Index rows, Index columns, T factor,
                   bool accumulate, T* out, Index row_stride, Index column_stride);
  /// sums[row · step + i] += rows[row][i] for the first `columns` numbers of rows of query_block.
  void (*add_in_double)(const T* rows, Index count, Index columns, double* sums, Index step);
  /// Computes probabilities and score gradients, 0 where masked.
  void (*grad_scores)(const KeyBlock<T>& keys, const BackwardQueries<T>& queries);
  /// Adds the contributions of one block of queries and one block of keys to the gradients of
  /// queries, keys and values. `guard_keys`: a key is NaN or Inf where a lane word has a 0.
  void (*backward)(const KeyBlock<T>& keys, const BackwardQueries<T>& queries,
                   const KeyGradients<T>& gradients, bool guard_keys);
};

/// Keys are read in multiples of this many by PairBackwardKernel.
inline constexpr Index pair_key_rows = 32;

/// A block of query_block queries and one of `key_count` keys in bfloat16, both filled up with
/// zeros: the operand of PairBackwardKernel. `key_count` is a multiple of pair_key_rows, up to
/// key_block. `head_depth` and `value_depth` are the dims in whole groups of 32, `head_row` and
/// `value_row` in whole vectors.
template <class T>
struct PairGradientBlock {
  const std::uint16_t* packed_queries = nullptr;  // PairKernels::pack of [query][head_depth]
  const std::uint16_t* packed_gradient =
      nullptr;                                    // likewise of [query][value_depth], of the output
  const std::uint16_t* zipped_queries = nullptr;  // PairKernels::zip of [query][head_row]
  const std::uint16_t* zipped_gradient = nullptr;  // likewise of [query][value_row]
  MatrixRef<std::uint16_t> keys;                   // (key, head_depth), column_stride 1
  MatrixRef<std::uint16_t> values;                 // (key, value_depth), likewise
  const std::uint16_t* turned_keys = nullptr;      // PairKernels::turn of [key][head_row]
  const T* log_sum_exp = nullptr;                  // as in BackwardQueries
  const T* delta = nullptr;
  T* scores = nullptr;                          // [key][lane], scratch, like all that follow
  T* grad_weights = nullptr;                    // [key][lane]
  std::uint16_t* probabilities = nullptr;       // [key][lane]
  std::uint16_t* grad_scores = nullptr;         // [key][lane]
  std::uint16_t* paired_grad_scores = nullptr;  // [key / 2][lane][2]
  T* grad_queries = nullptr;                    // [head_row][lane], added to; not yet times scale
  T factor = 0;                                 // scores times this are in units of log2
  Index key_count = key_block;
  Index head_depth = 0;
  Index value_depth = 0;
  Index head_row = 0;
  Index value_row = 0;
  const std::uint64_t* words = nullptr;  // lane word per key; null: all queries see all keys
  KeyGradients<T> gradients;             // added to
  ComingRows* coming = nullptr;          // null, or what to prefetch
};

/// BackwardKernels::backward of a processor that multiplies bfloat16 in pairs or tiles. Its
/// PairKernels arrange the operands. P and dS are rounded to bfloat16.
template <class T>
using PairBackwardKernel = void (*)(const PairGradientBlock<T>& block);

/// One head with few queries and few keys in the backward pass, computed in one call. Columns of
/// all tensors are contiguous.
template <class T>
struct ShortBackwardArgs : ShortArgs<T> {
  MatrixRef<T> output;       // (query, value_dim)
  MatrixRef<T> grad_output;  // likewise
  T* grad_queries = nullptr;
  T* grad_keys = nullptr;
  T* grad_values = nullptr;
  Index grad_query_row = 0;  // stride between rows
  Index grad_key_row = 0;
  Index grad_value_row = 0;
  const T* log_sum_exp = nullptr;  // [query_block], in units of log2; 0: saw no key
  T scale = 0;
  T* packed_queries = nullptr;   // [head_dim][a vector], scratch
  T* packed_gradient = nullptr;  // [value_dim][a vector], scratch
  T* probabilities = nullptr;    // [key_block][query_block], scratch
  T* grad_scores = nullptr;      // [key_block][query_block], scratch
  T* key_tail = nullptr;         // [key_block][a vector], scratch
  T* query_tail = nullptr;       // [query_block][a vector], scratch
  T* gradient_tail = nullptr;    // [query_block][a vector], scratch
  ComingRows* coming = nullptr;  // null, or what to prefetch
};

/// Computes the gradients of one head. The chains of additions are those of BackwardKernels, so the
/// bits are the same. Returns false, and writes nothing, where a NaN or Inf is next to masked
/// scores, which it must not meet.
template <class T>
using ShortBackwardKernel = bool (*)(const ShortBackwardArgs<T>& head);

// The kernels of the active instruction set, and where these are pointers, null if it has none.

template <class T>
const Kernels<T>& kernels();
template <class T>
const DecodeKernels<T>& decode_kernels();
template <class T>
ShortForwardKernel<T> short_forward_kernel();
template <class T>
const PairKernels<T>* pair_kernels();
/// For tests.
template <class T>
TileKernel<T> tile_kernel();
template <class T>
const Bfloat16Kernels<T>& bfloat16_kernels();
/// Wide: the type whose vectors have the lanes of 64-bit products.
template <class Wide = double>
DropoutKernel dropout_kernel();
template <class T>
const BackwardKernels<T>& backward_kernels();
template <class T>
PairBackwardKernel<T> pair_backward_kernel();
template <class T>
ShortBackwardKernel<T> short_backward_kernel();

}  // namespace heed::simd
