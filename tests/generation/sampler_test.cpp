// SPDX-License-Identifier: MIT
#include <heed/generation/sampler.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <heed/core/detail/math.hpp>
#include <heed/core/random.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {
namespace {

using namespace samplers;

constexpr double gone = -std::numeric_limits<double>::infinity();

std::set<Index> kept_by(const SamplingStep& step, std::vector<double> logits,
                        const std::vector<Index>& history = {}) {
  const std::vector<double> before = logits;
  step(logits, history);
  std::set<Index> kept;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == gone) continue;
    EXPECT_EQ(logits[i], before[i]) << "what stays keeps its logit";
    kept.insert(static_cast<Index>(i));
  }
  return kept;
}

/// Logits with ties and with tokens that are gone already.
std::vector<double> random_logits(Random& random) {
  std::vector<double> logits(static_cast<std::size_t>(1 + random.integer(200)));
  for (double& logit : logits) {
    logit = random.integer(8) == 0 ? gone : static_cast<double>(random.integer(40)) / 4;
  }
  logits[static_cast<std::size_t>(random.integer(static_cast<Index>(logits.size())))] = 3;
  return logits;
}

/// The rank of a token, 0 the best: how many come before it.
std::size_t rank_of(const std::vector<double>& logits, std::size_t token) {
  std::size_t rank = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    rank += logits[i] > logits[token] || (logits[i] == logits[token] && i < token);
  }
  return rank;
}

TEST(SamplingSteps, KeptSetsAreThoseOfTheirDefinitions) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<double> logits = random_logits(random);
    const Index k = 1 + random.integer(50);
    const double p = random.uniform();
    long double total = 0, most = gone;
    for (const double logit : logits) total += std::exp(static_cast<long double>(logit));
    for (const double logit : logits) most = std::fmax(most, static_cast<long double>(logit));
    std::set<Index> top_k, top_p, min_p, greedy;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] == gone) continue;
      long double before = 0;
      for (std::size_t j = 0; j < logits.size(); ++j) {
        const bool better = logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
        if (better) before += std::exp(static_cast<long double>(logits[j]));
      }
      const auto token = static_cast<Index>(i);
      const std::size_t rank = rank_of(logits, i);
      if (rank == 0) greedy.insert(token);
      if (static_cast<Index>(rank) < k) top_k.insert(token);
      if (rank == 0 || before < p * total) top_p.insert(token);
      if (std::exp(static_cast<long double>(logits[i]) - most) >= p) min_p.insert(token);
    }
    EXPECT_EQ(kept_by(Greedy{}, logits), greedy);
    EXPECT_EQ(kept_by(TopK{.k = k}, logits), top_k) << k;
    EXPECT_EQ(kept_by(TopP{.p = p}, logits), top_p) << p;
    EXPECT_EQ(kept_by(MinP{.p = p}, logits), min_p) << p;
  }
}

TEST(SamplingSteps, TiesBreakToTheLowerToken) {
  const std::vector<double> logits = {1, 3, 3, 2, 3};
  EXPECT_EQ(kept_by(Greedy{}, logits), (std::set<Index>{1}));
  EXPECT_EQ(kept_by(TopK{.k = 2}, logits), (std::set<Index>{1, 2}));
  EXPECT_EQ(kept_by(TopP{.p = 0.1}, logits), (std::set<Index>{1}));
}

TEST(SamplingSteps, EndsOfTheirRanges) {
  const std::vector<double> logits = {0, gone, 2, -400};
  const std::set<Index> all = {0, 2, 3};
  EXPECT_EQ(kept_by(TopK{.k = 99}, logits), all);
  EXPECT_EQ(kept_by(TopP{.p = 0}, logits), (std::set<Index>{2}));
  EXPECT_EQ(kept_by(TopP{.p = 1}, logits), all);
  EXPECT_EQ(kept_by(MinP{.p = 0}, logits), all);
  EXPECT_EQ(kept_by(MinP{.p = 1}, logits), (std::set<Index>{2}));
}

TEST(SamplingSteps, TemperatureAndRepetition) {
  std::vector<double> logits = {2, -2, 1, gone, 4};
  Temperature{.temperature = 0.5}(logits, {});
  EXPECT_EQ(logits, (std::vector<double>{4, -4, 2, gone, 8}));
  const std::vector<Index> history = {4, 0, 1, 1, 3, 0, 77, -1};
  RepetitionPenalty{.penalty = 2}(logits, history);
  EXPECT_EQ(logits, (std::vector<double>{2, -8, 2, gone, 4})) << "once, however often it came";
  RepetitionPenalty{.penalty = 4, .last = 3}(logits, history);
  EXPECT_EQ(logits, (std::vector<double>{0.5, -8, 2, gone, 4}));
}

TEST(SamplingSteps, NoRunOfNTokensTwice) {
  const std::vector<double> logits(5, 0.0);
  const std::vector<Index> history = {1, 2, 3, 1, 2, 4, 0, 1, 2};
  EXPECT_EQ(kept_by(NoRepeatNgram{.n = 3}, logits, history), (std::set<Index>{0, 1, 2}));
  EXPECT_EQ(kept_by(NoRepeatNgram{.n = 2}, logits, history), (std::set<Index>{0, 1, 2}));
  EXPECT_EQ(kept_by(NoRepeatNgram{.n = 1}, logits, {3, 3}), (std::set<Index>{0, 1, 2, 4}));
  EXPECT_EQ(kept_by(NoRepeatNgram{.n = 20}, logits, history).size(), 5u);
  // Every continuation that is left makes no run of the history come twice.
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Index> text;
    for (Index i = random.integer(40); i > 0; --i) text.push_back(random.integer(5));
    for (const Index n : {1, 2, 3}) {
      const auto kept = kept_by(NoRepeatNgram{.n = n}, logits, text);
      for (Index token = 0; token < 5; ++token) {
        std::vector<Index> longer = text;
        longer.push_back(token);
        bool repeats = false;
        for (std::size_t at = 0; at + static_cast<std::size_t>(n) < longer.size(); ++at) {
          repeats = repeats || std::equal(longer.end() - n, longer.end(),
                                          longer.begin() + static_cast<Index>(at));
        }
        EXPECT_EQ(kept.count(token) == 0, repeats);
      }
    }
  }
}

TEST(SamplingSteps, RefuseSettingsThatMakeNoSense) {
  std::vector<double> logits(3, 0.0);
  const std::vector<Index> history;
  EXPECT_THROW(Temperature{.temperature = 0}(logits, history), InvalidArgument);
  EXPECT_THROW(Temperature{.temperature = NAN}(logits, history), InvalidArgument);
  EXPECT_THROW(TopK{.k = 0}(logits, history), InvalidArgument);
  EXPECT_THROW(TopP{.p = 1.1}(logits, history), InvalidArgument);
  EXPECT_THROW(MinP{.p = -0.1}(logits, history), InvalidArgument);
  EXPECT_THROW(MinP{.p = 1.1}(logits, history), InvalidArgument);
  EXPECT_THROW(RepetitionPenalty{.penalty = 0}(logits, history), InvalidArgument);
  EXPECT_THROW(RepetitionPenalty{.last = -2}(logits, history), InvalidArgument);
  EXPECT_THROW(NoRepeatNgram{.n = 0}(logits, history), InvalidArgument);
}

/// What top-k, top-p or greedy keep, by sorting all tokens.
SamplingStep plainly(Index k, double p) {
  return [k, p](std::span<double> logits, std::span<const Index>) {
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    const double most = logits[order[0]];
    double total = 0, sum = 0;
    for (const double logit : logits) total += detail::exp(logit - most);
    for (std::size_t i = 0; i < order.size(); ++i) {
      double& logit = logits[order[i]];
      const double power = detail::exp(logit - most);
      if (i > 0 && (static_cast<Index>(i) >= k || sum >= p * total)) logit = gone;
      sum += power;
    }
  };
}

/// The softmax of what is left, by passes over all tokens.
std::vector<double> plain_shares(std::vector<double> logits,
                                 const std::vector<SamplingStep>& steps) {
  for (const SamplingStep& step : steps) step(logits, {});
  const double most = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (double& logit : logits) total += logit = detail::exp(logit - most);
  for (double& logit : logits) logit /= total;
  return logits;
}

Index plain_draw(const std::vector<double>& shares, Random& random) {
  const double aim = random.uniform() * std::accumulate(shares.begin(), shares.end(), 0.0);
  double sum = 0;
  Index drawn = 0;
  for (std::size_t i = 0; i < shares.size() && (i == 0 || aim >= sum); ++i) {
    sum += shares[i];
    if (shares[i] > 0) drawn = static_cast<Index>(i);
  }
  return drawn;
}

TEST(Sampler, BitsAndDrawsAreThoseOfPlainPasses) {
  Random random(7), draws(8), plain_draws(8);
  for (int round = 0; round < 300; ++round) {
    Tensor<float, 2> values({1 + random.integer(1500), 2});  // of which one column is strided
    const double width = std::exp(6 * random.uniform() - 2);
    for (float& value : values) {
      value = static_cast<float>(
          width * (round % 2 == 0 ? random.normal() : static_cast<double>(random.integer(9))));
      if (random.integer(9) == 0) value = -std::numeric_limits<float>::infinity();
    }
    values(0, 0) = 0;
    const auto strided = values.select(1, 0);
    const std::vector<float> logits(strided.begin(), strided.end());
    const std::vector<double> wide(logits.begin(), logits.end());
    const Index k = 1 + random.integer(random.integer(3) == 0 ? 1500 : 50), all = 1 << 30;
    const double p = round % 5 == 0 ? 1 - 1e-9 : 0.999 * random.uniform();
    const std::pair<Sampler, std::vector<SamplingStep>> pairs[] = {
        {{}, {}},
        {Greedy{}, {plainly(1, 2)}},
        {TopK{.k = k}, {plainly(k, 2)}},
        {TopP{.p = p}, {plainly(all, p)}},
        {{Temperature{0.7}, Greedy{}}, {Temperature{0.7}, plainly(1, 2)}},
        {{Temperature{0.7}, TopK{.k = k}, TopP{.p = p}},
         {Temperature{0.7}, plainly(k, 2), plainly(all, p)}}};
    for (const auto& [sampler, steps] : pairs) {
      const std::vector<double> shares = plain_shares(wide, steps);
      ASSERT_EQ(sampler.distribution(logits), shares) << round;
      ASSERT_EQ(sampler.distribution(strided), shares) << round;
      const Index token = plain_draw(shares, plain_draws);
      Random other = draws, third = draws;
      ASSERT_EQ(sampler(logits, {}, draws), token) << round;
      ASSERT_EQ(sampler(strided, {}, other), token);
      ASSERT_EQ(sampler(wide, {}, third), token);
      ASSERT_EQ(draws.state(), plain_draws.state());
    }
  }
}

TEST(Sampler, GreedyIsFirstOfLargestAndRefusesWhatOthersRefuse) {
  Random random(9);
  const auto greedy = [&](const std::vector<double>& values) {
    const std::vector<float> narrow(values.begin(), values.end());
    const Index token = Sampler(Greedy{})(values, {}, random);
    EXPECT_EQ(Sampler(Greedy{})(narrow, {}, random), token);
    return token;
  };
  EXPECT_EQ(greedy({-2, -1, -1, gone, -1}), 1);
  EXPECT_EQ(greedy({-0.0, 0.0}), 0);
  EXPECT_EQ(greedy({gone, -1e9}), 1);
  EXPECT_EQ(Sampler(Greedy{})(std::vector<double>{1e308, 1.5e308, 1e308}, {}, random), 1)
      << "their sum is beyond all doubles";
  EXPECT_EQ(Sampler(Greedy{})(std::vector<int>{1, 3, 3}, {}, random), 1);
  const Random before = random;
  for (const double bad : {static_cast<double>(NAN), -gone}) {
    for (const double other : {0.0, gone, -gone}) {
      const std::vector<double> values = {0, bad, other, 5};
      EXPECT_THROW(Sampler(Greedy{})(values, {}, random), InvalidArgument) << bad << ' ' << other;
    }
  }
  EXPECT_THROW(greedy({gone, gone}), InvalidArgument);
  EXPECT_THROW(greedy({}), InvalidArgument);
  EXPECT_EQ(random.state(), before.state()) << "what is refused takes no numbers";
}

using namespace samplers;

const std::vector<double> logits = {1, 0.5, -1, 2, 0, 1.5, -3, 0.25, 1, -0.5};

TEST(Sampler, DrawsAsOftenAsSoftmaxSays) {
  const Sampler sampler{Temperature{0.9}};
  const std::vector<double> shares = sampler.distribution(logits);
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    total += shares[i];
    EXPECT_NEAR(shares[i] / shares[0], std::exp((logits[i] - logits[0]) / 0.9), 1e-13);
  }
  EXPECT_NEAR(total, 1, 1e-15);
  std::vector<double> counts(10);
  Random random(1);
  constexpr int draws = 200000;
  for (int i = 0; i < draws; ++i) {
    counts[static_cast<std::size_t>(sampler(logits, {}, random))] += 1;
  }
  double chi_square = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    const double expected = shares[i] * draws;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 27.9) << "0.1 % of the chi-square distribution of 9 degrees of freedom";
  EXPECT_GT(chi_square, 1.15);
}

TEST(Sampler, WhatIsTakenAwayIsNeverDrawn) {
  const Sampler sampler{TopK{.k = 6}, TopP{.p = 0.9}, MinP{.p = 0.2}};
  const auto shares = sampler.distribution(logits);
  Random random(2);
  for (int i = 0; i < 1000000; ++i) {
    const Index token = sampler(logits, {}, random);
    ASSERT_GT(shares[static_cast<std::size_t>(token)], 0) << token;
  }
  EXPECT_EQ(shares[2], 0);
  EXPECT_EQ(shares[6], 0);
}

TEST(Sampler, StepsActInTheirOrder) {
  const Sampler first{Temperature{10}, TopP{.p = 0.5}}, last{TopP{.p = 0.5}, Temperature{10}};
  const auto count = [](const std::vector<double>& shares) {
    return std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; });
  };
  EXPECT_GT(count(first.distribution(logits)), count(last.distribution(logits)));
  Random random(3);
  EXPECT_EQ(Sampler{Greedy{}}(logits, {}, random), 3);
  const Sampler own{[](std::span<double> values, std::span<const Index>) { values[3] = -1e9; },
                    Greedy{}};
  EXPECT_EQ(own(logits, {}, random), 5);
  const std::vector<Index> history = {3, 5};
  EXPECT_EQ((Sampler{NoRepeatNgram{.n = 1}, Greedy{}})(logits, history, random), 0);
}

TEST(Sampler, OneNumberADrawAndTheSameOnesAgain) {
  Random random(4), copy = random;
  const Sampler sampler;
  std::vector<Index> first, again;
  for (int i = 0; i < 50; ++i) first.push_back(sampler(logits, {}, random));
  for (int i = 0; i < 50; ++i) again.push_back(sampler(logits, {}, copy));
  EXPECT_EQ(first, again);
  Random counted(4);
  for (int i = 0; i < 50; ++i) counted.uniform();
  EXPECT_EQ(counted.state(), random.state());
  const std::vector<float> narrow = {0, 100, 0};
  EXPECT_EQ(sampler(narrow, {}, random), 1);
}

void expect_refused(const Sampler& sampler, const std::vector<double>& values,
                    const std::string& words) {
  Random random(5);
  try {
    sampler(values, {}, random);
    ADD_FAILURE() << words;
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.what(), words);
  }
}

TEST(Sampler, RefusesLogitsThatSayNothing) {
  expect_refused({}, {0, NAN}, "Sampler: the logit of token 1 is nan");
  expect_refused({}, {INFINITY, 0}, "Sampler: the logit of token 0 is inf");
  expect_refused({}, {-INFINITY, -INFINITY}, "Sampler: no token can be chosen of 2");
  expect_refused({}, {}, "Sampler: no token can be chosen of 0");
  expect_refused({[](std::span<double> values, std::span<const Index>) { values[0] = -INFINITY; }},
                 {1}, "Sampler: no token can be chosen of 1 after the steps of the sampler");
}

TEST(Sampler, NaNOfAStepIsNotHiddenByTheNext) {
  const auto broken = [](std::span<double> values, std::span<const Index>) { values[1] = NAN; };
  const std::vector<double> values = {1, 2, 3};
  for (const SamplingStep& next :
       {SamplingStep(samplers::TopK{1}), SamplingStep(samplers::TopP{0.5}),
        SamplingStep(samplers::MinP{0.5}), SamplingStep(samplers::Greedy{})}) {
    EXPECT_THROW((Sampler{broken, next}.distribution(values)), InvalidArgument);
  }
  EXPECT_THROW(Sampler{SamplingStep()}, InvalidArgument);
}

TEST(Sampler, LogitsOfAnySize) {
  for (const double shift : {-1e6, -800.0, 0.0, 800.0, 1e6}) {
    const auto shares = Sampler{}.distribution(std::vector<double>{shift, shift + 1});
    EXPECT_NEAR(shares[1], 1 / (1 + std::exp(-1.0)), 1e-12) << shift;
  }
}

}  // namespace
}  // namespace heed
