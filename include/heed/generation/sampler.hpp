// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// One step of choosing the next token: changes logits, or removes tokens by setting their logits
/// to −inf. `history` holds all tokens read and written so far. The steps below are such functions,
/// and so is any lambda; a Sampler applies them in order.
using SamplingStep = std::function<void(std::span<double> logits, std::span<const Index> history)>;

namespace detail {

constexpr double removed = -std::numeric_limits<double>::infinity();

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

}  // namespace detail

namespace samplers {

/// Keeps the token with the largest logit only; of equal ones the first.
struct Greedy {
  void operator()(std::span<double> logits, std::span<const Index>) const {
    const auto best = std::max_element(logits.begin(), logits.end());  // the first of equal ones
    for (auto at = logits.begin(); at != logits.end(); ++at) {
      if (at != best) *at = detail::removed;
    }
  }
};

/// Logits divided by a temperature: below 1 sharpens, above 1 flattens.
struct Temperature {
  double temperature = 1;
  void operator()(std::span<double> logits, std::span<const Index>) const {
    detail::check_between("Temperature: temperature", temperature, 1e-6, 1e6);
    for (double& logit : logits) logit /= temperature;
  }
};

/// Keeps the k tokens with the largest logits; of equal ones the first. Fan, Lewis, Dauphin 2018.
struct TopK {
  Index k = 40;
  void operator()(std::span<double> logits, std::span<const Index>) const {
    if (k < 1) throw_invalid_argument("TopK: k ", k, ", expected 1 or more");
    std::vector<Index> tokens = detail::present(logits);
    if (static_cast<Index>(tokens.size()) <= k) return;
    std::nth_element(tokens.begin(), tokens.begin() + k, tokens.end(), detail::Better{logits});
    detail::remove_rest(logits, tokens, static_cast<std::size_t>(k));
  }
};

/// Keeps the most likely tokens whose probabilities add up to p, at least one: a token stays while
/// those before it have less than p. Nucleus sampling, Holtzman et al. 2020.
struct TopP {
  double p = 0.9;
  void operator()(std::span<double> logits, std::span<const Index>) const {
    detail::check_between("TopP: p", p, 0, 1);
    if (p == 1) return;  // all; a rounded sum could miss the last ones
    std::vector<Index> tokens = detail::present(logits);
    const double most = detail::largest(logits);
    double total = 0;
    for (const Index token : tokens) total += power(logits, token, most);
    double sum = 0;
    std::size_t kept = 0, sorted = 0;
    while (kept < tokens.size() && (kept == 0 || sum < p * total)) {
      if (kept == sorted) {  // as many as are needed, no more: the tail of a vocabulary is long
        sorted = std::min(tokens.size(), sorted * 4 + 32);
        std::partial_sort(tokens.begin() + static_cast<Index>(kept),
                          tokens.begin() + static_cast<Index>(sorted), tokens.end(),
                          detail::Better{logits});
      }
      sum += power(logits, tokens[kept++], most);
    }
    detail::remove_rest(logits, tokens, kept);
  }

 private:
  static double power(std::span<const double> logits, Index token, double most) {
    return detail::exp(logits[static_cast<std::size_t>(token)] - most);
  }
};

/// Keeps tokens at least p times as likely as the likeliest one. Nguyen et al. 2024.
struct MinP {
  double p = 0.05;
  void operator()(std::span<double> logits, std::span<const Index>) const {
    detail::check_between("MinP: p", p, 0, 1);
    const double least = detail::largest(logits) + detail::log(p);
    for (double& logit : logits) {
      if (logit < least) logit = detail::removed;
    }
  }
};

/// Makes tokens of the history less likely: their logits divided by `penalty` where positive,
/// multiplied where negative. Keskar et al. 2019 (CTRL).
struct RepetitionPenalty {
  double penalty = 1.1;
  Index last = -1;  // tokens of the history that count; -1: all
  void operator()(std::span<double> logits, std::span<const Index> history) const {
    detail::check_between("RepetitionPenalty: penalty", penalty, 1e-6, 1e6);
    const auto count =
        static_cast<std::size_t>(last < 0 ? static_cast<Index>(history.size()) : last);
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
};

/// Removes every token that would repeat a sequence of n tokens of the history. Paulus, Xiong,
/// Socher 2018.
struct NoRepeatNgram {
  Index n = 3;
  void operator()(std::span<double> logits, std::span<const Index> history) const {
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
};

}  // namespace samplers

/// Chooses the next token: applies its steps in order, then draws one of the remaining tokens with
/// the probabilities of softmax.
///
///     Sampler sampler{samplers::Temperature{0.8}, samplers::TopK{.k = 40}};
///     Index next = sampler(logits, history, random);
class Sampler {
 public:
  /// Without steps: the distribution of the logits themselves.
  Sampler(std::initializer_list<SamplingStep> steps = {}) : steps_(steps) {}
  explicit Sampler(std::vector<SamplingStep> steps) : steps_(std::move(steps)) {}

  /// The probability of every token: exactly 0 for removed ones. Throws InvalidArgument when a
  /// logit is NaN or +inf, and when no token is left.
  template <Viewable Logits>
  std::vector<double> distribution(const Logits& logits,
                                   std::span<const Index> history = {}) const {
    const auto view = view_of(logits);
    static_assert(decltype(view)::rank() == 1, "Sampler: logits of one token are a vector");
    std::vector<double> values(static_cast<std::size_t>(view.extent(0)));
    for (Index i = 0; i < view.extent(0); ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<double>(view(i));
    }
    check(values, "");
    for (const SamplingStep& step : steps_) step(values, history);
    check(values, " after the steps of the sampler");
    const double most = detail::largest(values);
    double total = 0;
    for (double& value : values) total += value = detail::exp(value - most);
    for (double& value : values) value /= total;
    return values;
  }

  /// A token, drawn with one number of `random`. Throws InvalidArgument as `distribution` does.
  template <Viewable Logits>
  Index operator()(const Logits& logits, std::span<const Index> history, Random& random) const {
    const std::vector<double> shares = distribution(logits, history);
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

 private:
  static void check(std::span<const double> logits, const char* when) {
    bool any = false;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!(logits[i] < std::numeric_limits<double>::infinity())) {
        throw_invalid_argument("Sampler: the logit of token ", i, " is ", logits[i], when);
      }
      any = any || logits[i] != detail::removed;
    }
    if (!any) throw_invalid_argument("Sampler: no token can be chosen of ", logits.size(), when);
  }

  std::vector<SamplingStep> steps_;
};

}  // namespace heed
