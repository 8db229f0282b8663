// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/backward_problem.hpp>
#include <heed/attention/detail/plan.hpp>
#include <heed/attention/detail/problem.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/view.hpp>

/// The fused kernels on checked calls: declared here, defined by
/// <heed/attention/detail/definitions.hpp> or in the library where HEED_COMPILED is set.
namespace heed::detail {

/// How a call is to be computed.
template <class T>
AttentionPlan plan_of(const AttentionProblem<T>& problem, const MaskRef& mask);

/// Computes a call as a plan says that fits it.
template <class T>
void run_planned(const AttentionProblem<T>& problem, const MaskRef& mask,
                 const AttentionPlan& plan);

/// Both.
template <class T>
void run_attention(const AttentionProblem<T>& problem, const MaskRef& mask);

/// Weights of the rows [row, row + out.extent(0)) of one head, into out (rows, keys).
template <class T>
void run_weights(const AttentionProblem<T>& problem, const MaskRef& mask, Index item, Index head,
                 Index row, const TensorView<T, 2>& out);

template <class T>
void run_backward(const BackwardProblem<T>& problem, const MaskRef& mask);

}  // namespace heed::detail
