// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/generation/generate.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/tensor/rows.hpp>

namespace heed {

HEED_INLINE StopStrings::StopStrings(std::vector<std::string> strings)
    : strings_(std::move(strings)) {
  for (const std::string& string : strings_) {
    if (string.empty()) throw_invalid_argument("StopStrings: an empty string would end every text");
  }
}

HEED_INLINE std::string StopStrings::feed(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t stop = std::string::npos, stop_end = std::string::npos;
  for (const std::string& string : strings_) {
    const std::size_t at = held_.find(string);
    if (at == std::string::npos) continue;
    const std::size_t end = at + string.size();
    if (end > stop_end || (end == stop_end && at > stop)) continue;
    stop = at;
    stop_end = end;
  }
  stopped_ = stop != std::string::npos;
  if (stopped_) return std::exchange(held_, {}).substr(0, stop);
  std::size_t open = 0;
  for (const std::string& string : strings_) open = std::max(open, open_end(string));
  std::string shown = held_.substr(0, held_.size() - open);
  held_.erase(0, shown.size());
  return shown;
}

HEED_INLINE std::size_t StopStrings::open_end(std::string_view string) const {
  for (std::size_t length = std::min(string.size() - 1, held_.size()); length > 0; --length) {
    if (std::string_view(held_).ends_with(string.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace heed

namespace heed::detail {

HEED_INLINE double beam_score(double log_probability, Index length, double penalty) {
  return log_probability / detail::exp(penalty * detail::log(static_cast<double>(length)));
}

HEED_INLINE void check_stop_rules(const StopRules& rules) {
  if (rules.max_tokens < 0) {
    throw_invalid_argument("generate: max_tokens ", rules.max_tokens, ", expected 0 or more");
  }
  for (const auto& sequence : rules.sequences) {
    if (sequence.empty()) throw_invalid_argument("generate: a stop sequence has no tokens");
  }
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
  const auto better = [](const BeamStep& a, const BeamStep& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
  };
  std::vector<BeamStep> steps;  // a heap of the best ones: the worst of them is at its front
  for (Index row = 0; row < logits.extent(0); ++row) {
    bool any = false;
    for (Index token = 0; token < logits.extent(1); ++token) {
      const double own = logits(row, token);
      if (own != own) throw_invalid_argument("beam_search: a logit is NaN or +inf");
      if (own == -std::numeric_limits<double>::infinity()) continue;
      any = true;
      const BeamStep step{row, token, beams[static_cast<std::size_t>(row)].log_probability + own};
      if (static_cast<Index>(steps.size()) == most) {
        if (!better(step, steps.front())) continue;
        std::pop_heap(steps.begin(), steps.end(), better);
        steps.pop_back();
      }
      steps.push_back(step);
      std::push_heap(steps.begin(), steps.end(), better);
    }
    if (!any) throw_invalid_argument("beam_search: no token can follow");
  }
  std::sort_heap(steps.begin(), steps.end(), better);
  return steps;
}

}  // namespace heed::detail
