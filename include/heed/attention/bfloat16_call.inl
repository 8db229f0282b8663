// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/bfloat16_call.hpp>
#include <heed/attention/forward.inl>

namespace heed::detail {

template <class T>
void run_bfloat16(const Bfloat16Views& views, const AttentionProblem<T>& problem,
                  const MaskRef& mask) {
  const Bfloat16Tensors<T> tensors(views);
  AttentionProblem<T> narrow = problem;
  narrow.narrow = &tensors;
  run_attention(narrow, mask);
}

#if defined(HEED_COMPILED_SOURCE)
template void run_bfloat16(const Bfloat16Views&, const AttentionProblem<float>&, const MaskRef&);
#endif

}  // namespace heed::detail
