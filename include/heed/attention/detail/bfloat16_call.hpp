// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/bfloat16_views.hpp>
#include <heed/attention/detail/call_masks.hpp>
#include <heed/attention/detail/check_memory.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/attention/detail/run.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/overlap.hpp>

namespace heed::detail {

/// Extents without memory, for checks that look at nothing else.
template <class To, class From>
TensorView<To, 4> shape_of(const TensorView<From, 4>& view) {
  return TensorView<To, 4>(nullptr, view.extents(), Extents<4>{});
}

/// checked_problem of bfloat16 tensors; throws ShapeError before anything is written.
template <class T>
AttentionProblem<T> checked_bfloat16_problem(const Bfloat16Views& views,
                                             const AttentionOptions<T>& options) {
  const auto problem =
      checked_problem<T>(shape_of<const T>(views.queries), shape_of<const T>(views.keys),
                         shape_of<const T>(views.values), shape_of<T>(views.out), options);
  check_memory(views.out, views.queries, views.keys, views.values);
  check_apart("out", byte_range(views.out), problem.changes);
  check_apart("out", byte_range(views.out), problem.first_queries, problem.key_counts);
  if (problem.log_sum_exp.given()) {
    const auto& view = problem.log_sum_exp.view();
    if (overlaps(view, views.queries) || overlaps(view, views.keys) ||
        overlaps(view, views.values) || overlaps(view, views.out)) {
      throw_shape_error("attention: log_sum_exp overlaps another tensor of the call");
    }
  }
  return problem;
}

/// `attention` of bfloat16 tensors. T is float; a parameter, so that nothing is compiled unused.
template <class M, class T>
void bfloat16_attention(const Bfloat16Views& views, const M& mask,
                        const AttentionOptions<T>& options) {
  const auto problem = checked_bfloat16_problem(views, options);
  check_mask_fits(mask, problem);
  run_bfloat16(views, problem, MaskRef(mask));
}

}  // namespace heed::detail
