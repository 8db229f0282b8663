// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/parallel.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

template <class X, class T>
void check_parts(const TensorView<X, 4>& out, const TensorView<T, 3>& lse,
                 const TensorView<const X, 4>& other, const TensorView<const T, 3>& other_lse) {
  const Extents<3> rows{out.extent(0), out.extent(1), out.extent(2)};
  if (other.extents() != out.extents() || lse.extents() != rows || other_lse.extents() != rows) {
    throw_shape_error("merge: out ", out.extents(), " and ", other.extents(), ", log_sum_exp ",
                      lse.extents(), " and ", other_lse.extents(),
                      ", expected (batch, heads, queries, dim) and (batch, heads, queries)");
  }
  if (has_internal_overlap(out) || has_internal_overlap(lse) || overlaps(out, lse)) {
    throw_shape_error("merge: out and log_sum_exp must not share memory");
  }
  if (overlaps(out, other) || overlaps(out, other_lse) || overlaps(lse, other) ||
      overlaps(lse, other_lse)) {
    throw_shape_error("merge: out or log_sum_exp overlaps other or other_log_sum_exp");
  }
}

/// One row of `merge`.
template <class T, class X>
void merge_row(const TensorView<X, 1>& to, T& lse, const TensorView<const X, 1>& from, T from_lse) {
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  const auto mine = static_cast<double>(lse), theirs = static_cast<double>(from_lse);
  if (theirs == nothing) return;
  const double larger = mine > theirs ? mine : theirs;
  const auto power = [](double x) { return x == 0 ? 1.0 : exp(x); };
  const double keep = power(mine - larger), add = power(theirs - larger), sum = keep + add;
  // A set without visible keys counts as absent, whatever stands there; a weight that is rounded
  // to 0 does not hide a NaN.
  for (Index d = 0; mine == nothing && d < to.extent(0); ++d) to(d) = X{};
  const auto mixed = [=](X old, X other) {
    const auto x = static_cast<double>(static_cast<T>(old));
    return (keep * x + add * static_cast<double>(static_cast<T>(other))) / sum;
  };
  Index d = 0;
  if (to.stride(0) == 1 && from.stride(0) == 1) {
    constexpr Index run = 16;  // so many that compilers make vectors of them, with -O2 too
    for (; d + run <= to.extent(0); d += run) {
      X* out = to.data_handle() + d;
      const X* in = from.data_handle() + d;
      double results[run];
      for (Index i = 0; i < run; ++i) results[i] = mixed(out[i], in[i]);
      for (Index i = 0; i < run; ++i) out[i] = static_cast<X>(results[i]);
    }
  }
  for (; d < to.extent(0); ++d) to(d) = static_cast<X>(mixed(to(d), from(d)));
  lse = static_cast<T>(larger + log(sum));
}

}  // namespace detail

/// Merges attention over two disjoint sets of keys: overwrites `out` and `log_sum_exp` with the
/// results of the same queries over both sets, up to rounding. Shapes as `attention` writes them,
/// of any rank it takes: outputs of one scalar type, log-sum-exps of that which the call computed
/// in. A set of which a query sees nothing (log-sum-exp −inf) changes nothing. Give
/// AttentionOptions::sinks to one of the two calls only: the result would count them twice. Throws
/// ShapeError, before the first write, for shapes that do not fit and for outputs that overlap
/// another tensor. For keys in different places: a shared prompt, another machine, an older window.
template <Viewable Out, Viewable Lse, Viewable Other, Viewable OtherLse>
void merge(Out&& out, Lse&& log_sum_exp, const Other& other, const OtherLse& other_log_sum_exp) {
  using X = ValueOf<Out>;
  using T = ComputedIn<X>;
  const TensorView<X, 4> to = detail::as_rank_4(view_of(out));
  const TensorView<const X, 4> from = detail::as_rank_4(view_of(other));
  const Extents<3> rows{to.extent(0), to.extent(1), to.extent(2)};
  const auto lse = OptionalView<T, 3>(log_sum_exp).fitted(rows).view();
  const auto from_lse = OptionalView<const T, 3>(other_log_sum_exp).fitted(rows).view();
  detail::check_parts(to, lse, from, from_lse);
  constexpr Index queries = 64, nanoseconds = 10;  // a thread takes at a time; for a number
  const Index heads = rows[0] * rows[1], parts = detail::parts_of(rows[2], queries);
  const auto merge_part = [&](Index i) {
    const Index first = i % parts * queries, b = i / parts / rows[1], h = i / parts % rows[1];
    for (Index q = first; q < detail::smaller(first + queries, rows[2]); ++q) {
      const Extents<4> at{b, h, q, 0};
      detail::merge_row<T>(detail::row_at(to, at), lse(b, h, q), detail::row_at(from, at),
                           from_lse(b, h, q));
    }
  };
  detail::parallel_for_if_worth(heads * parts, heads * rows[2] * to.extent(3) * nanoseconds,
                                merge_part);
}

}  // namespace heed
