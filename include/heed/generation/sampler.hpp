// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <heed/core/detail/exp.hpp>
#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/generation/sampling_steps.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Chooses the next token: steps in the order given, then a draw from what they leave, each token
/// as often as softmax of its logit says.
///
///     Sampler sampler{samplers::Temperature{0.8}, samplers::TopK{.k = 40}};
///     Index next = sampler(logits, history, random);
class Sampler {
 public:
  /// Without steps: the distribution of the logits themselves.
  Sampler(std::initializer_list<SamplingStep> steps = {}) : steps_(steps) {}
  explicit Sampler(std::vector<SamplingStep> steps) : steps_(std::move(steps)) {}

  /// How likely every token is to be drawn: exactly 0 for what the steps took away. Throws
  /// InvalidArgument when a logit is NaN or +inf, and when no token is left.
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
