// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/random.hpp>
#include <heed/generation/sampler.hpp>
#include <heed/tensor/tensor.hpp>

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

namespace detail {
/// Throws InvalidArgument for a max_tokens below 0 and for an empty sequence.
void check_stop_rules(const StopRules& rules);
}  // namespace detail

/// `length`: the session has no room for the last token.
enum class StopReason { max_tokens, length, token, sequence, caller };

/// The tokens generated, and the condition that ended them.
struct Generation {
  std::vector<Index> tokens;
  StopReason reason = StopReason::max_tokens;

  auto begin() const { return tokens.begin(); }
  auto end() const { return tokens.end(); }
};

/// Generates tokens after a prompt, a list of any integers. `step(tokens)` reads tokens, first the
/// whole prompt and then one at a time, and returns the logits of the next token: a model with its
/// cache. `on_token(token)` is called for every token that is returned, and may return false to end
/// generation after it. Throws InvalidArgument for an empty prompt or stop sequence, a max_tokens
/// below 0 and logits that the sampler cannot draw from, and what `step` throws; `on_token` has
/// seen the tokens until then. A Session that does not slide ends it at its max_length; a prompt
/// beyond that is refused. Unless `reason` is `token`, `step` has not read the last token: who
/// continues with the same session begins with it.
template <class Step, class OnToken = detail::Silent>
Generation generate(Step&& step, const OwnedArray<Index>& prompt, const Sampler& sampler,
                    const StopRules& rules, Random& random, OnToken&& on_token = {}) {
  static_assert(std::is_invocable_v<Step&, std::span<const Index>>,
                "generate takes a session of the model: Session<float> session(model)");
  if (prompt.empty()) throw_invalid_argument("generate: the prompt is empty");
  detail::check_stop_rules(rules);
  const auto among = [](const std::vector<Index>& tokens, Index token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  Generation result;
  std::vector<Index> history(prompt.begin(), prompt.end());
  auto unread = static_cast<std::size_t>(history.size());
  while (static_cast<Index>(result.tokens.size()) < rules.max_tokens) {
    if constexpr (requires { step.room(); }) {
      if (!result.tokens.empty() && step.room() < 1) {
        result.reason = StopReason::length;
        break;
      }
    }
    const auto logits = step(std::span<const Index>(history).last(unread));
    const Index token = sampler(logits, history, random);
    if (among(rules.tokens, token)) {
      result.reason = StopReason::token;
      break;
    }
    history.push_back(token);
    result.tokens.push_back(token);
    unread = 1;
    const bool go_on = detail::goes_on(on_token, token);
    const bool ended = std::any_of(
        rules.sequences.begin(), rules.sequences.end(), [&](const std::vector<Index>& sequence) {
          return sequence.size() <= result.tokens.size() &&
                 std::equal(sequence.rbegin(), sequence.rend(), result.tokens.rbegin());
        });
    if (ended || !go_on) {
      result.reason = ended ? StopReason::sequence : StopReason::caller;
      break;
    }
  }
  return result;
}

/// The likeliest token each time, which takes no random numbers.
template <class Step, class OnToken>
requires std::is_invocable_v<OnToken&, Index> Generation generate(Step&& step,
                                                                  const OwnedArray<Index>& prompt,
                                                                  const StopRules& rules,
                                                                  OnToken&& on_token) {
  Random unused(0);
  return generate(step, prompt, Sampler(samplers::Greedy{}), rules, unused, on_token);
}
template <class Step>
Generation generate(Step&& step, const OwnedArray<Index>& prompt, const StopRules& rules = {}) {
  return generate(step, prompt, rules, [](Index) {});
}
template <class Step>
Generation generate(Step&& step, const OwnedArray<Index>& prompt, const samplers::Greedy&,
                    const StopRules& rules) {
  return generate(step, prompt, rules);
}
template <class Step, std::same_as<samplers::Greedy> Greedy>
Generation generate(Step&& step, const OwnedArray<Index>& prompt, const Greedy&) {
  return generate(step, prompt);
}
// A sampler without what it draws from.
template <class Step, class Steps, class Rules = StopRules>
requires(std::is_convertible_v<const Steps&, Sampler> &&
         !std::is_same_v<Steps, samplers::Greedy>) Generation
    generate(Step&&, const OwnedArray<Index>&, const Steps&, const Rules& = {}) {
  static_assert(detail::never<Steps>,
                "a sampler draws from a heed::Random: generate(session, prompt, sampler, "
                "{.max_tokens = 20}, random)");
  return {};
}

/// Options of beam_search.
struct BeamOptions {
  Index width = 4;  // sequences kept at every length
  Index max_tokens = 100;
  Index end_token = -1;       // ends a sequence, and is its last token; -1: none
  double length_penalty = 1;  // sequences are compared by log-probability / lengthᵖ
  Index results = 1;          // the most sequences returned
};

/// A sequence found by beam search.
struct Beam {
  std::vector<Index> tokens;
  double log_probability = 0;
  double score = 0;    // log_probability / lengthᵖ
  bool ended = false;  // by the end token, not by max_tokens or by the session's length
};

namespace detail {

/// A session, not a function that makes a step.
template <class X>
concept HasSequences = requires(X& session) {
  session.batch();
};

/// A continued beam: its index in the step before, and the token appended.
struct BeamStep {
  Index parent = 0, token = 0;
  double log_probability = 0;
};

double beam_score(double log_probability, Index length, double penalty);

/// Throws InvalidArgument for an invalid option.
void check_beam_options(const BeamOptions& options);
/// The best continuations of all beams; equal ones by beam, then by token. Throws InvalidArgument
/// for logits of NaN or +inf, and for a row without any possible token.
std::vector<BeamStep> best_steps(const std::vector<Beam>& beams, Tensor<double, 2> logits,
                                 Index most);

}  // namespace detail

/// The most likely sequences of a model, found by keeping the `width` most likely ones at every
/// length. `step(parents, tokens)` makes new sequence i of sequence parents[i] of the last call and
/// tokens[i] (a cache is reordered by `parents`), and returns logits (sequences, vocabulary) of the
/// next token; the first call has no tokens and stands for the prompt, one row of logits.
///
/// Best first; equal scores in the order of beams, then of tokens. Ends as soon as no unfinished
/// sequence can be among the results. With a width as large as the number of all sequences the
/// search is exhaustive. Throws InvalidArgument for a width, max_tokens or results below 1, a
/// length_penalty outside 0 to 100, and logits that are NaN, +inf, or −inf throughout; ShapeError
/// for logits of another number of sequences.
template <class Step>
requires(!detail::HasSequences<Step>) std::vector<Beam> beam_search(
    Step&& step, const BeamOptions& options = {}) {
  detail::check_beam_options(options);
  std::vector<Beam> live(1), ended;
  std::vector<Index> parents = {0}, tokens;
  const auto better = [](const Beam& a, const Beam& b) { return a.score > b.score; };
  for (Index length = 1; length <= options.max_tokens && !live.empty(); ++length) {
    const auto logits = step(std::span<const Index>(parents), std::span<const Index>(tokens));
    // Each beam ends in at most one way, so that this many hold `width` that go on.
    const Index room = detail::sum_or_most(options.width, static_cast<Index>(live.size()));
    std::vector<Beam> next;
    parents.clear();
    tokens.clear();
    Index places = 0;  // taken of the width, by what did not end itself
    for (const auto& chosen : detail::best_steps(live, Tensor<double, 2>(logits), room)) {
      if (places == options.width) break;
      Beam beam = live[static_cast<std::size_t>(chosen.parent)];
      beam.tokens.push_back(chosen.token);
      beam.log_probability = chosen.log_probability;
      beam.score = detail::beam_score(chosen.log_probability, length, options.length_penalty);
      beam.ended = chosen.token == options.end_token;
      if (!beam.ended) ++places;
      if (beam.ended || length == options.max_tokens) {
        ended.insert(std::upper_bound(ended.begin(), ended.end(), beam, better), std::move(beam));
      } else {
        parents.push_back(chosen.parent);
        tokens.push_back(chosen.token);
        next.push_back(std::move(beam));
      }
    }
    if (static_cast<Index>(ended.size()) > options.results) {
      ended.resize(static_cast<std::size_t>(options.results));
    }
    live = std::move(next);
    // A longer sequence is less likely, and at best judged by the greatest length.
    const bool decided = static_cast<Index>(ended.size()) == options.results &&
                         std::none_of(live.begin(), live.end(), [&](const Beam& beam) {
                           return detail::beam_score(beam.log_probability, options.max_tokens,
                                                     options.length_penalty) > ended.back().score;
                         });
    if (decided) break;
  }
  return ended;
}

/// The most likely continuations of a prompt, without the prompt. Clears the session, which has at
/// least `width` sequences; the search ends where these reach its max_length. Throws ShapeError for
/// an empty prompt or a session that is too small, and as the other beam_search and the session do:
/// CacheFull where pages for all beams are missing.
template <detail::HasSequences AnySession>
std::vector<Beam> beam_search(AnySession&& session, const OwnedArray<Index>& prompt,
                              const BeamOptions& options = {}) {
  if (prompt.empty() || session.batch() < options.width) {
    throw_shape_error(
        "beam_search: a prompt of ", prompt.size(), " tokens, expected 1 or more; a ",
        "session of ", session.batch(), " sequences, expected the width, ", options.width,
        ", or more, as of Session<float> session(model, {.batch = ", options.width, "})");
  }
  session.clear();
  BeamOptions fitting = options;
  if constexpr (requires { session.room(); }) {
    const Index room = session.room() - static_cast<Index>(prompt.size());
    if (room >= 0) fitting.max_tokens = std::min(options.max_tokens, room + 1);
  }
  const auto rows = static_cast<std::size_t>(session.batch());
  return beam_search(
      [&](std::span<const Index> parents, std::span<const Index> tokens) {
        std::vector<std::vector<Index>> next(rows);
        if (tokens.empty()) {
          next[0].assign(prompt.begin(), prompt.end());
        } else {
          std::vector<Index> places(parents.begin(), parents.end());
          places.resize(rows, 0);
          session.reorder(places);
          for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = {tokens[i]};
        }
        const auto logits = session.prefill(next);
        const auto live = tokens.empty() ? Index{1} : static_cast<Index>(tokens.size());
        using Logits = std::remove_const_t<decltype(logits)>;
        return Logits::copy_of(logits.view().slice(0, 0, live));
      },
      fitting);
}
template <class Model>
requires(!detail::HasSequences<Model>) std::vector<Beam> beam_search(const Model&,
                                                                     const OwnedArray<Index>&,
                                                                     const BeamOptions& = {}) {
  static_assert(detail::never<Model>,
                "beam_search takes a session of the model: Session<float> session(model, {.batch = "
                "4})");
  return {};
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/generation/detail/generate.inl>
#endif
