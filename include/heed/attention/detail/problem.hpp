// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include <heed/attention/detail/check_memory.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/score_changes.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/simd/pair_kernels.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed::detail {

/// A rank-2 (length, dim) or rank-3 (heads, length, dim) view as rank 4 (batch, heads, length,
/// dim).
template <class T, std::size_t Rank>
TensorView<T, 4> as_rank_4(const TensorView<T, Rank>& view) {
  static_assert(Rank >= 2 && Rank <= 4,
                "attention takes views of (batch, heads, length, dim), (heads, length, dim) or "
                "(length, dim)");
  if constexpr (Rank == 4) {
    return view;
  } else {
    return as_rank_4(view.with_leading_axis());
  }
}

/// An attention call after its checks: all tensors of rank 4, every option decided.
template <class T>
struct AttentionProblem {
  Operand<T> queries;           // (batch, heads, queries, head_dim)
  Operand<T> keys;              // (batch, key heads, keys, head_dim)
  Operand<T> values;            // (batch, key heads, keys, value_dim)
  Result<T> out;                // (batch, heads, queries, value_dim)
  PerQueryView<T> log_sum_exp;  // (batch, heads, queries)
  T scale = 0;
  Index first_query = 0;
  std::span<const Index> first_queries;
  ScoreChanges<T> changes;
  std::span<const Index> key_counts = {};       // of each batch item; empty: all keys
  Index item_offset = 0;                        // what masks see of batch item 0
  bool last_lines_up = false;                   // the last query with the last key, item by item
  const simd::PairKernels<T>* pairs = nullptr;  // of tensors of bfloat16, where the CPU has such

  Index batch() const { return queries.extent(0); }
  Index heads() const { return queries.extent(1); }
  Index query_count() const { return queries.extent(2); }
  Index key_count() const { return keys.extent(2); }
  Index head_dim() const { return queries.extent(3); }
  Index value_dim() const { return values.extent(3); }
  /// The key head that query head `head` reads.
  Index key_head(Index head) const { return head / (heads() / keys.extent(1)); }
  Index key_count_of(Index item) const {
    return key_counts.empty() ? key_count() : key_counts[static_cast<std::size_t>(item)];
  }
  Index first_query_of(Index item) const {
    if (!first_queries.empty()) return first_queries[static_cast<std::size_t>(item)];
    return last_lines_up ? key_count_of(item) - query_count() : first_query;
  }
};

/// Fails unless queries and keys can be multiplied and heads can be grouped.
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
void check_out(const AttentionProblem<T>& problem) {
  const auto& queries = problem.queries;
  const Extents<4> expected{queries.extent(0), queries.extent(1), queries.extent(2),
                            problem.value_dim()};
  if (problem.out.extents() != expected) {
    throw_shape_error("attention: out is ", problem.out.extents(), ", expected (batch, heads, ",
                      "queries, value_dim) = ", expected);
  }
  check_memory(problem.out, queries, problem.keys, problem.values);
}

template <class T>
void check_log_sum_exp(const AttentionProblem<T>& problem) {
  if (!problem.log_sum_exp.given()) return;
  const auto& view = problem.log_sum_exp.view();
  const Extents<3> expected{problem.batch(), problem.heads(), problem.query_count()};
  if (view.extents() != expected) {
    throw_shape_error("attention: log_sum_exp is ", view.extents(),
                      ", expected (batch, heads, queries) = ", expected);
  }
  if (has_internal_overlap(view)) {
    throw_shape_error("attention: elements of log_sum_exp share memory");
  }
  const ByteRange written = byte_range(view);
  if (meet(written, problem.queries.bytes()) || meet(written, problem.keys.bytes()) ||
      meet(written, problem.values.bytes()) || meet(written, problem.out.bytes())) {
    throw_shape_error("attention: log_sum_exp overlaps another tensor of the call");
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
void take_key_counts(AttentionProblem<T>& problem, std::span<const Index> counts) {
  problem.key_counts = counts;
  if (counts.empty()) return;
  if (static_cast<Index>(counts.size()) != problem.batch()) {
    throw_shape_error("attention: ", counts.size(), " key_counts for a batch of ", problem.batch());
  }
  for (const Index count : counts) {
    if (count < 0 || count > problem.key_count()) {
      throw_shape_error("attention: a key_count of ", count, " where there are ",
                        problem.key_count(), " keys");
    }
  }
}

/// Takes the positions from the options; refuses some that would overflow position arithmetic.
template <class T>
void decide_first_query(AttentionProblem<T>& problem, const AttentionOptions<T>& options) {
  constexpr Index limit = std::numeric_limits<Index>::max() / 4;
  const auto in_range = [](Index first) { return first > -limit && first < limit; };
  problem.first_query = options.first_query.value_or(problem.key_count() - problem.query_count());
  problem.first_queries = options.first_queries;
  problem.last_lines_up = !options.first_query && options.first_queries.empty();
  if (options.first_query && !options.first_queries.empty()) {
    throw_invalid_argument("attention: give first_query or first_queries, not both");
  }
  if (!options.first_queries.empty() &&
      static_cast<Index>(options.first_queries.size()) != problem.batch()) {
    throw_shape_error("attention: ", options.first_queries.size(), " first_queries for a batch of ",
                      problem.batch());
  }
  bool fits = in_range(problem.first_query);
  for (const Index first : options.first_queries) fits = fits && in_range(first);
  if (!fits)
    throw_invalid_argument("attention: first_query ", problem.first_query, " is out of range");
}

/// All checks that need no mask; throws InvalidArgument before anything is written.
template <class T>
AttentionProblem<T> checked_problem(const Operand<T>& queries, const Operand<T>& keys,
                                    const Operand<T>& values, const Result<T>& out,
                                    const AttentionOptions<T>& options) {
  AttentionProblem<T> problem{queries, keys, values, out, options.log_sum_exp, 0, 0, {}, {}};
  check_queries_and_keys(queries, keys);
  check_values(keys, values);
  check_out(problem);
  check_log_sum_exp(problem);
  problem.scale = decide_scale(options.scale, problem.head_dim());
  take_key_counts(problem, options.key_counts);
  decide_first_query(problem, options);
  problem.changes = checked_changes(
      options,
      Extents<4>{problem.batch(), problem.heads(), problem.query_count(), problem.key_count()});
  const auto check_written = [&](const char* name, ByteRange written) {
    check_apart(name, written, problem.changes);
    check_apart(name, written, problem.first_queries, problem.key_counts);
  };
  check_written("out", out.bytes());
  if (problem.log_sum_exp.given()) {
    check_written("log_sum_exp", byte_range(problem.log_sum_exp.view()));
  }
  return problem;
}

/// The same of queries stored as X, with what multiplies such numbers.
template <class X>
AttentionProblem<ComputedIn<X>> checked_call(const Operand<ComputedIn<X>>& queries,
                                             const Operand<ComputedIn<X>>& keys,
                                             const Operand<ComputedIn<X>>& values,
                                             const Result<ComputedIn<X>>& out,
                                             const AttentionOptions<ComputedIn<X>>& options) {
  using T = ComputedIn<X>;
  auto problem = checked_problem<T>(queries, keys, values, out, options);
  if constexpr (std::is_same_v<X, bfloat16>) problem.pairs = simd::pair_kernels<T>();
  return problem;
}

#if !HEED_DEFINITIONS
// heed::compiled holds these: a fifth of the time that a unit with one call takes to compile.
extern template AttentionProblem<float> checked_problem<float>(const Operand<float>&,
                                                               const Operand<float>&,
                                                               const Operand<float>&,
                                                               const Result<float>&,
                                                               const AttentionOptions<float>&);
extern template AttentionProblem<double> checked_problem<double>(const Operand<double>&,
                                                                 const Operand<double>&,
                                                                 const Operand<double>&,
                                                                 const Result<double>&,
                                                                 const AttentionOptions<double>&);
#endif

}  // namespace heed::detail
