// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/generation/sampler.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/detail/math.hpp>

namespace heed {

namespace detail {

/// Whether a step is known to be Greedy. Functions of libc++ without RTTI do not tell what they
/// are.
template <class Function>
bool is_greedy_step([[maybe_unused]] const Function& step) {
  if constexpr (requires { step.template target<samplers::Greedy>(); }) {
    return step.template target<samplers::Greedy>() != nullptr;
  } else {
    return false;
  }
}

/// The logit of a token that cannot be chosen.
inline constexpr double removed = -std::numeric_limits<double>::infinity();

inline double largest(std::span<const double> logits) {
  return simd::training_kernels<double>().maximum(logits.data(), static_cast<Index>(logits.size()));
}

/// The order of tokens: by logit, largest first; equal ones by number.
inline bool operator<(const ValuedToken& a, const ValuedToken& b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}

/// The tokens that are not removed.
inline std::vector<ValuedToken> present(std::span<const double> logits) {
  std::vector<ValuedToken> tokens;
  tokens.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != removed) tokens.push_back({logits[i], static_cast<Index>(i)});
  }
  return tokens;
}

/// Removes all tokens but these.
inline void keep_only(std::span<const ValuedToken> tokens, std::span<double> logits) {
  std::fill(logits.begin(), logits.end(), removed);
  for (const auto& [value, token] : tokens) logits[static_cast<std::size_t>(token)] = value;
}

inline void check_between(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw_invalid_argument(name, " ", value, ", expected ", least, " to ", most);
}

/// Refuses logits that a token cannot be drawn from.
inline void check_logits(std::span<const double> logits, const char* when) {
  if (first_of_largest(logits.data(), static_cast<Index>(logits.size())) >= 0) return;
  bool any = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < std::numeric_limits<double>::infinity())) {
      throw_invalid_argument("Sampler: the logit of token ", i, " is ", logits[i], when);
    }
    any = any || logits[i] != detail::removed;
  }
  if (!any) throw_invalid_argument("Sampler: no token can be chosen of ", logits.size(), when);
}

}  // namespace detail

namespace samplers {

HEED_INLINE void Greedy::operator()(std::span<double> logits, std::span<const Index>) const {
  const Index first = detail::first_of_largest(logits.data(), static_cast<Index>(logits.size()));
  const auto best =
      first < 0 ? std::max_element(logits.begin(), logits.end()) : logits.begin() + first;
  for (auto at = logits.begin(); at != logits.end(); ++at) {
    if (at != best) *at = detail::removed;
  }
}

HEED_INLINE void Temperature::operator()(std::span<double> logits, std::span<const Index>) const {
  if (temperature == 0) {
    throw_invalid_argument("Temperature: 0; expected a number above it, or samplers::Greedy");
  }
  detail::check_between("Temperature: temperature", temperature, 1e-6, 1e6);
  for (double& logit : logits) logit /= temperature;
}

HEED_INLINE void TopK::operator()(std::span<double> logits, std::span<const Index>) const {
  if (k < 1) throw_invalid_argument("TopK: k ", k, ", expected 1 or more");
  if (k >= static_cast<Index>(logits.size())) return;
  const auto count = static_cast<std::size_t>(k);
  std::vector<detail::ValuedToken> best;  // the k best so far are among them
  double least = detail::removed;         // of k earlier tokens
  const auto drop_rest = [&] {
    std::nth_element(best.begin(), best.begin() + k - 1, best.end());
    best.resize(count);
    least = best.back().value;
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > least)) continue;  // of equal ones the first are kept
    best.push_back({logits[i], static_cast<Index>(i)});
    if (best.size() == 2 * count + 64) drop_rest();
  }
  if (best.size() > count) drop_rest();
  detail::keep_only(best, logits);
}

HEED_INLINE void TopP::operator()(std::span<double> logits, std::span<const Index>) const {
  detail::check_between("TopP: p", p, 0, 1);
  if (p == 1) return;  // all; a rounded sum could miss the last ones
  std::vector<detail::ValuedToken> tokens = detail::present(logits);
  const double most = detail::largest(logits);
  const auto power = [most](const detail::ValuedToken& token) {
    return detail::exp(token.value - most);
  };
  double total = 0, sum = 0, depth = 0;
  for (const auto& token : tokens) total += power(token);
  auto kept = tokens.begin(), sorted = kept;
  while (kept != tokens.end() && (kept == tokens.begin() || sum < p * total)) {
    if (kept == sorted) {  // a stretch of logits at a time: the tail of a vocabulary is long
      depth = depth < 40 ? depth + 1 : std::numeric_limits<double>::infinity();
      sorted = std::partition(kept, tokens.end(), [&](const detail::ValuedToken& token) {
        return !(token.value < most - depth);
      });
      std::sort(kept, sorted);
      continue;
    }
    sum += power(*kept++);
  }
  tokens.erase(kept, tokens.end());
  detail::keep_only(tokens, logits);
}

HEED_INLINE void MinP::operator()(std::span<double> logits, std::span<const Index>) const {
  detail::check_between("MinP: p", p, 0, 1);
  const double least = detail::largest(logits) + detail::log(p);
  for (double& logit : logits) {
    if (logit < least) logit = detail::removed;
  }
}

HEED_INLINE void RepetitionPenalty::operator()(std::span<double> logits,
                                               std::span<const Index> history) const {
  detail::check_between("RepetitionPenalty: penalty", penalty, 1e-6, 1e6);
  if (last < -1) throw_invalid_argument("RepetitionPenalty: last ", last, ", expected -1 or more");
  const auto count = static_cast<std::size_t>(last < 0 ? static_cast<Index>(history.size()) : last);
  auto recent = history.last(std::min(count, history.size()));
  std::vector<Index> tokens(recent.begin(), recent.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const Index token : tokens) {
    if (token < 0 || token >= static_cast<Index>(logits.size())) continue;
    double& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

HEED_INLINE void NoRepeatNgram::operator()(std::span<double> logits,
                                           std::span<const Index> history) const {
  if (n < 1) throw_invalid_argument("NoRepeatNgram: n ", n, ", expected 1 or more");
  const auto before = static_cast<std::size_t>(n - 1);
  if (history.size() < before) return;
  const auto end = history.last(before);
  for (std::size_t at = 0; at + before < history.size(); ++at) {
    const Index next = history[at + before];
    if (next < 0 || next >= static_cast<Index>(logits.size())) continue;
    if (std::equal(end.begin(), end.end(), history.begin() + static_cast<Index>(at))) {
      logits[static_cast<std::size_t>(next)] = detail::removed;
    }
  }
}

}  // namespace samplers

HEED_INLINE Sampler::Sampler(std::initializer_list<SamplingStep> steps)
    : Sampler(std::vector<SamplingStep>(steps)) {}
HEED_INLINE Sampler::Sampler(std::vector<SamplingStep> steps) : steps_(std::move(steps)) {
  for (const SamplingStep& step : steps_) {
    if (!step) throw_invalid_argument("Sampler: a step without a function");
  }
}

HEED_INLINE std::vector<detail::ValuedToken> Sampler::shares(std::vector<double>& logits,
                                                             std::span<const Index> history) const {
  detail::check_logits(logits, "");
  constexpr const char* after = " after the steps of the sampler";
  for (const SamplingStep& step : steps_) {
    step(logits, history);
    bool numbers = true;  // the next step compares them
    for (const double logit : logits) numbers = numbers && logit == logit;
    if (!numbers) detail::check_logits(logits, after);
  }
  detail::check_logits(logits, after);
  const double most = detail::largest(logits);
  std::vector<detail::ValuedToken> tokens = detail::present(logits);
  double total = 0;
  for (auto& token : tokens) total += token.value = detail::exp(token.value - most);
  for (auto& token : tokens) token.value /= total;
  return tokens;
}

HEED_INLINE bool Sampler::is_greedy() const {
  return steps_.size() == 1 && detail::is_greedy_step(steps_.front());
}

HEED_INLINE Index Sampler::draw(std::span<const detail::ValuedToken> shares, Random& random) {
  double total = 0;  // nearly 1: what the shares add up to in this order
  for (const auto& share : shares) total += share.value;
  const double aim = random.uniform() * total;
  double sum = 0;
  Index drawn = 0;
  for (const auto& [share, token] : shares) {
    if (share == 0) continue;
    drawn = token;
    sum += share;
    if (aim < sum) break;
  }
  return drawn;
}

}  // namespace heed
