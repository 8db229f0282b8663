// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/bfloat16_views.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/view.hpp>

/// The fused kernels on checked calls: declared here, defined by
/// <heed/attention/detail/definitions.hpp> or in the library where HEED_COMPILED is set.
namespace heed::detail {

template <class T>
void run_attention(const AttentionProblem<T>& problem, const MaskRef& mask);

/// The same for tensors of bfloat16; the problem has their extents and no data.
template <class T>
void run_bfloat16(const Bfloat16Views& views, const AttentionProblem<T>& problem,
                  const MaskRef& mask);

/// Weights of the rows [row, row + out.extent(0)) of one head, into out (rows, keys).
template <class T>
void run_weights(const AttentionProblem<T>& problem, const MaskRef& mask, Index item, Index head,
                 Index row, const TensorView<T, 2>& out);

template <class T>
void run_backward(const BackwardProblem<T>& problem, const MaskRef& mask);

}  // namespace heed::detail
