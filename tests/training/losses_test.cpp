// SPDX-License-Identifier: MIT
#include <heed/training/losses.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <heed/core/random.hpp>
#include <heed/io/npy.hpp>

namespace heed {
namespace {

TEST(MeanSquaredError, IsTheMeanOfSquares) {
  const Tensor<float, 2> predictions({2, 2}, {1, 2, 3, 4});
  const Tensor<float, 2> targets({2, 2}, {1, 0, 4, 8});
  const auto [loss, gradient] = mean_squared_error(predictions, targets);
  EXPECT_EQ(loss, (0 + 4 + 1 + 16) / 4.0);
  const float expected[] = {0, 1, -0.5f, -2};
  for (Index i = 0; i < 4; ++i) EXPECT_EQ(gradient.data()[i], expected[i]);
}

TEST(MeanSquaredError, AnyStridesAndNothing) {
  const Tensor<double, 2> values({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto turned = values.view().permute({1, 0});
  const auto [loss, gradient] = mean_squared_error(turned, turned.reverse(0));
  EXPECT_DOUBLE_EQ(loss, (4 + 4 + 4 + 4) / 6.0);
  EXPECT_EQ(gradient.extents(), (Extents<2>{3, 2}));
  EXPECT_DOUBLE_EQ(gradient(0, 0), 2 * (1 - 3) / 6.0);
  EXPECT_EQ(mean_squared_error(Tensor<double, 1>({0}), Tensor<double, 1>({0})).loss, 0);
  const Tensor<double, 1> nan({1}, {NAN});
  EXPECT_TRUE(std::isnan(mean_squared_error(nan, nan).loss));
}

TEST(MeanSquaredError, RefusesOtherExtents) {
  try {
    mean_squared_error(Tensor<float, 1>({2}), Tensor<float, 1>({3}));
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "mean_squared_error: predictions are (2), targets (3)");
  }
}

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::string golden = HEED_TEST_DATA "/training/";

template <class T>
Tensor<T, 2> random_logits(Index rows, Index classes, double sigma, std::uint64_t seed) {
  Random random(seed);
  Tensor<T, 2> logits({rows, classes});
  for (T& value : logits) value = static_cast<T>(sigma * random.normal());
  return logits;
}

/// The definition, in long double.
template <class T>
long double reference_loss(const Tensor<T, 2>& logits, const std::vector<Index>& targets,
                           long double smoothing) {
  long double loss = 0;
  for (Index row = 0; row < logits.extent(0); ++row) {
    long double maximum = logits(row, 0), sum = 0, mean = 0;
    for (Index i = 0; i < logits.extent(1); ++i) {
      maximum = std::fmax(maximum, static_cast<long double>(logits(row, i)));
    }
    for (Index i = 0; i < logits.extent(1); ++i) sum += std::exp(logits(row, i) - maximum);
    const auto log_p = [&](Index i) { return logits(row, i) - maximum - std::log(sum); };
    for (Index i = 0; i < logits.extent(1); ++i) mean += log_p(i) / logits.extent(1);
    loss -= (1 - smoothing) * log_p(targets[static_cast<std::size_t>(row)]) + smoothing * mean;
  }
  return loss / logits.extent(0);
}

TEST(CrossEntropy, EqualsPyTorch) {
  const auto logits = load_npy<double, 3>(golden + "logits.npy");
  const auto targets = load_npy<std::int64_t, 2>(golden + "targets.npy");
  const auto losses = load_npy<double, 1>(golden + "losses.npy");
  const auto gradients = load_npy<double, 4>(golden + "grad_logits.npy");
  const double smoothings[] = {0, 0.1, 1};
  for (Index i = 0; i < 3; ++i) {
    const CrossEntropyOptions options{.label_smoothing = smoothings[i]};
    const auto [loss, grad_logits] = cross_entropy(logits, targets, options);
    EXPECT_NEAR(loss, losses(i), 1e-14);
    for (Index at = 0; at < logits.size(); ++at) {
      EXPECT_NEAR(grad_logits.data()[at], gradients.data()[i * logits.size() + at], 1e-15);
    }
    EXPECT_EQ(cross_entropy_loss(logits, targets, options), loss);
  }
}

TEST(CrossEntropy, AccurateForLargeVocabularies) {
  const Index classes = 200000;
  const auto wide = random_logits<double>(2, classes, 4, 1);
  Tensor<float, 2> logits(wide.extents());
  for (Index i = 0; i < wide.size(); ++i) logits.data()[i] = static_cast<float>(wide.data()[i]);
  const std::vector<Index> targets = {17, 199999};
  for (const double smoothing : {0., 0.1}) {
    const auto [loss, gradient] = cross_entropy(logits, targets, {.label_smoothing = smoothing});
    const auto exact = static_cast<double>(reference_loss(logits, targets, smoothing));
    EXPECT_NEAR(loss, exact, 1e-8 * exact);
    for (Index row = 0; row < 2; ++row) {
      double sum = 0;
      for (Index i = 0; i < classes; ++i) sum += gradient(row, i);
      EXPECT_NEAR(sum, 0, 1e-7) << "each row of gradients adds up to 0";
    }
  }
}

template <class Targets>
void expect_difference_quotients(Tensor<double, 2> logits, const Targets& targets,
                                 const CrossEntropyOptions& options) {
  const auto gradient = cross_entropy(logits, targets, options).grad_logits;
  for (Index i = 0; i < logits.size(); ++i) {
    const double value = logits.data()[i], h = 1e-4;
    logits.data()[i] = value + h;
    const double above = cross_entropy_loss(logits, targets, options);
    logits.data()[i] = value - h;
    const double below = cross_entropy_loss(logits, targets, options);
    logits.data()[i] = value;
    EXPECT_NEAR(gradient.data()[i], (above - below) / (2 * h), 1e-9);
  }
}

TEST(CrossEntropy, GradientsAreDifferenceQuotients) {
  const auto logits = random_logits<double>(3, 5, 2, 2);
  const std::vector<std::int32_t> targets = {4, -1, 0};
  const CrossEntropyOptions options{.ignored = -1, .label_smoothing = 0.2};
  expect_difference_quotients(logits, targets, options);
}

/// Shares of one class alone are that class, with smoothing too.
TEST(CrossEntropy, SharesOfOneClassAreTheClass) {
  const auto logits = random_logits<double>(6, 40, 3, 21);
  const std::vector<Index> targets = {3, 0, 39, 7, 7, 1};
  Tensor<double, 2> shares({6, 40});
  for (std::size_t i = 0; i < 6; ++i) shares(static_cast<Index>(i), targets[i]) = 1;
  for (const double smoothing : {0.0, 0.3, 1.0}) {
    const CrossEntropyOptions options{.label_smoothing = smoothing};
    const auto of_classes = cross_entropy(logits, targets, options);
    const auto of_shares = cross_entropy(logits, shares, options);
    EXPECT_NEAR(of_shares.loss, of_classes.loss, 1e-13);
    EXPECT_EQ(cross_entropy_loss(logits, shares, options), of_shares.loss);
    for (Index i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(of_shares.grad_logits.data()[i], of_classes.grad_logits.data()[i], 1e-15);
    }
  }
}

TEST(CrossEntropy, GradientsOfSharesAreDifferenceQuotients) {
  auto logits = random_logits<double>(3, 5, 2, 2);
  Tensor<double, 2> shares({3, 5});
  Random random(9);
  for (Index i = 0; i < 10; ++i) shares.data()[i] = random.uniform();  // no sum of 1; the last: 0
  const CrossEntropyOptions options{.label_smoothing = 0, .divisor = 7};
  expect_difference_quotients(logits, shares, options);
  logits(2, 0) = NAN;
  EXPECT_TRUE(std::isfinite(cross_entropy_loss(logits, shares, options))) << "not read";
}

TEST(CrossEntropy, SharesAtTheLimits) {
  Tensor<float, 2> logits({1, 3}, {0, -float(infinity), 1});
  const Tensor<float, 2> outside({1, 3}, {0.5f, 0, 0.5f}), inside({1, 3}, {0.5f, 0.25f, 0.25f});
  const auto finite = cross_entropy(logits, outside);
  EXPECT_TRUE(std::isfinite(finite.loss));
  EXPECT_EQ(finite.grad_logits(0, 1), 0);
  EXPECT_EQ(cross_entropy_loss(logits, inside), infinity);
  EXPECT_EQ(cross_entropy(logits, inside).grad_logits(0, 1), -0.25f);
  logits.fill(-float(infinity));
  const auto empty = cross_entropy(logits, inside);
  EXPECT_EQ(empty.loss, infinity);
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(empty.grad_logits(0, i), -inside(0, i));
  logits(0, 1) = NAN;
  const auto broken = cross_entropy(logits, inside);
  EXPECT_TRUE(std::isnan(broken.loss));
  for (const float value : broken.grad_logits) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(cross_entropy_loss(Tensor<float, 2>({0, 3}), Tensor<float, 2>({0, 3})), 0);
  EXPECT_EQ(cross_entropy_loss(Tensor<float, 2>({3, 0}), Tensor<float, 2>({3, 0})), 0);
}

TEST(CrossEntropy, RefusesSharesThatAreNone) {
  const auto logits = random_logits<double>(2, 3, 1, 7);
  for (const double bad : {-0.5, infinity, double(NAN)}) {
    const Tensor<double, 2> shares({2, 3}, {1, 0, 0, 0, 0, bad});
    EXPECT_THROW(cross_entropy(logits, shares), InvalidArgument) << bad;
    EXPECT_THROW(cross_entropy_loss(logits, shares), InvalidArgument) << bad;
  }
  EXPECT_THROW(cross_entropy(logits, Tensor<double, 2>({2, 4})), ShapeError);
  EXPECT_THROW(cross_entropy(logits, logits, {.divisor = -1}), InvalidArgument);
}

TEST(CrossEntropy, IgnoredTargetsAreAbsent) {
  auto logits = random_logits<float>(4, 6, 1, 3);
  const std::vector<Index> targets = {1, -100, 5, -100};
  const auto before = cross_entropy(logits, targets);
  for (Index i = 0; i < 6; ++i) {
    logits(1, i) = NAN;
    logits(3, i) = i % 2 == 0 ? INFINITY : -INFINITY;
  }
  const auto after = cross_entropy(logits, targets);
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(std::memcmp(after.grad_logits.data(), before.grad_logits.data(), 24 * sizeof(float)),
            0);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(after.grad_logits(1, i), 0);
  const Tensor<float, 2> kept({2, 6});
  const std::vector<Index> none = {-100, -100};
  const auto nothing = cross_entropy(kept, none);
  EXPECT_EQ(nothing.loss, 0);
  for (const float value : nothing.grad_logits) EXPECT_EQ(value, 0);
  EXPECT_EQ(cross_entropy(Tensor<float, 2>({0, 6}), std::vector<Index>()).loss, 0);
}

TEST(CrossEntropy, SmoothedLogitsWhoseSumOverflows) {
  const std::vector<Index> target = {1};
  const Tensor<double, 2> large({1, 3}, 1e308), small({1, 3}, -1e308);
  for (const auto* logits : {&large, &small}) {
    EXPECT_DOUBLE_EQ(cross_entropy_loss(*logits, target, {.label_smoothing = 0.1}), std::log(3.));
  }
  Tensor<double, 2> nan = large;
  nan(0, 2) = NAN;
  EXPECT_TRUE(std::isnan(cross_entropy_loss(nan, target, {.label_smoothing = 0.1})));
}

TEST(CrossEntropy, LogitsOfMinusInfinity) {
  Tensor<double, 2> logits({1, 3}, {0, -infinity, 0});
  const auto other = cross_entropy(logits, std::vector<Index>{0});
  EXPECT_DOUBLE_EQ(other.loss, std::log(2.));
  EXPECT_EQ(other.grad_logits(0, 0), -0.5);
  EXPECT_EQ(other.grad_logits(0, 1), 0);
  const auto self = cross_entropy(logits, std::vector<Index>{1});
  EXPECT_EQ(self.loss, infinity);
  EXPECT_EQ(self.grad_logits(0, 1), -1);
  EXPECT_EQ(self.grad_logits(0, 2), 0.5);
  EXPECT_EQ(cross_entropy_loss(logits, std::vector<Index>{0}, {.label_smoothing = 0.1}), infinity);
  const Tensor<double, 2> nothing({1, 2}, {-infinity, -infinity});
  const auto empty = cross_entropy(nothing, std::vector<Index>{1});
  EXPECT_EQ(empty.loss, infinity);
  EXPECT_EQ(empty.grad_logits(0, 0), 0);
  EXPECT_EQ(empty.grad_logits(0, 1), -1);
}

TEST(CrossEntropy, NoClassesAndOneClass) {
  const std::vector<Index> ignored = {-100, -100}, first = {0, 0};
  const auto none = cross_entropy(Tensor<float, 2>({2, 0}), ignored);
  EXPECT_EQ(none.loss, 0);
  EXPECT_EQ(none.grad_logits.extents(), (Extents<2>{2, 0}));
  EXPECT_THROW(cross_entropy(Tensor<float, 2>({2, 0}), first), InvalidArgument);
  for (const double smoothing : {0., 0.3, 1.}) {
    const Tensor<float, 2> logits({2, 1}, {-7, 1e30f});
    const auto one = cross_entropy(logits, first, {.label_smoothing = smoothing});
    EXPECT_EQ(one.loss, 0) << "what must be has probability 1";
    for (const float value : one.grad_logits) EXPECT_NEAR(value, 0, 1e-7);
    EXPECT_EQ(cross_entropy(logits, ignored, {.label_smoothing = smoothing}).loss, 0);
  }
}

TEST(CrossEntropy, LogitsAsFarApartAsFloatsGo) {
  const float most = std::numeric_limits<float>::max();
  const Tensor<float, 2> logits({1, 3}, {most, -most, 0});
  const auto lost = cross_entropy(logits, std::vector<Index>{1});
  EXPECT_EQ(lost.loss, 2 * static_cast<double>(most)) << "no float holds it, a double does";
  EXPECT_EQ(lost.grad_logits(0, 0), 1);
  EXPECT_EQ(lost.grad_logits(0, 1), -1);
  EXPECT_EQ(lost.grad_logits(0, 2), 0);
  const auto won = cross_entropy(logits, std::vector<Index>{0});
  EXPECT_EQ(won.loss, 0);
  for (const float value : won.grad_logits) EXPECT_EQ(value, 0);
}

TEST(CrossEntropy, NaNReachesTheLossAndItsRowOnly) {
  for (const double bad : {double(NAN), infinity}) {
    auto logits = random_logits<double>(2, 3, 1, 4);
    logits(0, 2) = bad;
    const auto [loss, gradient] = cross_entropy(logits, std::vector<Index>{0, 1});
    EXPECT_TRUE(std::isnan(loss));
    for (Index i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::isnan(gradient(0, i)));
      EXPECT_FALSE(std::isnan(gradient(1, i)));
    }
  }
}

TEST(CrossEntropy, SameBitsForAnyThreadsAndStrides) {
  const auto logits = random_logits<float>(100, 33, 2, 5);
  std::vector<Index> targets(100);
  for (std::size_t i = 0; i < 100; ++i) targets[i] = i % 7 == 0 ? -100 : Index(i) % 33;
  const Index threads = thread_count();
  set_thread_count(1);
  const auto one = cross_entropy(logits, targets);
  Tensor<float, 2> columns({33, 100});
  for (Index i = 0; i < 100; ++i) {
    for (Index j = 0; j < 33; ++j) columns(j, i) = logits(i, j);
  }
  for (const Index count : {2, 3}) {
    set_thread_count(count);
    const auto other = cross_entropy(columns.view().permute({1, 0}), targets);
    EXPECT_EQ(other.loss, one.loss);
    EXPECT_EQ(std::memcmp(one.grad_logits.data(), other.grad_logits.data(), 3300 * sizeof(float)),
              0);
  }
  set_thread_count(threads);
}

TEST(CrossEntropy, PartsAddUpWithADivisor) {
  const auto logits = random_logits<double>(4, 5, 1, 6);
  const std::vector<Index> targets = {0, 1, 2, 3};
  const double whole = cross_entropy_loss(logits, targets);
  double parts = 0;
  for (Index i = 0; i < 4; ++i) {
    parts += cross_entropy_loss(logits.view().slice(0, i, i + 1),
                                std::vector<Index>{targets[static_cast<std::size_t>(i)]},
                                {.divisor = 4});
  }
  EXPECT_NEAR(parts, whole, 1e-15);
}

void expect_refused(const std::vector<Index>& targets, const CrossEntropyOptions& options,
                    const std::string& words) {
  const auto logits = random_logits<double>(2, 3, 1, 7);
  try {
    cross_entropy(logits, targets, options);
    ADD_FAILURE() << words;
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.what(), words);
  }
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  expect_refused({0, 3}, {},
                 "cross_entropy: target 3 at 1 of (2); there are 3 classes, and -100 is ignored");
  expect_refused({-1, 0}, {},
                 "cross_entropy: target -1 at 0 of (2); there are 3 classes, and -100 is ignored");
  expect_refused({0}, {}, "cross_entropy: logits are (2, 3), targets (1)");
  expect_refused({0, 1}, {.label_smoothing = 1.5},
                 "cross_entropy: label_smoothing 1.5, expected 0 to 1");
  expect_refused({0, 1}, {.label_smoothing = NAN},
                 "cross_entropy: label_smoothing nan, expected 0 to 1");
  expect_refused({0, 1}, {.divisor = -1}, "cross_entropy: divisor -1, expected 0 or more");
}

}  // namespace
}  // namespace heed
