// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/generation/sampler.hpp>

namespace heed {

/// When writing ends.
struct StopRules {
  Index max_tokens = 100;
  std::vector<Index> tokens = {};                  // any of these ends it, and is not written
  std::vector<std::vector<Index>> sequences = {};  // these end it too, and stay in what is written
};

enum class StopReason { max_tokens, token, sequence, caller };

/// What was written, and why it ended there.
struct Generation {
  std::vector<Index> tokens;
  StopReason reason = StopReason::max_tokens;
};

/// Writes tokens behind a prompt. `step(tokens)` reads tokens, the whole prompt first and then one
/// at a time, and returns the logits of the token that follows: a model with its cache. Every token
/// is told to `on_token(token)`, which may return false to end it. Throws InvalidArgument for an
/// empty prompt and what the sampler cannot draw from.
template <class Step, class OnToken>
Generation generate(Step&& step, std::span<const Index> prompt, const Sampler& sampler,
                    const StopRules& rules, Random& random, OnToken&& on_token) {
  if (prompt.empty()) throw_invalid_argument("generate: the prompt is empty");
  const auto among = [](const std::vector<Index>& tokens, Index token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  Generation result;
  std::vector<Index> history(prompt.begin(), prompt.end());
  auto unread = static_cast<std::size_t>(history.size());
  while (static_cast<Index>(result.tokens.size()) < rules.max_tokens) {
    const auto logits = step(std::span<const Index>(history).last(unread));
    const Index token = sampler(logits, history, random);
    if (among(rules.tokens, token)) {
      result.reason = StopReason::token;
      break;
    }
    history.push_back(token);
    result.tokens.push_back(token);
    unread = 1;
    bool go_on = true;
    if constexpr (std::is_void_v<std::invoke_result_t<OnToken&, Index>>) {
      on_token(token);
    } else {
      go_on = on_token(token);
    }
    const bool ended = std::any_of(
        rules.sequences.begin(), rules.sequences.end(), [&](const std::vector<Index>& sequence) {
          return !sequence.empty() && sequence.size() <= result.tokens.size() &&
                 std::equal(sequence.rbegin(), sequence.rend(), result.tokens.rbegin());
        });
    if (ended || !go_on) {
      result.reason = ended ? StopReason::sequence : StopReason::caller;
      break;
    }
  }
  return result;
}

/// The same without a listener.
template <class Step>
Generation generate(Step&& step, std::span<const Index> prompt, const Sampler& sampler,
                    const StopRules& rules, Random& random) {
  return generate(step, prompt, sampler, rules, random, [](Index) {});
}

}  // namespace heed
