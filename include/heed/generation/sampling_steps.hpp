// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <heed/core/detail/exp.hpp>
#include <heed/core/detail/log.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// A part of choosing the next token: changes logits, or takes tokens away by setting theirs to
/// −inf. `history` is what was read and written before. The steps below are such functions, and so
/// is a lambda; a Sampler applies them one after another.
using SamplingStep = std::function<void(std::span<double> logits, std::span<const Index> history)>;

namespace detail {

constexpr double removed = -std::numeric_limits<double>::infinity();

inline double largest(std::span<const double> logits) {
  double most = removed;
  for (const double logit : logits) most = logit > most ? logit : most;
  return most;
}

/// Whether a token comes before another: the larger logit first, equal ones by number.
struct Better {
  std::span<const double> logits;
  bool operator()(Index a, Index b) const {
    const double x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  }
};

/// Tokens that are not taken away.
inline std::vector<Index> present(std::span<const double> logits) {
  std::vector<Index> tokens;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != removed) tokens.push_back(static_cast<Index>(i));
  }
  return tokens;
}

/// Takes away tokens[from], tokens[from + 1], …
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

/// The token with the largest logit and no other; of equal ones the first.
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

/// The k tokens with the largest logits; of equal ones the first. Fan, Lewis, Dauphin 2018.
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

/// The most likely tokens that together reach probability p, at least one: a token stays while
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

/// Tokens at least p times as likely as the likeliest. Nguyen et al. 2024.
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

/// Takes away every token that would repeat a run of n tokens of the history. Paulus, Xiong, Socher
/// 2018.
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

}  // namespace heed
