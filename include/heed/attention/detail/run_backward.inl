// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/head_gradients.hpp>
#include <heed/attention/detail/run.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// Below about this many multiply-adds a call stays on its own thread: waking another costs more.
inline constexpr double backward_parallel_threshold = 2e6;

template <class T>
void run_backward(const BackwardProblem<T>& problem, const MaskRef& mask) {
  const auto& call = problem.forward;
  const double work = static_cast<double>(call.batch() * call.heads()) *
                      static_cast<double>(call.query_count()) *
                      static_cast<double>(call.key_count()) *
                      static_cast<double>(3 * call.head_dim() + 2 * call.value_dim());
  const bool alone = work < backward_parallel_threshold;
#if HEED_SIMD_ALL_KERNELS
  if (HeadGradients<T>::take(problem)) {
    auto fallback = [&](Index head) { BackwardPieces<T>(problem, mask).run_one(head); };
    const HeadGradients<T> heads(problem, mask, fallback);
    for (Index i = 0; alone && i < heads.count(); ++i) heads.run(i);
    if (!alone) parallel_for(heads.count(), [&](Index i) { heads.run(i); });
    return;
  }
#endif
  BackwardPieces<T> pieces(problem, mask);
  alone ? pieces.run_alone() : pieces.run();
}

#ifdef HEED_COMPILED_SOURCE
template void run_backward<float>(const BackwardProblem<float>&, const MaskRef&);
template void run_backward<double>(const BackwardProblem<double>&, const MaskRef&);
#endif

}  // namespace heed::detail
