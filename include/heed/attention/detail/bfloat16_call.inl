// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/bfloat16_products.hpp>
#include <heed/attention/detail/bfloat16_tensors.hpp>
#include <heed/attention/detail/run.hpp>
#include <heed/simd/pair_kernels.hpp>

namespace heed::detail {

/// Whether products of pairs are right for a call: scores are not changed, and they are scaled
/// after the products, by no such factor that products overflow where scores do not. It depends on
/// nothing but the options, so that all parts of a sequence are computed alike.
template <class T>
bool pairs_pay(const AttentionProblem<T>& problem) {
  const T size = problem.scale < T{0} ? -problem.scale : problem.scale;
  return !problem.changes.any() && size > T{1e-6f};
}

template <class T>
void run_bfloat16(const Bfloat16Views& views, const AttentionProblem<T>& problem,
                  const MaskRef& mask) {
  AttentionProblem<T> narrow = problem;
  const auto* kernels = simd::pair_kernels<T>();
  if (kernels != nullptr && pairs_pay(problem)) {
    const Bfloat16Products<T> products(views, *kernels, query_factor(problem));
    const Bfloat16Tensors<T> tensors(views, &products);
    narrow.narrow = &tensors;
    return run_attention(narrow, mask);
  }
  const Bfloat16Tensors<T> tensors(views);
  narrow.narrow = &tensors;
  run_attention(narrow, mask);
}

#if defined(HEED_COMPILED_SOURCE)
template void run_bfloat16(const Bfloat16Views&, const AttentionProblem<float>&, const MaskRef&);
#endif

}  // namespace heed::detail
