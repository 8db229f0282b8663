// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/generation/beam_search.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/tensor/rows.hpp>

namespace heed::detail {

HEED_INLINE double beam_score(double log_probability, Index length, double penalty) {
  return log_probability / detail::exp(penalty * detail::log(static_cast<double>(length)));
}

HEED_INLINE void check_beam_options(const BeamOptions& options) {
  if (options.width < 1 || options.max_tokens < 1 || options.results < 1 ||
      !(options.length_penalty >= 0 && options.length_penalty <= 100)) {
    throw_invalid_argument("beam_search: width ", options.width, ", max_tokens ",
                           options.max_tokens, ", results ", options.results, ", length_penalty ",
                           options.length_penalty, "; expected 1 or more, and 0 to 100");
  }
}

HEED_INLINE std::vector<BeamStep> best_steps(const std::vector<Beam>& beams,
                                             Tensor<double, 2> logits, Index most) {
  if (logits.extent(0) != static_cast<Index>(beams.size())) {
    throw_shape_error("beam_search: logits of ", logits.extent(0), " sequences, expected ",
                      beams.size());
  }
  log_softmax(logits, logits);
  std::vector<BeamStep> steps;
  for (Index row = 0; row < logits.extent(0); ++row) {
    bool any = false;
    for (Index token = 0; token < logits.extent(1); ++token) {
      const double own = logits(row, token);
      if (own != own) throw_invalid_argument("beam_search: a logit is NaN or +inf");
      if (own == -std::numeric_limits<double>::infinity()) continue;
      any = true;
      steps.push_back({row, token, beams[static_cast<std::size_t>(row)].log_probability + own});
    }
    if (!any) throw_invalid_argument("beam_search: no token can follow");
  }
  const auto better = [](const BeamStep& a, const BeamStep& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
  };
  const Index kept = std::min(most, static_cast<Index>(steps.size()));
  std::partial_sort(steps.begin(), steps.begin() + kept, steps.end(), better);
  steps.resize(static_cast<std::size_t>(kept));
  return steps;
}

}  // namespace heed::detail
