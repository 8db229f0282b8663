// SPDX-License-Identifier: MIT
#include <heed/attention/score_function.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace heed {
namespace {

struct Square {
  float value(float score, Position) const { return score * score; }
  float derivative(float score, Position) const { return 2 * score; }
};

float minus_key(float score, Position at) { return score - static_cast<float>(at.key); }

TEST(ScoreFunction, TakesCallablesAndDifferentiableObjects) {
  const auto lambda = [](float score, Position at) { return score + static_cast<float>(at.head); };
  const Square square;
  const ScoreFunction<float> none, by_lambda(lambda), by_square(square), by_function(minus_key);
  EXPECT_FALSE(none.given());
  EXPECT_TRUE(by_lambda.given() && !by_lambda.differentiable());
  EXPECT_TRUE(by_square.given() && by_square.differentiable());
  EXPECT_EQ(by_lambda.value(1.f, {0, 4, 0, 0}), 5.f);
  EXPECT_EQ(by_function.value(1.f, {0, 4, 0, 3}), -2.f);
  EXPECT_EQ(by_square.value(3.f, {}), 9.f);
  EXPECT_EQ(by_square.derivative(3.f, {}), 6.f);
}

TEST(ScoreFunction, ATileIsVisitedWhereItIsVisible) {
  // Two tiles of two lanes, three keys, three queries.
  std::vector<float> scores(12, 1.f);
  const Index keys[] = {10, 20, 30};
  const std::uint64_t words[] = {0b101, 0b000, 0b110};
  const auto position = [](float, Position at) {
    return static_cast<float>(at.key * 100 + at.query * 10 + at.head);
  };
  ScoreFunction<float>(position).to_values({scores.data(), 6, 2, keys, 3, words, {0, 7, 4, 0}, 3});
  EXPECT_EQ(scores, (std::vector<float>{1047, 1, 1, 1, 1, 3057, 1067, 1, 1, 1, 3067, 1}));
}

TEST(ScoreFunction, KeepsACopyOfSmallAndLargeCallables) {
  ScoreFunction<float> small, large, shared_by;
  {
    float term = 2;
    std::vector<float> terms(100, 3.f);
    small = [term](float score, Position) { return score + term; };
    large = [terms](float score, Position) { return score + terms[50]; };
    shared_by = large;
    term = 0;
    terms.assign(100, 0.f);
  }
  EXPECT_EQ(small.value(1.f, {}), 3.f);
  EXPECT_EQ(large.value(1.f, {}), 4.f);
  large = {};
  EXPECT_FALSE(large.given());
  EXPECT_EQ(shared_by.value(1.f, {}), 4.f);
}

TEST(ScoreFunction, OfACallableThatCannotBeCopied) {
  struct Counting {
    Counting() = default;
    Counting(const Counting&) = delete;
    float operator()(float score, Position) const {
      ++calls;
      return score;
    }
    mutable int calls = 0;
  };
  const Counting counting;
  EXPECT_EQ(ScoreFunction<float>(std::ref(counting)).value(2.f, {}), 2.f);
  EXPECT_EQ(counting.calls, 1);
}

}  // namespace
}  // namespace heed
