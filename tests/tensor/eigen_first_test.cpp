// SPDX-License-Identifier: MIT
#include <heed/tensor/eigen.hpp>
// Eigen's door first, attention second; eigen_test.cpp has them the other way round.
#include <heed/attention/forward.hpp>

#include <gtest/gtest.h>

#include <utility>

#include <tensor/eigen_cases.hpp>

namespace heed {
namespace {

TEST(EigenFirst, AttentionTakesMatrices) { test::expect_attention_takes_eigen(); }

}  // namespace
}  // namespace heed
