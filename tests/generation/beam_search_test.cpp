// SPDX-License-Identifier: MIT
#include <heed/generation/generate.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <heed/core/random.hpp>

namespace heed {
namespace {

constexpr Index vocabulary = 4;

/// A model whose logits are random but depend on the whole sequence.
struct RandomModel {
  std::uint64_t seed;
  std::vector<double> logits(const std::vector<Index>& sequence) const {
    std::uint64_t stream = 1;
    for (const Index token : sequence) stream = stream * 7 + static_cast<std::uint64_t>(token) + 1;
    Random random(seed, stream);
    std::vector<double> values(vocabulary);
    for (double& value : values) value = 2 * random.normal();
    if (random.integer(4) == 0) values[1] = -INFINITY;
    return values;
  }
};

/// The model as a step of the search, with a cache that is nothing but the sequences.
struct ModelStep {
  RandomModel model;
  std::vector<std::vector<Index>> sequences = {{}};
  Tensor<double, 2> operator()(std::span<const Index> parents, std::span<const Index> tokens) {
    std::vector<std::vector<Index>> next;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      next.push_back(sequences[static_cast<std::size_t>(parents[i])]);
      next.back().push_back(tokens[i]);
    }
    if (!tokens.empty()) sequences = next;
    Tensor<double, 2> logits({static_cast<Index>(sequences.size()), vocabulary});
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto row = model.logits(sequences[i]);
      for (Index token = 0; token < vocabulary; ++token) {
        logits(static_cast<Index>(i), token) = row[static_cast<std::size_t>(token)];
      }
    }
    return logits;
  }
};

/// Every sequence that can be written, best first.
void collect(const RandomModel& model, const BeamOptions& options, const Beam& beam,
             std::vector<Beam>& all) {
  const auto length = static_cast<Index>(beam.tokens.size());
  if (beam.ended || length == options.max_tokens) {
    all.push_back(beam);
    return;
  }
  const auto logits = model.logits(beam.tokens);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (Index token = 0; token < vocabulary; ++token) {
    const double logit = logits[static_cast<std::size_t>(token)];
    if (std::isinf(logit)) continue;
    Beam next = beam;
    next.tokens.push_back(token);
    next.log_probability += logit - std::log(sum);
    next.score = next.log_probability / std::pow(length + 1, options.length_penalty);
    next.ended = token == options.end_token;
    collect(model, options, next, all);
  }
}

TEST(BeamSearch, FullWidthIsExhaustive) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (const double penalty : {0., 0.6, 1., 2.}) {
      const BeamOptions options{.width = 1024,
                                .max_tokens = 5,
                                .end_token = seed % 3 == 0 ? -1 : 2,
                                .length_penalty = penalty,
                                .results = 7};
      std::vector<Beam> all;
      collect({seed}, options, {}, all);
      std::stable_sort(all.begin(), all.end(),
                       [](const Beam& a, const Beam& b) { return a.score > b.score; });
      const auto found = beam_search(ModelStep{{seed}}, options);
      ASSERT_EQ(found.size(), 7u);
      for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(found[i].tokens, all[i].tokens) << seed << " " << penalty << " " << i;
        EXPECT_NEAR(found[i].score, all[i].score, 1e-12);
        EXPECT_NEAR(found[i].log_probability, all[i].log_probability, 1e-12);
        EXPECT_EQ(found[i].ended, all[i].ended);
      }
    }
  }
}

/// A beam search that does everything the long way: all continuations sorted at every length, and
/// no end before max_tokens.
std::vector<Beam> plain_beam_search(const RandomModel& model, const BeamOptions& options) {
  std::vector<Beam> live(1), ended;
  for (Index length = 1; length <= options.max_tokens; ++length) {
    std::vector<Beam> all;
    BeamOptions one_more = options;
    one_more.max_tokens = length;
    for (const Beam& beam : live) collect(model, one_more, beam, all);
    std::stable_sort(all.begin(), all.end(), [](const Beam& a, const Beam& b) {
      return a.log_probability > b.log_probability;
    });
    live.clear();
    for (const Beam& beam : all) {
      if (static_cast<Index>(live.size()) == options.width) break;
      (beam.ended ? ended : live).push_back(beam);
    }
  }
  ended.insert(ended.end(), live.begin(), live.end());
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Beam& a, const Beam& b) { return a.score > b.score; });
  ended.resize(static_cast<std::size_t>(options.results));
  return ended;
}

TEST(BeamSearch, NarrowOnesEqualTheLongWay) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const double penalty : {0., 0.9, 1.5, 3.}) {
      const BeamOptions options{.width = 2 + static_cast<Index>(seed % 3),
                                .max_tokens = 7,
                                .end_token = 2,
                                .length_penalty = penalty,
                                .results = 1 + static_cast<Index>(seed % 2)};
      const auto found = beam_search(ModelStep{{seed}}, options);
      const auto expected = plain_beam_search({seed}, options);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << seed << " " << penalty << " " << i;
      }
    }
  }
}

TEST(BeamSearch, WidthOneIsGreedy) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomModel model{seed};
    const auto found = beam_search(ModelStep{model}, {.width = 1, .max_tokens = 6});
    ASSERT_EQ(found.size(), 1u);
    std::vector<Index> greedy;
    for (int i = 0; i < 6; ++i) {
      const auto logits = model.logits(greedy);
      greedy.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
    EXPECT_EQ(found[0].tokens, greedy);
    EXPECT_FALSE(found[0].ended);
  }
}

TEST(BeamSearch, WiderIsNoWorseMostly) {
  double narrow = 0, wide = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    narrow += beam_search(ModelStep{{seed}}, {.width = 1, .max_tokens = 6})[0].log_probability;
    wide += beam_search(ModelStep{{seed}}, {.width = 8, .max_tokens = 6})[0].log_probability;
  }
  EXPECT_GT(wide, narrow + 5);
}

TEST(BeamSearch, EqualScoresInTheOrderOfBeamsAndTokens) {
  const auto even = [](std::span<const Index>, std::span<const Index> tokens) {
    return Tensor<float, 2>({std::max<Index>(1, static_cast<Index>(tokens.size())), 3});
  };
  const auto found = beam_search(even, {.width = 4, .max_tokens = 2, .results = 3});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].tokens, (std::vector<Index>{0, 0}));
  EXPECT_EQ(found[1].tokens, (std::vector<Index>{0, 1}));
  EXPECT_EQ(found[2].tokens, (std::vector<Index>{0, 2}));
}

TEST(BeamSearch, EndsWhenNothingCanBeBetter) {
  int calls = 0;
  const auto ends_at_once = [&](std::span<const Index>, std::span<const Index> tokens) {
    ++calls;
    Tensor<double, 2> logits({std::max<Index>(1, static_cast<Index>(tokens.size())), 2});
    for (Index row = 0; row < logits.extent(0); ++row) logits(row, 1) = 5;
    return logits;
  };
  const auto found = beam_search(
      ends_at_once, {.width = 2, .max_tokens = 1000, .end_token = 1, .length_penalty = 0});
  EXPECT_EQ(found[0].tokens, (std::vector<Index>{1}));
  EXPECT_TRUE(found[0].ended);
  EXPECT_LT(calls, 3);
}

TEST(BeamSearch, Refuses) {
  const auto with = [](double value) {
    return [value](std::span<const Index>, std::span<const Index>) {
      return Tensor<double, 2>({1, 2}, {value, value});
    };
  };
  EXPECT_THROW(beam_search(with(NAN)), InvalidArgument);
  EXPECT_THROW(beam_search(with(INFINITY)), InvalidArgument);
  EXPECT_THROW(beam_search(with(-INFINITY)), InvalidArgument);
  for (const Index rows : {0, 2, 1000}) {  // one for the prompt, then one for each beam
    const auto wrong = [&](std::span<const Index> parents, std::span<const Index>) {
      return Tensor<double, 2>({rows < 2 || !parents.empty() ? rows : 1, 2});
    };
    EXPECT_THROW(beam_search(wrong, {.width = 4, .max_tokens = 5}), ShapeError) << rows;
  }
  const auto too_many_at_once = [](std::span<const Index>, std::span<const Index>) {
    return Tensor<double, 2>({4, 2});
  };
  EXPECT_THROW(beam_search(too_many_at_once, {.width = 4}), ShapeError);
  EXPECT_THROW(beam_search(with(0), {.width = 0}), InvalidArgument);
  EXPECT_THROW(beam_search(with(0), {.max_tokens = 0}), InvalidArgument);
  EXPECT_THROW(beam_search(with(0), {.length_penalty = -1}), InvalidArgument);
  EXPECT_THROW(beam_search(with(0), {.results = 0}), InvalidArgument);
}

}  // namespace
}  // namespace heed
