// SPDX-License-Identifier: MIT
#include <heed/generation/sampler.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

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

TEST(Sampler, LogitsOfAnySize) {
  for (const double shift : {-1e6, -800.0, 0.0, 800.0, 1e6}) {
    const auto shares = Sampler{}.distribution(std::vector<double>{shift, shift + 1});
    EXPECT_NEAR(shares[1], 1 / (1 + std::exp(-1.0)), 1e-12) << shift;
  }
}

}  // namespace
}  // namespace heed
