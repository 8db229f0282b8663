// SPDX-License-Identifier: MIT
#include <heed/attention/relative_bias.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include <heed/attention/forward.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/random.hpp>
#include <heed/masks/combine.hpp>
#include <heed/masks/dense.hpp>
#include <heed/masks/intervals.hpp>

namespace heed {
namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

TEST(Additive, IsZeroWhereAQueryMayLook) {
  const auto bias = additive<float>(masks::Causal{}, 2, 3);
  static_assert(std::is_same_v<decltype(bias), const Tensor<float, 2>>);
  const float expected[] = {0, 0, hidden, 0, 0, 0};
  ASSERT_EQ(bias.extents(), (Extents<2>{2, 3}));
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(bias.data()[i], expected[i]) << i;
  const auto lambda = additive<bfloat16>([](Index q, Index k) { return k <= q; }, 2, 3);
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(lambda.data()[i], expected[i]) << i;
}

TEST(Additive, RefusesWhatDoesNotFit) {
  EXPECT_THROW(additive<double>(masks::Causal{}, -1, 3), ShapeError);
  EXPECT_THROW(additive<double>(masks::Padding({9}), 3, 3), ShapeError);
  EXPECT_EQ(additive<double>(masks::Causal{}, 0, 3).size(), 0);
}

TEST(Additive, TheMaskTheBiasAndTheMatrixAreOne) {
  const Index queries = 37, keys = 50, dim = 8;
  Random random(3);
  Tensor<float, 2> q(queries, dim), k(keys, dim), v(keys, dim);
  for (Tensor<float, 2>* each : {&q, &k, &v}) {
    for (float& value : *each) value = static_cast<float>(random.normal());
  }
  const auto mask = masks::Causal{} & masks::last_n(7);
  const Tensor<float, 2> bias = additive<float>(mask, queries, keys);
  const auto expected = attention(q, k, v, mask);
  const auto by_matrix = attention(q, k, v, masks::Dense(bias));
  const auto by_bias = attention(q, k, v, masks::Full{}, {.bias = bias});
  const auto bytes = static_cast<std::size_t>(expected.size()) * sizeof(float);
  EXPECT_EQ(std::memcmp(expected.data(), by_matrix.data(), bytes), 0);
  for (Index i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(by_bias.data()[i], expected.data()[i], 1e-6) << i;
  }
}

}  // namespace
}  // namespace heed
