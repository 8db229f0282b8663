// SPDX-License-Identifier: MIT
#include <heed/models/encoder.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace heed {
namespace {

TEST(Pooling, MeansOverWhatCounts) {
  Tensor<double, 3> x({3, 2, 2}, {1, 2, 3, 6, 5, 6, 7, 8, 9, 9, 9, 9});
  x(1, 1, 0) = std::numeric_limits<double>::quiet_NaN();  // behind the length: not looked at
  const std::vector<Index> lengths = {2, 1, 0};
  const auto means = mean_pool(x, lengths);
  const std::vector<double> expected = {2, 4, 5, 6, 0, 0};
  for (Index i = 0; i < 6; ++i) EXPECT_EQ(means.data()[i], expected[static_cast<std::size_t>(i)]);
  const auto grad = mean_pool_backward(means, lengths, 2);
  const std::vector<double> back = {1, 2, 1, 2, 5, 6, 0, 0, 0, 0, 0, 0};
  for (Index i = 0; i < 12; ++i) EXPECT_EQ(grad.data()[i], back[static_cast<std::size_t>(i)]);
}

TEST(Pooling, RefusesLengthsThatDoNotFit) {
  const Tensor<float, 3> x({2, 3, 1});
  EXPECT_THROW(mean_pool(x, std::vector<Index>{1}), ShapeError);
  EXPECT_THROW(mean_pool(x, std::vector<Index>{1, 4}), ShapeError);
  EXPECT_THROW(mean_pool(x, std::vector<Index>{-1, 1}), ShapeError);
}

}  // namespace
}  // namespace heed
