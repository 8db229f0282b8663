// SPDX-License-Identifier: MIT
#include <heed/kernels/row_kernels.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <heed/core/random.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class TrainingKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

template <class T>
std::vector<T> normals(Index count, std::uint64_t seed) {
  Random random(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = random.normal<T>();
  return values;
}

template <class T>
void check_sums() {
  const auto& kernels = simd::training_kernels<T>();
  for (const Index count : {0, 1, 7, 16, 33, 1000}) {
    const auto x = normals<T>(count, 1);
    long double sum = 0, squares = 0;
    T most = -std::numeric_limits<T>::infinity();
    for (const T value : x) {
      sum += static_cast<long double>(value);
      squares += static_cast<long double>(value) * static_cast<long double>(value);
      most = value > most ? value : most;
    }
    EXPECT_NEAR(kernels.sum(x.data(), count), static_cast<double>(sum), 1e-13);
    EXPECT_NEAR(kernels.sum_of_squares(x.data(), count), static_cast<double>(squares), 1e-12);
    EXPECT_EQ(kernels.maximum(x.data(), count), most);
  }
}

TEST_P(TrainingKernels, SumsAndMaximum) {
  check_sums<float>();
  check_sums<double>();
}

template <class T>
void check_special_maxima() {
  const auto& kernels = simd::training_kernels<T>();
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (std::size_t at = 0; at < 40; ++at) {
    std::vector<T> x(40, T{-5});
    x[at] = nan;
    x[(at + 1) % 40] = 3;
    EXPECT_EQ(kernels.maximum(x.data(), 40), 3) << at;
    x[at] = infinity;
    EXPECT_EQ(kernels.maximum(x.data(), 40), infinity);
  }
  EXPECT_EQ(kernels.maximum(std::vector<T>(40, nan).data(), 40), -infinity);
}

TEST_P(TrainingKernels, TheMaximumSkipsNaN) {
  check_special_maxima<float>();
  check_special_maxima<double>();
}

template <class T>
void check_exponentials(double relative) {
  const auto& kernels = simd::training_kernels<T>();
  std::vector<T> x, out(2000);
  for (int i = 0; i < 2000; ++i) x.push_back(static_cast<T>(-i) / 25);
  kernels.exponentials(x.data(), T{3}, out.data(), 2000);
  for (std::size_t i = 0; i < 2000; ++i) {
    const auto exact = static_cast<double>(std::exp(static_cast<long double>(x[i] - T{3})));
    // Without a fused multiply-add the product x · log2(e) is rounded.
    EXPECT_NEAR(out[i], exact, relative * exact * (1 + static_cast<double>(i) / 25)) << x[i];
  }
  for (std::size_t length = 1; length < 40; ++length) {
    std::vector<T> part(x.begin(), x.begin() + static_cast<Index>(length));
    kernels.exponentials(part.data(), T{3}, part.data(), static_cast<Index>(length));
    EXPECT_EQ(std::memcmp(part.data(), out.data(), length * sizeof(T)), 0) << "in place, any tail";
  }
  T special[] = {-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T{3}};
  kernels.exponentials(special, T{3}, special, 3);
  EXPECT_EQ(special[0], 0);
  EXPECT_NE(special[1], special[1]);
  EXPECT_EQ(special[2], 1);
}

TEST_P(TrainingKernels, Exponentials) {
  check_exponentials<float>(2e-7);
  check_exponentials<double>(4e-16);
}

template <class T>
void check_adam(double keep1, double tolerance) {
  const simd::AdamUpdate<T> update{.factor = T(0.5),
                                   .added = T(0.01),
                                   .keep1 = T(keep1),
                                   .beta2 = T(0.99),
                                   .keep2 = T(0.01),
                                   .inverse_root = T(3),
                                   .epsilon = T(1e-4),
                                   .rate = T(0.2),
                                   .shrink = T(0.9)};
  const Index count = 1003;
  const auto weights = normals<T>(count, 2), gradient = normals<T>(count, 3);
  const auto first = normals<T>(count, 4);
  auto second = normals<T>(count, 5);
  for (T& value : second) value *= value;
  auto w = weights, m = first, v = second;
  simd::training_kernels<T>().adam(update, w.data(), gradient.data(), m.data(), v.data(), count);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double slope = 0.5 * gradient[i] + 0.01 * weights[i];
    const double mean = first[i] + keep1 * (slope - first[i]);
    const double square = 0.99 * second[i] + 0.01 * slope * slope;
    EXPECT_NEAR(m[i], mean, tolerance);
    EXPECT_NEAR(v[i], square, tolerance * (1 + square));
    EXPECT_NEAR(w[i], 0.9 * weights[i] - 0.2 * mean / (std::sqrt(square) * 3 + 1e-4), tolerance);
  }
  // Any part of the run gives the same bits.
  auto w2 = weights, m2 = first, v2 = second;
  for (Index begin = 0; begin < count; begin += 37) {
    simd::training_kernels<T>().adam(update, w2.data() + begin, gradient.data() + begin,
                                     m2.data() + begin, v2.data() + begin,
                                     std::min<Index>(37, count - begin));
  }
  EXPECT_EQ(w, w2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
}

TEST_P(TrainingKernels, Adam) {
  check_adam<float>(0.1, 1e-6);
  check_adam<double>(0.1, 1e-14);
  check_adam<float>(0.75, 1e-6);
  check_adam<double>(0.75, 1e-14);
}

/// A mean that forgets more than half of itself has no rounding error of what it forgets.
template <class T>
void check_forgetting(double relative) {
  const Index count = 37;
  const std::vector<T> gradient(count, T(1e-8));
  for (const double keep : {0.75, 1.}) {
    simd::AdamUpdate<T> update{};
    update.factor = update.epsilon = 1;
    update.keep1 = T(keep);
    std::vector<T> weights(count), mean(count, T(keep < 1 ? 1e-7 : 3)), square(count);
    const double expected = keep * 1e-8 + (1 - keep) * static_cast<double>(mean[0]);
    simd::training_kernels<T>().adam(update, weights.data(), gradient.data(), mean.data(),
                                     square.data(), count);
    for (const T value : mean) {
      EXPECT_NEAR(value / expected, 1, relative) << keep;
      EXPECT_TRUE(keep < 1 || value == T(1e-8)) << value;
    }
  }
}

TEST_P(TrainingKernels, AMeanWithoutMemoryIsTheGradient) {
  check_forgetting<float>(4e-7);
  check_forgetting<double>(1e-15);
}

INSTANTIATE_TEST_SUITE_P(Sets, TrainingKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& tested) { return std::string(simd::name(tested.param)); });

}  // namespace
}  // namespace heed::test
