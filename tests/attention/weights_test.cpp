// SPDX-License-Identifier: MIT
#include <heed/attention/weights.hpp>

#include <cmath>
#include <limits>

#include <heed/core/random.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"
#include "support/mask_catalogue.hpp"

namespace heed::test {
namespace {

template <class T>
class Weights : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Weights, Scalars);

TYPED_TEST(Weights, TimesValuesIsTheOutput) {
  using T = TypeParam;
  const Shape shape{2, 4, 2, 70, 130, 9, 6};
  const Inputs<T> in(shape, 61);
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    const Mask mask = masks::Causal{} & masks::predicate([](Position at) {
                        return (at.key + at.head) % 3 != 0 && at.query % 10 != 7;
                      });
    const auto weights = attention_weights(in.queries, in.keys, mask);
    const auto out = attention(in.queries, in.keys, in.values, mask);
    for (Index b = 0; b < 2; ++b) {
      for (Index h = 0; h < 4; ++h) {
        for (Index q = 0; q < 70; ++q) {
          T sum = 0;
          for (Index k = 0; k < 130; ++k) {
            const T weight = weights(b, h, q, k);
            sum += weight;
            const bool zero = weight == 0 && !std::signbit(weight);
            EXPECT_TRUE(zero || allows(mask, {b, h, q + 60, k}));
          }
          EXPECT_NEAR(sum, (q + 60) % 10 == 7 ? 0 : 1, 1e-5);
          for (Index d = 0; d < 6; ++d) {
            T expected = 0;
            for (Index k = 0; k < 130; ++k) {
              expected += weights(b, h, q, k) * in.values(b, h / 2, k, d);
            }
            EXPECT_NEAR(out(b, h, q, d), expected, 1e-5);
          }
        }
      }
    }
  }
}

TYPED_TEST(Weights, OfRowsWhoseSinkIsAboveAllScoresTimesValuesAreTheOutput) {
  using T = TypeParam;
  const Shape shape{1, 4, 2, 70, 130, 9, 6};
  const Inputs<T> in(shape, 63);
  const RestoreSettings restore;
  AttentionOptions<T> options;
  options.sinks = {T(-5), T(0.5), T(4), T(12)};
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    const auto weights = attention_weights(in.queries, in.keys, masks::Causal{}, options);
    const auto out = attention(in.queries, in.keys, in.values, masks::Causal{}, options);
    for (Index h = 0; h < 4; ++h) {
      for (Index q = 0; q < 70; ++q) {
        for (Index d = 0; d < 6; ++d) {
          T expected = 0, size = 0;
          for (Index k = 0; k < 130; ++k) {
            const T term = weights(0, h, q, k) * in.values(0, h / 2, k, d);
            expected += term;
            size += std::abs(term);
          }
          EXPECT_NEAR(out(0, h, q, d), expected, T(1e-5) * size) << "head " << h << ", query " << q;
        }
      }
    }
  }
}

TYPED_TEST(Weights, OfMaskedKeysAreZeroInARowThatSeesNaN) {
  using T = TypeParam;
  const Shape shape{1, 1, 1, 130, 130, 9, 6};
  Inputs<T> in(shape, 64);
  const Mask mask = masks::last_n(2);
  const RestoreSettings restore;
  for (const T hostile :
       {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    in.keys(0, 0, 2, 4) = hostile;
    for (const auto isa : supported_sets()) {
      simd::use(isa);
      const auto weights = attention_weights(in.queries, in.keys, mask);
      const auto sums = summarize_weights(in.queries, in.keys, mask).key_sums;
      for (Index q = 0; q < 130; ++q) {
        for (Index k = 0; k < 130; ++k) {
          const T weight = weights(0, 0, q, k);
          if (!allows(mask, {0, 0, q, k})) {
            ASSERT_TRUE(weight == 0 && !std::signbit(weight)) << simd::name(isa) << q << " " << k;
          }
        }
        EXPECT_TRUE(std::isfinite(sums(0, 0, q)) || (q >= 1 && q <= 3)) << q;
      }
    }
  }
}

TYPED_TEST(Weights, ChosenRowsAreTheRowsOfTheWhole) {
  using T = TypeParam;
  const Shape shape{2, 2, 1, 100, 100, 9, 6};
  const Inputs<T> in(shape, 62);
  const auto whole = attention_weights(in.queries, in.keys, masks::Causal{});
  const auto rows = attention_weights(in.queries, in.keys, masks::Causal{},
                                      WeightRows{.batch = 1, .head = 1, .first = 37, .count = 40});
  ASSERT_EQ(rows.extents(), (Extents<2>{40, 100}));
  EXPECT_EQ(std::memcmp(rows.data(), &whole(1, 1, 37, 0), sizeof(T) * 40 * 100), 0);
  const auto rest = attention_weights(in.queries, in.keys, masks::Causal{},
                                      WeightRows{.batch = 0, .head = 1, .first = 98});
  EXPECT_EQ(rest.extent(0), 2);
}

TEST(MeanOverHeads, AddsMapsInTheirOrder) {
  Random random(3);
  Tensor<float, 4> weights({2, 5, 9, 15});  // maps of two runs and a rest
  for (float& weight : weights) weight = static_cast<float>(random.uniform());
  const auto mean = mean_over_heads(weights);
  for (Index i = 0; i < mean.size(); ++i) {
    float sum = 0;
    for (Index h = 0; h < 5; ++h) sum += weights.data()[(i / 135 * 5 + h) * 135 + i % 135];
    ASSERT_EQ(mean.data()[i], sum / 5) << i;
  }
}

TEST(WeightRows, OutsideTheTensorAreRefused) {
  Tensor<float, 4> q({1, 2, 5, 4});
  const auto refuse = [&](const WeightRows& rows) {
    EXPECT_THROW(attention_weights(q, q, masks::Full{}, rows), ShapeError);
  };
  refuse({.batch = 1});
  refuse({.head = 2});
  refuse({.head = -1});
  refuse({.first = 6});
  refuse({.first = 3, .count = 3});
  EXPECT_EQ(attention_weights(q, q, masks::Full{}, WeightRows{.first = 5}).extent(0), 0);
}

TEST(WeightsOfALongSequence, CostOnlyTheRowsAskedFor) {
  // The whole would be 40 GB.
  const Inputs<float> in({1, 1, 1, 100000, 100000, 2, 1}, 63);
  const auto rows = attention_weights(in.queries, in.keys, masks::Causal{},
                                      WeightRows{.first = 99999, .count = 1});
  double sum = 0;
  for (const float weight : rows) sum += static_cast<double>(weight);
  EXPECT_NEAR(sum, 1, 1e-4);
}

TEST(Weights, AHugeCountIsRefusedInWordsThatDoNotOverflow) {
  const Tensor<float, 4> q({1, 1, 5, 4});
  try {
    attention_weights(q, q, masks::Full{},
                      {.first = 1, .count = std::numeric_limits<Index>::max()});
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_EQ(std::string(error.what()),
              "attention_weights: batch 0, head 0, 9223372036854775807 rows from 1 on; expected "
              "some of queries (1, 1, 5, 4)");
  }
}

}  // namespace
}  // namespace heed::test
