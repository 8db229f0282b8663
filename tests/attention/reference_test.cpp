// SPDX-License-Identifier: MIT
#include <heed/attention/reference.hpp>

#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

TEST(Reference, TwoKeysByHand) {
  Tensor<double, 2> q({1, 1}), k({2, 1}), v({2, 1}), out({1, 1});
  q(0, 0) = 1;
  k(0, 0) = std::log(3.0);  // weights 3 : 1
  v(0, 0) = 10;
  v(1, 0) = 2;
  Tensor<double, 1> lse({1});
  reference_attention(q, k, v, masks::Full{}, out, {.log_sum_exp = lse});
  EXPECT_NEAR(out(0, 0), 8, 1e-12);
  EXPECT_NEAR(lse(0), std::log(4.0), 1e-12);
  reference_attention(q, k, v, masks::Full{}, out, {.scale = 0.0});
  EXPECT_NEAR(out(0, 0), 6, 1e-12) << "scale 0 averages";
}

TEST(Reference, WorksInLongDouble) {
  const Inputs<float> in({1, 2, 1, 5, 6, 3, 2}, 71);
  Tensor<long double, 4> out({1, 2, 5, 2});
  Tensor<double, 4> narrow({1, 2, 5, 2});
  reference_attention(converted<long double>(in.queries), converted<long double>(in.keys),
                      converted<long double>(in.values), masks::Causal{}, out);
  reference_attention(converted<double>(in.queries), converted<double>(in.keys),
                      converted<double>(in.values), masks::Causal{}, narrow);
  for (Index i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(out.data()[i]), narrow.data()[i], 1e-14);
  }
}

TEST(Reference, AMaskedKeyIsNotLookedAt) {
  Tensor<float, 2> q({2, 1}), k({2, 1}), v({2, 1}), out({2, 1});
  v(0, 0) = 5;
  v(1, 0) = NAN;
  k(1, 0) = INFINITY;
  reference_attention(q, k, v, masks::Causal{}, out);
  EXPECT_EQ(out(0, 0), 5.f);
  EXPECT_TRUE(std::isnan(out(1, 0)));
}

}  // namespace
}  // namespace heed::test
