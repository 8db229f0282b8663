// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include <heed/attention/detail/operands.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed::simd {
enum class Isa;
}

namespace heed {

/// The plan of an attention call: `plan` returns it, and `run_planned` follows it. Only
/// `arithmetic` affects the bits of the result.
struct AttentionPlan {
  /// What the lanes of vectors hold: queries, in blocks of 64 that meet blocks of 96 keys; or,
  /// where queries are few, the keys of a block.
  enum class Lanes { queries, keys };
  /// The arithmetic of scores and weighted sums: in the call's scalar type, or, for bfloat16, by
  /// the CPU's instruction for bfloat16 pairs or the one for tiles of them, with weights rounded to
  /// bfloat16.
  enum class Arithmetic { scalar, bfloat16_pairs, bfloat16_tiles };
  /// The heads in one task: one; several that share the answers of the mask; several that share one
  /// key head; or several of short sequences, in one kernel call or, where heads are copied, in a
  /// call for each.
  enum class Grouping { each_head, shared_mask, shared_keys, one_kernel_call };

  simd::Isa isa{};
  Lanes lanes = Lanes::queries;
  Arithmetic arithmetic = Arithmetic::scalar;
  Grouping grouping = Grouping::each_head;
  Index heads = 1;                                  // per task
  Index row_step = 1;                               // between the queries of a task
  Index last_queries = 0;                           // of each head, that have keys in their lanes
  Index tasks = 0;                                  // of the call; 0: not counted yet
  Index threads = 1;                                // that share the tasks
  const char* why = "there is nothing to compute";  // reason for lanes and grouping
  const char* why_arithmetic = "all tensors are stored in the scalar type";

  // Counts of tiles of 64 queries by 96 keys, over batch and heads; filled in by `plan` only.
  Index skipped = 0;  // no query sees a key: never computed
  Index partial = 0;  // masked score by score
  Index full = 0;     // computed without a mask

  Index tiles() const { return skipped + partial + full; }
  /// The share of tiles that are computed.
  double computed_share() const {
    return tiles() == 0 ? 0.0 : static_cast<double>(partial + full) / static_cast<double>(tiles());
  }
};

}  // namespace heed

namespace heed::detail {

// Score modifications. ----------------------------------------------------------------------------

/// The score modifications of a call beyond scale and mask: AttentionOptions after their checks.
template <class T>
struct ScoreMods {
  T softcap = 0;
  std::span<const T> alibi_slopes;       // (heads)
  TensorView<const T, 2> relative_bias;  // (heads, distances), no distances: none
  OptionalView<const T, 4> bias;         // (batch, heads, queries, keys)
  ScoreFunction<T> function;
  std::span<const T> sinks;  // (heads)
  WeightDropout dropout;

  bool along_diagonals() const { return !alibi_slopes.empty() || relative_bias.extent(1) > 0; }
  bool any_bias() const { return along_diagonals() || bias.given(); }
  bool drops() const { return DropoutDraws(dropout).dropped > 0; }
  /// Whether any score or weight is modified; sinks modify only sums.
  bool any() const { return softcap != T{0} || any_bias() || function.given() || drops(); }

  /// The sum of the biases that depend on the head and on key − query.
  T at_distance(Index head, Index distance) const {
    T sum = 0;
    if (!alibi_slopes.empty()) {
      const Index away = distance < 0 ? -distance : distance;
      sum = -product(alibi_slopes[static_cast<std::size_t>(head)], static_cast<T>(away));
    }
    if (relative_bias.extent(1) > 0) {
      const Index reach = relative_bias.extent(1) / 2;
      const Index within = distance < -reach ? -reach : distance > reach ? reach : distance;
      sum += relative_bias(head, within + reach);
    }
    return sum;
  }
};

/// Throws unless `values` is empty or holds one number per head.
template <class T>
void check_per_head(const char* name, std::span<const T> values, Index heads) {
  if (values.empty() || static_cast<Index>(values.size()) == heads) return;
  throw_shape_error("attention: ", values.size(), " ", name, " for ", heads, " heads");
}

/// The bias broadcast to `scores`. Throws ShapeError for an extent that is neither 1 nor that of
/// the scores.
template <class T>
OptionalView<const T, 4> broadcast_bias(const OptionalView<const T, 4>& bias,
                                        const Extents<4>& scores) {
  if (!bias.given()) return {};
  auto view = bias.view();
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (view.extent(axis) == scores[axis]) continue;
    if (view.extent(axis) != 1) {
      throw_shape_error("attention: bias is ", bias.view().extents(), ", expected (batch, heads, ",
                        "queries, keys) = ", scores, " or 1 in their places");
    }
    view = view.broadcast(axis, scores[axis]);
  }
  return view;
}

/// The score modifications in `options` for scores (batch, heads, queries, keys). Throws ShapeError
/// or InvalidArgument.
template <class T>
ScoreMods<T> checked_score_mods(const AttentionOptions<T>& options, const Extents<4>& scores) {
  const T cap = options.softcap * T{2};  // room for the kernels' log2(e) < 2
  if (!(cap >= T{0} && cap - cap == T{0})) {
    throw_invalid_argument("attention: softcap is ", static_cast<double>(options.softcap),
                           "; expected 0 (none) or a number above it, twice of which is finite");
  }
  if (!(options.dropout.probability >= 0 && options.dropout.probability <= 1)) {
    throw_invalid_argument("attention: dropout has probability ", options.dropout.probability,
                           ", expected 0 to 1");
  }
  if (options.dropout.probability > 0 && !options.dropout.seed) {
    throw_invalid_argument("attention: dropout has no seed; expected another one in every step, ",
                           "{.probability = 0.1f, .seed = step}");
  }
  check_per_head<T>("alibi_slopes", options.alibi_slopes, scores[1]);
  check_per_head<T>("sinks", options.sinks, scores[1]);
  ScoreMods<T> score_mods{options.softcap,        options.alibi_slopes,
                          options.relative_bias,  broadcast_bias(options.bias, scores),
                          options.score_function, options.sinks,
                          options.dropout};
  auto& relative = score_mods.relative_bias;
  if (relative.extent(0) == 0 && relative.extent(1) == 0) return score_mods;
  if (relative.extent(1) % 2 == 0) {
    throw_shape_error("attention: relative_bias has ", relative.extent(1),
                      " distances, expected an odd number: -r to r");
  }
  if (relative.extent(0) == 1 && scores[1] != 1) relative = relative.broadcast(0, scores[1]);
  if (relative.extent(0) != scores[1]) {
    throw_shape_error("attention: relative_bias has ", relative.extent(0), " rows for ", scores[1],
                      " heads");
  }
  return score_mods;
}

// The arguments and their checks. --------------------------------------------------------------

/// A checked attention call: all tensors of rank 4, every option decided.
template <class T>
struct AttentionArgs {
  Operand<T> queries;              // (batch, heads, queries, head_dim)
  Operand<T> keys;                 // (batch, kv_heads, keys, head_dim)
  Operand<T> values;               // (batch, kv_heads, keys, value_dim)
  Result<T> out;                   // (batch, heads, queries, value_dim)
  OptionalView<T, 3> log_sum_exp;  // (batch, heads, queries)
  T scale = 0;
  Index first_query = 0;
  std::span<const Index> first_queries;
  ScoreMods<T> score_mods;
  std::span<const Index> key_counts = {};       // per batch item; empty: all keys
  Index item_offset = 0;                        // the batch index that masks see for item 0
  Index head_offset = 0;                        // the head that masks see for head 0
  Index query_offset = 0;                       // added to query positions
  Index other_queries = 0;                      // of the call, which are not among these
  bool ends_align = false;                      // the last query aligns with the last key, per item
  const simd::PairKernels<T>* pairs = nullptr;  // for bfloat16 numbers, if the CPU has them
  const RoundingKernels<T>* rounding = nullptr;  // null: numbers are taken as they are stored

  Index batch() const { return queries.extent(0); }
  Index heads() const { return queries.extent(1); }
  Index kv_heads() const { return keys.extent(1); }
  /// Number of query heads that share a key head; not for calls without key heads.
  Index sharing() const { return heads() / kv_heads(); }
  Index query_count() const { return queries.extent(2); }
  Index key_count() const { return keys.extent(2); }
  Index head_dim() const { return queries.extent(3); }
  Index value_dim() const { return values.extent(3); }
  /// Whether some numbers are rounded to bfloat16 as they are read.
  bool rounds() const { return queries.rounds() || keys.rounds() || values.rounds(); }
  /// Whether there is no query, so nothing to compute.
  bool empty() const { return batch() == 0 || heads() == 0 || query_count() == 0; }
  /// The bytes of queries, keys, values and output, in T.
  double bytes() const {
    const Index rows = heads() * query_count() + kv_heads() * key_count();
    const double columns = static_cast<double>(head_dim() + value_dim()) * sizeof(T);
    return static_cast<double>(batch() * rows) * columns;
  }
  /// Whether the tensors are larger than caches, so that it pays to prefetch them for all heads.
  bool exceeds_caches() const { return bytes() > 8 << 20; }
  /// The key head that query head `head` reads.
  Index key_head(Index head) const { return head / sharing(); }
  Index key_count_of(Index item) const {
    return key_counts.empty() ? key_count() : key_counts[static_cast<std::size_t>(item)];
  }
  Index first_query_of(Index item) const {
    if (!first_queries.empty()) return first_queries[static_cast<std::size_t>(item)];
    return ends_align ? key_count_of(item) - query_count() - other_queries : first_query;
  }
  /// The position of a query, as masks see it.
  Index query_position(Index item, Index query) const {
    return first_query_of(item) + query_offset + query;
  }
};

/// The queries [first, end) of a call.
template <class T>
AttentionArgs<T> queries_of(const AttentionArgs<T>& args, Index first, Index end) {
  AttentionArgs<T> some = args;
  some.queries = args.queries.slice(first, end);
  some.out = args.out.slice(first, end);
  if (args.log_sum_exp.given()) some.log_sum_exp = args.log_sum_exp.view().slice(2, first, end);
  auto& bias = some.score_mods.bias;
  if (bias.given()) bias = bias.view().slice(2, first, end);
  some.query_offset += first;
  some.other_queries += args.query_count() - (end - first);
  return some;
}

/// Throws unless queries and keys can be multiplied and query heads divide evenly among key heads.
template <class T>
void check_queries_and_keys(const Operand<T>& queries, const Operand<T>& keys) {
  if (keys.extent(0) != queries.extent(0)) {
    throw_shape_error("attention: queries have a batch of ", queries.extent(0), ", keys of ",
                      keys.extent(0));
  }
  if (keys.extent(3) != queries.extent(3)) {
    throw_shape_error("attention: queries have head_dim ", queries.extent(3), ", keys ",
                      keys.extent(3));
  }
  const Index heads = queries.extent(1);
  const Index kv_heads = keys.extent(1);
  if (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0) {
    throw_shape_error("attention: ", heads, " query heads do not divide into groups over ",
                      kv_heads, " key heads");
  }
}

template <class T>
void check_values(const Operand<T>& keys, const Operand<T>& values) {
  if (values.extent(2) != keys.extent(2)) {
    throw_shape_error("attention: keys have ", keys.extent(2), " tokens, values ",
                      values.extent(2));
  }
  if (values.extent(0) != keys.extent(0) || values.extent(1) != keys.extent(1)) {
    throw_shape_error("attention: keys are (batch, heads) (", keys.extent(0), ", ", keys.extent(1),
                      "), values (", values.extent(0), ", ", values.extent(1), ")");
  }
}

template <class T>
void check_results(const AttentionArgs<T>& args) {
  const Extents<3> rows{args.batch(), args.heads(), args.query_count()};
  const Extents<4> expected{rows[0], rows[1], rows[2], args.value_dim()};
  if (args.out.extents() != expected) {
    throw_shape_error("attention: out is ", args.out.extents(), ", expected (batch, heads, ",
                      "queries, value_dim) = ", expected);
  }
  if (args.log_sum_exp.given() && args.log_sum_exp.view().extents() != rows) {
    throw_shape_error("attention: log_sum_exp is ", args.log_sum_exp.view().extents(),
                      ", expected (batch, heads, queries) = ", rows);
  }
}

/// Calls visit(name, addresses) for everything that a call reads.
template <class T, class Visit>
void for_each_read(const AttentionArgs<T>& args, const Visit& visit) {
  const auto visit_list = [&]<class Number>(const char* name, std::span<const Number> numbers) {
    visit(name, byte_range(TensorView<const Number, 1>(numbers)));
  };
  const ScoreMods<T>& score_mods = args.score_mods;
  visit("queries", args.queries.bytes());
  visit("keys", args.keys.bytes());
  visit("values", args.values.bytes());
  if (score_mods.bias.given()) visit("bias", byte_range(score_mods.bias.view()));
  visit("relative_bias", byte_range(score_mods.relative_bias));
  visit_list("alibi_slopes", score_mods.alibi_slopes);
  visit_list("sinks", score_mods.sinks);
  visit_list("first_queries", args.first_queries);
  visit_list("key_counts", args.key_counts);
}

/// Throws unless the results can be written while everything else is read.
template <class T>
void check_written(const AttentionArgs<T>& args) {
  const auto check_separate = [&](const char* name, ByteRange written) {
    for_each_read(args, [&](const char* other, ByteRange read) {
      if (meet(written, read)) throw_shape_error("attention: ", name, " overlaps ", other);
    });
  };
  const Result<T>& out = args.out;
  if (has_internal_overlap(out.extents(), out.strides())) {
    throw_shape_error("attention: elements of out share memory (extents ", out.extents(),
                      ", strides ", out.strides(), ")");
  }
  check_separate("out", out.bytes());
  if (!args.log_sum_exp.given()) return;
  const auto& view = args.log_sum_exp.view();
  if (has_internal_overlap(view)) {
    throw_shape_error("attention: elements of log_sum_exp share memory");
  }
  check_separate("log_sum_exp", byte_range(view));
  if (meet(byte_range(view), out.bytes())) {
    throw_shape_error("attention: log_sum_exp overlaps out");
  }
}

/// 1 / √head_dim. A builtin: <cmath> would cost users a tenth of this header's compile time.
template <class T>
T inverse_square_root(Index head_dim) {
  if constexpr (std::is_same_v<T, long double>) {
    return T{1} / __builtin_sqrtl(static_cast<T>(head_dim));
  } else {
    return static_cast<T>(1 / __builtin_sqrt(static_cast<double>(head_dim)));
  }
}

/// The scale to use; refuses NaN and infinity.
template <class T>
T decide_scale(const std::optional<T>& scale, Index head_dim) {
  if (!scale) return head_dim == 0 ? T{1} : inverse_square_root<T>(head_dim);
  if (!(*scale - *scale == T{0})) {
    throw_invalid_argument("attention: scale must be finite, not ",
                           *scale != *scale ? "NaN" : "infinite");
  }
  return *scale;
}

template <class T>
void take_key_counts(AttentionArgs<T>& args, std::span<const Index> counts) {
  args.key_counts = counts;
  if (counts.empty()) return;
  if (static_cast<Index>(counts.size()) != args.batch()) {
    throw_shape_error("attention: ", counts.size(), " key_counts for a batch of ", args.batch());
  }
  for (const Index count : counts) {
    if (count < 0 || count > args.key_count()) {
      throw_shape_error("attention: a key_count of ", count, " where there are ", args.key_count(),
                        " keys");
    }
  }
}

/// Takes the positions from the options; refuses those that would overflow position arithmetic.
template <class T>
void decide_first_query(AttentionArgs<T>& args, const AttentionOptions<T>& options) {
  constexpr Index limit = std::numeric_limits<Index>::max() / 4;
  args.first_query = options.first_query.value_or(args.key_count() - args.query_count());
  args.first_queries = options.first_queries;
  args.ends_align = !options.first_query && options.first_queries.empty();
  if (options.first_query && !options.first_queries.empty()) {
    throw_invalid_argument("attention: give first_query or first_queries, not both");
  }
  if (!options.first_queries.empty() &&
      static_cast<Index>(options.first_queries.size()) != args.batch()) {
    throw_shape_error("attention: ", options.first_queries.size(), " first_queries for a batch of ",
                      args.batch());
  }
  const auto check = [](const char* what, Index first) {
    if (first > -limit && first < limit) return;
    throw_invalid_argument("attention: ", what, " ", first, " is out of range");
  };
  check("first_query", args.first_query);
  for (const Index first : options.first_queries) check("one of first_queries,", first);
}

/// All checks that need no mask. Throws ShapeError or InvalidArgument, before the first write.
template <class T>
AttentionArgs<T> checked_args(const Operand<T>& queries, const Operand<T>& keys,
                              const Operand<T>& values, const Result<T>& out,
                              const AttentionOptions<T>& options) {
  const Extents<3> rows{queries.extents()[0], queries.extents()[1], queries.extents()[2]};
  AttentionArgs<T> args{queries, keys, values, out, options.log_sum_exp.fitted(rows), 0, 0, {}, {}};
  check_queries_and_keys(queries, keys);
  check_values(keys, values);
  check_results(args);
  args.scale = decide_scale(options.scale, args.head_dim());
  take_key_counts(args, options.key_counts);
  decide_first_query(args, options);
  args.score_mods = checked_score_mods(
      options, Extents<4>{args.batch(), args.heads(), args.query_count(), args.key_count()});
  check_written(args);
  args.rounding = options.products.rounding();
  if (args.rounding == nullptr && options.products != Products::exact) {
    throw_invalid_argument("attention: products are exact or, of floats, in bfloat16");
  }
  for (auto* operand : {&args.queries, &args.keys, &args.values}) {
    *operand = operand_of(*operand, options.products);
  }
  args.pairs = args.queries.pair_kernels();
  return args;
}

#if !HEED_DEFINITIONS
// Instantiated in heed::compiled: a fifth of the compile time of a unit with one call.
extern template AttentionArgs<float> checked_args(const Operand<float>&, const Operand<float>&,
                                                  const Operand<float>&, const Result<float>&,
                                                  const AttentionOptions<float>&);
extern template AttentionArgs<double> checked_args(const Operand<double>&, const Operand<double>&,
                                                   const Operand<double>&, const Result<double>&,
                                                   const AttentionOptions<double>&);
#endif

// The units of kernels, and the positions of masks. -----------------------------------------------

// Kernels count in powers of 2: log2(e), and ln(2) to convert back.
inline constexpr double bits_per_nat = 1.4426950408889634074;
inline constexpr double nats_per_bit = 0.69314718055994530942;

/// The factor on queries or, for pairs and tiles, on scores. It puts scores in the kernels' units,
/// or in those that a softcap takes; those for a score function it only scales.
template <class T>
T query_factor(const AttentionArgs<T>& args) {
  const auto scale = static_cast<double>(args.scale);
  if (args.score_mods.softcap != T{0}) {  // tanh_of_log2 takes 2·log2(e)·score / softcap
    return static_cast<T>(scale * 2 * bits_per_nat / static_cast<double>(args.score_mods.softcap));
  }
  if (args.score_mods.function.given()) return args.scale;
  return static_cast<T>(scale * bits_per_nat);
}

/// Whether pairs and tiles, which apply the scale after the products, can compute the scores of a
/// call: unmodified, and scaled by so much that no product overflows where its score does not. No
/// shape affects the answer, so all parts of a sequence are computed alike.
template <class T>
bool fits_pairs(const AttentionArgs<T>& args) {
  const T size = args.scale < T{0} ? -args.scale : args.scale;
  return !args.score_mods.any() && size > T{1e-6f};
}

/// Whether a call multiplies bfloat16 in pairs or tiles.
template <class T>
bool multiplies_pairs(const AttentionArgs<T>& args) {
  return args.pairs != nullptr && args.keys.is_bfloat16() && fits_pairs(args);
}

/// A score, or ±inf if it overflows in the kernels' units, where it is log2(e) times as large.
template <class T>
T within_range(T score) {
  const T bits = score * static_cast<T>(bits_per_nat);
  return bits - bits == T{0} ? score : bits;
}

/// The mask tile of `rows` queries of a head from `row` on and keys [first_key, last_key]. Where
/// queries are a step apart, last_query only says how many there are; see MaskRef::coverage.
template <class T>
Tile tile_of(const AttentionArgs<T>& args, Index item, Index head, Index row, Index rows,
             Index first_key, Index last_key) {
  const Index first = args.query_position(item, row);
  return {item + args.item_offset,
          head + args.head_offset,
          first,
          first + rows - 1,
          first_key,
          last_key,
          args.first_query_of(item)};
}

/// The position of one score of a call.
template <class T>
Position position_of(const AttentionArgs<T>& args, Index item, Index head, Index query, Index key) {
  return {item + args.item_offset, head + args.head_offset, args.query_position(item, query), key,
          args.first_query_of(item)};
}

/// The shape that the mask of a call has to fit.
template <class T>
MaskShape shape_of_call(const AttentionArgs<T>& args) {
  MaskShape shape{args.batch(), args.heads(), args.query_count(), args.key_count()};
  // A call without queries needs no rows of a mask, wherever these would be.
  shape.partial = shape.batch == 0 || shape.queries == 0;
  if (shape.partial) return shape;
  Index last = shape.first_query = args.first_query_of(0);
  for (Index item = 1; item < shape.batch; ++item) {
    shape.first_query = smaller(shape.first_query, args.first_query_of(item));
    last = larger(last, args.first_query_of(item));
  }
  shape.last_query = last + shape.queries - 1;
  return shape;
}

template <class T>
void check_mask_fits(const MaskRef& mask, const AttentionArgs<T>& args) {
  mask.check(shape_of_call(args));
}

// What the schedules do with a checked call. ------------------------------------------------------
// Defined in the two schedules, which <heed/definitions/attention.hpp> includes.

template <class T>
struct BackwardArgs;
template <class T>
class PausedRows;
template <class T>
class ChunkRows;

/// Plans a call.
template <class T>
AttentionPlan plan_of(const AttentionArgs<T>& args, const MaskRef& mask);

/// Computes a call by a plan that fits it.
template <class T>
void run_planned(const AttentionArgs<T>& args, const MaskRef& mask, const AttentionPlan& plan);

/// Adds the keys [first, end) of every batch item to `rows`, which hold all keys before; the bits
/// are those of a call that has all keys at once. `first` is a multiple of simd::key_chunk, and so
/// is `end` unless it is behind the last key. `between` runs on the calling thread after each of
/// its tasks. Reads no other keys.
template <class T>
void take_keys(const AttentionArgs<T>& args, const MaskRef& mask, Index first, Index end,
               PausedRows<T>& rows, FunctionRef<void()> between);
/// Writes the results of rows that hold all keys.
template <class T>
void write_rows(const AttentionArgs<T>& args, const MaskRef& mask, PausedRows<T>& rows);
/// Computes the states of all rows over each of the chunks. The call has at most simd::query_block
/// queries, and reads the keys of these chunks alone.
template <class T>
void take_chunks(const AttentionArgs<T>& args, const MaskRef& mask, ChunkRows<T>& rows);
/// Adds the chunks [first, end) of the list to the total, or begins it with them unless it has
/// `begun`. The bits are those of one call if all chunks that it may see are added in key order.
template <class T>
void add_chunks(const AttentionArgs<T>& args, const MaskRef& mask, Index first, Index end,
                bool begun, ChunkRows<T>& rows);
/// Writes the results of totals that hold all keys.
template <class T>
void write_total(const AttentionArgs<T>& args, const MaskRef& mask, ChunkRows<T>& rows);

/// Whether any query of the call may see one of the keys [first, end); true of a mask that
/// classifies no tiles.
template <class T>
bool may_see(const AttentionArgs<T>& args, const MaskRef& mask, Index first, Index end);

/// Plans and computes a call.
template <class T>
void run_attention(const AttentionArgs<T>& args, const MaskRef& mask);

/// Checks, plans and computes a call.
template <class T>
void attend(const std::type_identity_t<Operand<T>>& queries,
            const std::type_identity_t<Operand<T>>& keys,
            const std::type_identity_t<Operand<T>>& values,
            const std::type_identity_t<Result<T>>& out, const AttentionOptions<T>& options,
            const MaskRef& mask);

/// Computes the weights of the rows [row, row + out.extent(0)) of one head, into out (rows, keys).
template <class T>
void run_weights(const AttentionArgs<T>& args, const MaskRef& mask, Index item, Index head,
                 Index row, const TensorView<T, 2>& out);

template <class T>
void run_backward(const BackwardArgs<T>& args, const MaskRef& mask);
/// A part of a backward call whose gradients are added up part by part: the queries of head number
/// `member` among those that share a key head, and the keys [first_key, end_key). Both ends are
/// multiples of backward_chunk, except the end of all keys.
struct BackwardPart {
  Index member = 0;
  Index first_key = 0;
  Index end_key = 0;
};
/// Adds a part to the gradients. The bits are those of one call if, for every key, the members come
/// one after another with their queries in order, in runs that begin at multiples of
/// simd::query_block, and if for every query the keys come in order. `between` runs on the calling
/// thread after each of its tasks.
template <class T>
void add_backward_part(const BackwardArgs<T>& args, const MaskRef& mask, const BackwardPart& part,
                       FunctionRef<void()> between);
/// Puts the last factor on the gradients of keys to which all queries have been added.
template <class T>
void finish_key_gradients(const BackwardArgs<T>& args, const MaskRef& mask,
                          const BackwardPart& part);

}  // namespace heed::detail
