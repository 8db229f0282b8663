// SPDX-License-Identifier: MIT
#include <heed/attention/gradient_options.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(GradientOptions, NothingIsGivenUnlessSaid) {
  EXPECT_FALSE(GradientOptions<float>{}.grad_log_sum_exp.given());
  EXPECT_FALSE(GradientOptions<float>{}.grad_bias.given());
  EXPECT_TRUE(GradientOptions<float>{}.grad_relative_bias.empty());
  EXPECT_TRUE(GradientOptions<float>{}.grad_alibi_slopes.empty());
  EXPECT_TRUE(GradientOptions<float>{}.grad_sinks.empty());
  const Tensor<float, 2> rows({2, 3});
  const GradientOptions<float> options{.grad_log_sum_exp = rows};
  EXPECT_EQ(options.grad_log_sum_exp.view().data_handle(), rows.data());
}

}  // namespace
}  // namespace heed
