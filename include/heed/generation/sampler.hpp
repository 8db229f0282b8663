// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/random.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

namespace detail {

/// A token with its logit, or with its share of what is drawn.
struct ValuedToken {
  double value = 0;
  Index token = 0;
};

/// The first of the largest logits; −1 if one is NaN or +inf, or none is above −inf. May be −1 for
/// logits whose sum is beyond all doubles.
template <Scalar T>
Index first_of_largest(const T* logits, Index count) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const auto& kernels = simd::training_kernels<T>();
  const T most = kernels.maximum(logits, count);
  if (most == -infinity || !(kernels.sum(logits, count) < infinity)) return -1;
  Index at = 0;
  while (logits[at] != most) ++at;
  return at;
}

}  // namespace detail

/// One step of choosing the next token: changes logits, or removes tokens by setting their logits
/// to −inf. `history` holds the prompt of this call of generate and what it wrote. The steps below
/// are such functions, and so is any lambda; a Sampler applies them in order.
using SamplingStep = std::function<void(std::span<double> logits, std::span<const Index> history)>;

namespace samplers {

/// Keeps the token with the largest logit only; of equal ones the first.
struct Greedy {
  void operator()(std::span<double> logits, std::span<const Index>) const;
};

/// Logits divided by a temperature, 1e-6 to 1e6: below 1 sharpens, above 1 flattens. For the
/// largest logit alone, as at temperature 0, use Greedy.
struct Temperature {
  double temperature = 1;
  void operator()(std::span<double> logits, std::span<const Index>) const;
};

/// Keeps the k tokens with the largest logits; of equal ones the first. Fan, Lewis, Dauphin 2018.
struct TopK {
  Index k = 40;
  void operator()(std::span<double> logits, std::span<const Index>) const;
};

/// Keeps the most likely tokens whose probabilities add up to p, at least one: a token stays while
/// those before it have less than p. Nucleus sampling, Holtzman et al. 2020.
struct TopP {
  double p = 0.9;
  void operator()(std::span<double> logits, std::span<const Index>) const;
};

/// Keeps tokens at least p times as likely as the likeliest one. Nguyen et al. 2024.
struct MinP {
  double p = 0.05;
  void operator()(std::span<double> logits, std::span<const Index>) const;
};

/// Makes tokens of the history less likely (more likely with a penalty below 1): their logits are
/// divided by `penalty` where positive, multiplied where negative. Keskar et al. 2019 (CTRL).
struct RepetitionPenalty {
  double penalty = 1.1;
  Index last = -1;  // tokens of the history that count; -1: all
  void operator()(std::span<double> logits, std::span<const Index> history) const;
};

/// Removes every token that would repeat a sequence of n tokens of the history. Paulus, Xiong,
/// Socher 2018.
struct NoRepeatNgram {
  Index n = 3;
  void operator()(std::span<double> logits, std::span<const Index> history) const;
};

}  // namespace samplers

/// Chooses the next token: applies its steps in order, then draws one of the remaining tokens with
/// the probabilities of softmax.
///
///     Sampler sampler{samplers::Temperature{0.8}, samplers::TopK{.k = 40}};
///     Index next = sampler(logits, history, random);
class Sampler {
 public:
  /// Without steps: the distribution of the logits themselves. Throws InvalidArgument for a step
  /// without a function.
  Sampler(std::initializer_list<SamplingStep> steps = {});
  explicit Sampler(std::vector<SamplingStep> steps);
  /// A single step, as samplers::Greedy{}.
  template <class Step>
  requires(std::is_invocable_v<const Step&, std::span<double>, std::span<const Index>>)
      Sampler(Step step)  // NOLINT(google-explicit-constructor): a step is a sampler
      : Sampler({SamplingStep(std::move(step))}) {}

  /// The probability of every token: exactly 0 for removed ones. Throws InvalidArgument when a
  /// logit is NaN or +inf, when no token is left, and for a step with k or n below 1, last below
  /// -1, p outside 0 to 1, or a temperature or penalty outside 1e-6 to 1e6.
  template <Viewable Logits>
  std::vector<double> distribution(const Logits& logits,
                                   std::span<const Index> history = {}) const {
    std::vector<double> values = doubles(view_of(logits));
    const auto tokens = shares(values, history);
    values.assign(values.size(), 0);
    for (const auto& [share, token] : tokens) values[static_cast<std::size_t>(token)] = share;
    return values;
  }

  /// A token, drawn with one number of `random`. Throws InvalidArgument as `distribution` does.
  template <Viewable Logits>
  Index operator()(const Logits& logits, std::span<const Index> history, Random& random) const {
    const auto view = view_of(logits);
    if constexpr (Scalar<ValueOf<const Logits>>) {
      if (is_greedy() && view.stride(0) == 1) {
        const Index best = detail::first_of_largest(view.data_handle(), view.extent(0));
        if (best >= 0) return random.uniform(), best;
      }
    }
    std::vector<double> values = doubles(view);
    return draw(shares(values, history), random);
  }

 private:
  template <class View>
  static std::vector<double> doubles(const View& view) {
    static_assert(View::rank() == 1, "Sampler: logits of one token are a vector");
    std::vector<double> values(static_cast<std::size_t>(view.extent(0)));
    for (Index i = 0; i < view.extent(0); ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<double>(view(i));
    }
    return values;
  }
  /// Applies the steps, then softmax: the tokens that are left, in their order, and their shares.
  std::vector<detail::ValuedToken> shares(std::vector<double>& logits,
                                          std::span<const Index> history) const;
  static Index draw(std::span<const detail::ValuedToken> shares, Random& random);
  /// Whether a draw is the first of the largest logits.
  bool is_greedy() const;

  std::vector<SamplingStep> steps_;
};

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/generation/detail/sampler.inl>
#endif
