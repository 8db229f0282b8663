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

/// The logit of a token that cannot be chosen.
inline constexpr double removed = -std::numeric_limits<double>::infinity();

inline double largest(std::span<const double> logits) {
  double most = removed;
  for (const double logit : logits) most = logit > most ? logit : most;
  return most;
}

/// Orders tokens by logit, largest first; equal ones by number.
struct Better {
  std::span<const double> logits;
  bool operator()(Index a, Index b) const {
    const double x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  }
};

/// The tokens that are not removed.
inline std::vector<Index> present(std::span<const double> logits) {
  std::vector<Index> tokens;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != removed) tokens.push_back(static_cast<Index>(i));
  }
  return tokens;
}

/// Removes tokens[from], tokens[from + 1], …
inline void remove_rest(std::span<double> logits, std::span<const Index> tokens, std::size_t from) {
  for (std::size_t i = from; i < tokens.size(); ++i) {
    logits[static_cast<std::size_t>(tokens[i])] = removed;
  }
}

inline void check_between(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw_invalid_argument(name, " ", value, ", expected ", least, " to ", most);
}

/// The power of e of a logit.
inline double power(std::span<const double> logits, Index token, double most) {
  return detail::exp(logits[static_cast<std::size_t>(token)] - most);
}

/// Refuses logits that a token cannot be drawn from.
inline void check_logits(std::span<const double> logits, const char* when) {
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
  const auto best = std::max_element(logits.begin(), logits.end());  // the first of equal ones
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
  std::vector<Index> tokens = detail::present(logits);
  if (static_cast<Index>(tokens.size()) <= k) return;
  std::nth_element(tokens.begin(), tokens.begin() + k, tokens.end(), detail::Better{logits});
  detail::remove_rest(logits, tokens, static_cast<std::size_t>(k));
}

HEED_INLINE void TopP::operator()(std::span<double> logits, std::span<const Index>) const {
  detail::check_between("TopP: p", p, 0, 1);
  if (p == 1) return;  // all; a rounded sum could miss the last ones
  std::vector<Index> tokens = detail::present(logits);
  const double most = detail::largest(logits);
  double total = 0;
  for (const Index token : tokens) total += detail::power(logits, token, most);
  double sum = 0;
  std::size_t kept = 0, sorted = 0;
  while (kept < tokens.size() && (kept == 0 || sum < p * total)) {
    if (kept == sorted) {  // as many as are needed, no more: the tail of a vocabulary is long
      sorted = std::min(tokens.size(), sorted * 4 + 32);
      std::partial_sort(tokens.begin() + static_cast<Index>(kept),
                        tokens.begin() + static_cast<Index>(sorted), tokens.end(),
                        detail::Better{logits});
    }
    sum += detail::power(logits, tokens[kept++], most);
  }
  detail::remove_rest(logits, tokens, kept);
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

HEED_INLINE void Sampler::turn_into_shares(std::vector<double>& logits,
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
  double total = 0;
  for (double& logit : logits) total += logit = detail::exp(logit - most);
  for (double& logit : logits) logit /= total;
}

HEED_INLINE Index Sampler::draw(std::span<const double> shares, Random& random) {
  double total = 0;  // nearly 1: what the shares add up to in this order
  for (const double share : shares) total += share;
  const double aim = random.uniform() * total;
  double sum = 0;
  Index drawn = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    drawn = static_cast<Index>(i);
    sum += shares[i];
    if (aim < sum) break;
  }
  return drawn;
}

}  // namespace heed
