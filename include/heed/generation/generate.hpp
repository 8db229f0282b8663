// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/random.hpp>
#include <heed/generation/sampler.hpp>

namespace heed {

/// Ends a streamed text before the stop string that is complete first, and of several that end at
/// the same place before the longest, however the text is cut into pieces. The end of the text is
/// held back while it may be the beginning of a stop string.
class StopStrings {
 public:
  /// Throws InvalidArgument for an empty string.
  explicit StopStrings(std::vector<std::string> strings);

  /// Appends the next piece and returns the text that can be shown now: it lies before any stop
  /// string and cannot be part of one.
  std::string feed(std::string_view piece);

  /// Whether a stop string was found.
  bool stopped() const { return stopped_; }
  /// The text still held back, for when the stream ends without a stop string.
  std::string finish() { return std::exchange(held_, {}); }

 private:
  /// The number of bytes at the end of the held text that may begin `string`.
  std::size_t open_end(std::string_view string) const;

  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

/// Conditions that end generation.
struct StopRules {
  Index max_tokens = 100;
  std::vector<Index> tokens = {};                  // any of these ends it, and is not returned
  std::vector<std::vector<Index>> sequences = {};  // these end it too, and are returned
};

enum class StopReason { max_tokens, token, sequence, caller };

/// The tokens generated, and the condition that ended them.
struct Generation {
  std::vector<Index> tokens;
  StopReason reason = StopReason::max_tokens;
};

/// Generates tokens after a prompt. `step(tokens)` reads tokens, first the whole prompt and then
/// one at a time, and returns the logits of the next token: a model with its cache.
/// `on_token(token)` is called for every token that is returned, and may return false to end
/// generation after it. Throws InvalidArgument for an empty prompt, a max_tokens below 0 and logits
/// that the sampler cannot draw from, and what `step` throws: a Session that does not slide has no
/// room beyond its max_length. `on_token` has seen the tokens until then. Unless `reason` is
/// `token`, `step` has not read the last token: who continues with the same session begins with it.
template <class Step, class OnToken>
Generation generate(Step&& step, std::span<const Index> prompt, const Sampler& sampler,
                    const StopRules& rules, Random& random, OnToken&& on_token) {
  if (prompt.empty()) throw_invalid_argument("generate: the prompt is empty");
  if (rules.max_tokens < 0) {
    throw_invalid_argument("generate: max_tokens ", rules.max_tokens, ", expected 0 or more");
  }
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
/// The same with a prompt in braces: `generate(session, {1, 2, 3}, …)`.
template <class Step>
Generation generate(Step&& step, std::initializer_list<Index> prompt, const Sampler& sampler,
                    const StopRules& rules, Random& random) {
  return generate(step, std::span<const Index>(prompt.begin(), prompt.size()), sampler, rules,
                  random);
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/generation/detail/generate.inl>
#endif
