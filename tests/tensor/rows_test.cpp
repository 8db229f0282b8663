// SPDX-License-Identifier: MIT
#include <heed/tensor/rows.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <tensor/random_view.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/tensor/copy.hpp>

namespace heed {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

/// The definition, in long double: weights and log-sum-exp of the elements that `keep` keeps.
template <class T>
struct Exact {
  Exact(const std::vector<T>& row, const std::vector<char>& keep, long double temperature) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (keep[i]) maximum = std::fmax(maximum, row[i] / temperature);
    }
    long double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      distances.push_back(maximum - row[i] / temperature);
      weights.push_back(keep[i] ? std::exp(-distances[i]) : 0);
      sum += weights[i];
    }
    for (long double& weight : weights) weight /= sum;
    log_sum = std::log(sum);
  }
  std::vector<long double> weights, distances;
  long double maximum = -infinity<long double>, log_sum = 0;
};

template <class T>
void check_against_definition(std::uint64_t stream, Index count, double sigma, double temperature) {
  SCOPED_TRACE(::testing::Message() << "stream " << stream << ", " << count << " columns, sigma "
                                    << sigma << ", temperature " << temperature);
  Random random(41, stream);
  std::vector<T> row(static_cast<std::size_t>(count));
  std::vector<char> keep(row.size());
  Tensor<bool, 1> mask({count});
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<T>(sigma * random.normal());
    keep[i] = i == 0 || random.integer(4) != 0;
    mask[static_cast<Index>(i)] = keep[i];
  }
  const Exact<T> exact(row, keep, temperature);
  const RowOptions<1> options{.temperature = temperature, .mask = mask};
  const auto weights = softmax(row, options);
  const auto logs = log_softmax(row, options);
  const long double u = std::numeric_limits<T>::epsilon() / 2;
  const long double rounds = 8 + std::sqrt(static_cast<long double>(count)) / 4;
  const bool fused = simd::active() != simd::Isa::scalar && simd::active() != simd::Isa::sse2;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto at = static_cast<Index>(i);
    if (!keep[i]) {
      ASSERT_EQ(weights[at], 0);
      ASSERT_EQ(logs[at], -infinity<T>);
      continue;
    }
    // A double's distance from the maximum is rounded once more by a temperature.
    const long double bound =
        (fused ? 1 : 2) * u * (rounds + exact.distances[i] * (temperature == 1 ? 1 : 2));
    ASSERT_LE(std::fabs(weights[at] - exact.weights[i]),
              bound * exact.weights[i] + std::numeric_limits<T>::min());  // subnormal: 0
    ASSERT_LE(std::fabs(logs[at] - (-exact.distances[i] - exact.log_sum)),
              bound + u * (exact.distances[i] + 2 * std::fabs(exact.log_sum)));
  }
  const long double lse = exact.maximum + exact.log_sum;
  ASSERT_LE(std::fabs(log_sum_exp(row, options)[0] - lse),
            u * (rounds + 2 * std::fabs(exact.maximum) + 2 * std::fabs(exact.log_sum)));
}

template <class T>
class Rows : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Rows, Scalars);

TYPED_TEST(Rows, AccurateForAnyLengthSpreadAndTemperature) {
  std::uint64_t stream = 0;
  for (const Index count : {1, 2, 7, 64, 1000}) {
    for (const double sigma : {0.01, 1.0, 30.0, 1e4}) {
      for (const double temperature : {0.1, 1.0, 0.7, 5.0}) {
        check_against_definition<TypeParam>(stream++, count, sigma, temperature);
      }
    }
  }
}

TYPED_TEST(Rows, AccurateForAVocabulary) {
  check_against_definition<TypeParam>(1000, 200000, 1, 1);
  check_against_definition<TypeParam>(1001, 200000, 0, 1);  // 200,000 equal terms
  check_against_definition<TypeParam>(1002, 200000, 10, 0.9);
}

TYPED_TEST(Rows, HugeElements) {
  using T = TypeParam;
  const T most = std::numeric_limits<T>::max();
  const auto weights = softmax(std::vector<T>{most, -most, most});
  EXPECT_EQ(weights[0], T{0.5});
  EXPECT_EQ(weights[1], T{0});
  EXPECT_EQ(softmax(std::vector<T>{-most, -most})[1], T{0.5});
  EXPECT_EQ(log_sum_exp(std::vector<T>{most})[0], most);
  EXPECT_EQ(log_softmax(std::vector<T>{1000, 0})[1], T{-1000});
  // Small temperatures: the maximum is subtracted before anything can overflow.
  const auto sharp = softmax(std::vector<T>{most, most / 2}, {.temperature = 1e-300});
  EXPECT_EQ(sharp[0], T{1});
  EXPECT_EQ(sharp[1], T{0});
}

TYPED_TEST(Rows, NothingVisible) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  Tensor<T, 2> in({2, 3}, {1, 2, 3, nan, infinity<T>, 5});
  const Tensor<bool, 2> mask({2, 1}, {true, false});
  const auto weights = softmax(in, {.mask = mask});
  const auto logs = log_softmax(in, {.mask = mask});
  const auto sums = log_sum_exp(in, {.mask = mask});
  for (Index i = 0; i < 3; ++i) {
    EXPECT_GT(weights(0, i), 0);
    EXPECT_EQ(weights(1, i), 0);
    EXPECT_FALSE(std::signbit(weights(1, i)));
    EXPECT_EQ(logs(1, i), -infinity<T>);
  }
  EXPECT_EQ(sums[1], -infinity<T>);
  // Visible scores of −inf are no votes either.
  const std::vector<T> lost(4, -infinity<T>);
  EXPECT_EQ(softmax(lost)[3], 0);
  EXPECT_EQ(log_softmax(lost)[0], -infinity<T>);
  EXPECT_EQ(log_sum_exp(lost)[0], -infinity<T>);
  EXPECT_EQ(softmax(std::vector<T>{0, -infinity<T>})[1], 0);
  EXPECT_EQ(softmax(std::vector<T>{0, -infinity<T>})[0], 1);
}

/// In place the row is gone when its result is known.
TYPED_TEST(Rows, NothingAndNaNInPlace) {
  using T = TypeParam;
  const Tensor<bool, 1> all({4}, true);
  for (const RowOptions<1>& options : {RowOptions<1>{}, RowOptions<1>{.mask = all}}) {
    Tensor<T, 1> weights({4}, -infinity<T>), logs = weights;
    softmax(weights, weights, options);
    log_softmax(logs, logs, options);
    for (Index i = 0; i < 4; ++i) {
      EXPECT_EQ(weights[i], 0);
      EXPECT_EQ(logs[i], -infinity<T>);
    }
    weights.fill(-infinity<T>);
    weights[2] = std::numeric_limits<T>::quiet_NaN();
    logs = weights;
    softmax(weights, weights, options);
    log_softmax(logs, logs, options);
    for (Index i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(weights[i]) && std::isnan(logs[i]));
  }
}

TYPED_TEST(Rows, EmptyRowsAndNoRows) {
  using T = TypeParam;
  const auto sums = log_sum_exp(Tensor<T, 2>({3, 0}));
  EXPECT_EQ(sums.extents(), (Extents<1>{3}));
  for (const T sum : sums) EXPECT_EQ(sum, -infinity<T>);
  EXPECT_TRUE(softmax(Tensor<T, 3>({2, 0, 4})).empty());
  EXPECT_EQ(log_sum_exp(Tensor<T, 1>({0}))[0], -infinity<T>);
}

TYPED_TEST(Rows, MaskedContentIsAbsent) {
  using T = TypeParam;
  Tensor<bool, 1> mask({5}, {true, false, true, false, true});
  const auto clean = softmax(std::vector<T>{1, 0, 2, 0, 3}, {.mask = mask});
  const auto clean_logs = log_softmax(std::vector<T>{1, 0, 2, 0, 3}, {.mask = mask});
  for (const T poison : {infinity<T>, -infinity<T>, std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::max()}) {
    const std::vector<T> row{1, poison, 2, poison, 3};
    EXPECT_TRUE(std::equal(clean.begin(), clean.end(), softmax(row, {.mask = mask}).begin()));
    EXPECT_TRUE(
        std::equal(clean_logs.begin(), clean_logs.end(), log_softmax(row, {.mask = mask}).begin()));
  }
}

TYPED_TEST(Rows, VisibleNanAndInfinityMakeTheirRowNan) {
  using T = TypeParam;
  for (const T poison : {infinity<T>, std::numeric_limits<T>::quiet_NaN()}) {
    for (Index at = 0; at < 19; ++at) {
      Tensor<T, 2> in({3, 19});
      Tensor<bool, 1> mask({19});
      for (Index i = 0; i < 19; ++i) mask[i] = i == at || i % 3 != 0;
      in(1, at) = poison;
      const auto weights = softmax(in, {.mask = mask});
      const auto logs = log_softmax(in, {.mask = mask});
      const auto sums = log_sum_exp(in, {.mask = mask});
      for (Index row = 0; row < 3; ++row) {
        EXPECT_EQ(std::isnan(sums[row]), row == 1) << at;
        for (Index i = 0; i < 19; ++i) {
          EXPECT_EQ(std::isnan(weights(row, i)), row == 1 && mask[i]) << at << ' ' << i;
          EXPECT_EQ(std::isnan(logs(row, i)), row == 1 && mask[i]) << at << ' ' << i;
        }
      }
    }
  }
}

TYPED_TEST(Rows, EqualElementsGetEqualBitsWhereverTheyStand) {
  using T = TypeParam;
  for (Index count = 1; count <= 70; ++count) {
    const auto all_equal = softmax(std::vector<T>(static_cast<std::size_t>(count), T(0.3)));
    for (const T weight : all_equal) ASSERT_EQ(weight, all_equal[0]) << count;
    std::vector<T> alternating(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < alternating.size(); ++i) alternating[i] = i % 2 ? T(-1.7) : T(0.3);
    const auto weights = softmax(alternating);
    for (Index i = 2; i < count; ++i) ASSERT_EQ(weights[i], weights[i - 2]) << count;
  }
}

TYPED_TEST(Rows, ShiftsAndScalesByPowersOfTwoChangeNoBit) {
  using T = TypeParam;
  Random random(42);
  std::vector<T> row(100), shifted(100), scaled(100);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<T>(random.integer(1 << 12)) / T(256);  // few bits: the shift is exact
    shifted[i] = row[i] + T(512);
    scaled[i] = row[i] * T(4);
  }
  const auto weights = softmax(row), same = softmax(shifted);
  const auto warm = softmax(scaled, {.temperature = 4});
  for (Index i = 0; i < 100; ++i) {
    ASSERT_EQ(weights[i], same[i]);
    ASSERT_EQ(weights[i], warm[i]);
  }
}

TYPED_TEST(Rows, InPlaceIsTheSame) {
  using T = TypeParam;
  Random random(43);
  Tensor<T, 2> in({4, 33});
  for (T& value : in) value = random.normal<T>();
  Tensor<bool, 2> mask({4, 33});
  for (bool& keep : mask) keep = random.integer(2) == 0;
  const auto weights = softmax(in, {.mask = mask});
  const auto logs = log_softmax(in, {.mask = mask});
  Tensor<T, 2> first = in, second = in;
  softmax(first, first, {.mask = mask});
  log_softmax(second, second, {.mask = mask});
  EXPECT_TRUE(std::equal(first.begin(), first.end(), weights.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), logs.begin()));
}

TEST(RowFunctions, AnyStridesGiveTheBitsOfContiguousRows) {
  for (std::uint64_t stream = 0; stream < 500; ++stream) {
    Random random(44, stream);
    const test::RandomView<3> sample(random, true);
    const auto extents = sample.view().extents();
    Tensor<float, 3> memory({extents[2], 2 * extents[0], extents[1]});
    const auto out = memory.view().permute({1, 2, 0}).slice(0, 0, 2 * extents[0], 2).reverse(2);
    const auto expected = softmax(sample.expected(), {.temperature = 30});
    softmax(sample.view(), out, {.temperature = 30});
    const auto got = Tensor<float, 3>::copy_of(out);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), expected.begin())) << "stream " << stream;
    const auto sums = log_sum_exp(sample.view());
    const auto expected_sums = log_sum_exp(sample.expected());
    ASSERT_TRUE(std::equal(sums.begin(), sums.end(), expected_sums.begin())) << stream;
  }
}

TEST(RowFunctions, ThreadsChangeNoBit) {
  const auto before = thread_count();
  Random random(12);
  Tensor<float, 3> x({3, 50, 400});
  for (float& value : x) value = static_cast<float>(4 * random.normal());
  Tensor<bool, 2> mask({50, 400}, true);
  for (Index i = 0; i < mask.size(); i += 3) mask.data()[i] = false;
  set_thread_count(1);
  const auto weights = softmax(x, {.mask = mask}), logs = log_softmax(x, {.mask = mask});
  const auto sums = log_sum_exp(x, {.mask = mask});
  for (const Index threads : {2, 5}) {
    set_thread_count(threads);
    EXPECT_TRUE(softmax(x, {.mask = mask}) == weights);
    EXPECT_TRUE(log_softmax(x, {.mask = mask}) == logs);
    EXPECT_TRUE(log_sum_exp(x, {.mask = mask}) == sums);
  }
  set_thread_count(before);
}

TEST(RowFunctions, WrongArgumentsAreRefusedBeforeWriting) {
  Tensor<float, 2> in({2, 3});
  Tensor<float, 2> out({2, 3});
  for (float& value : out) value = 7;
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  for (const double temperature : {0.0, -1.0, nan, infinity<double>}) {
    EXPECT_THROW(softmax(in, out, {.temperature = temperature}), InvalidArgument);
    EXPECT_THROW(log_softmax(in, out, {.temperature = temperature}), InvalidArgument);
    EXPECT_THROW(log_sum_exp(in, {.temperature = temperature}), InvalidArgument);
  }
  const Tensor<bool, 1> mask({2});
  EXPECT_THROW(softmax(in, out, {.mask = mask}), ShapeError);
  EXPECT_THROW(log_sum_exp(in, {.mask = mask}), ShapeError);
  EXPECT_THROW(softmax(in, out.view().permute({1, 0})), ShapeError);
  EXPECT_THROW(softmax(out, out.view().reverse(0)), ShapeError);
  EXPECT_THROW(softmax(out.view().slice(1, 0, 2), out.view().slice(1, 1, 3)), ShapeError);
  EXPECT_THROW(softmax(in, out.view().slice(0, 0, 1).broadcast(0, 2)), ShapeError);
  for (const float value : out) EXPECT_EQ(value, 7);
}

// Scores 2.3, 5.7, 8.9 and two that are masked: the votes that articles print.
TEST(RowFunctions, TheVote) {
  const std::vector<float> scores{2.3f, 5.7f, 8.9f, -1.2f, -0.8f};
  const std::array<bool, 5> mask{true, true, true, false, false};
  const auto votes = softmax(scores, {.mask = mask});
  EXPECT_NEAR(votes[0], 0.0013, 5e-5);
  EXPECT_NEAR(votes[1], 0.0391, 5e-5);
  EXPECT_NEAR(votes[2], 0.9596, 5e-5);
  EXPECT_EQ(votes[3], 0);
  EXPECT_EQ(votes[4], 0);
}

}  // namespace
}  // namespace heed
