// SPDX-License-Identifier: MIT
#include <heed/tensor/view.hpp>

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/tensor/eigen.hpp>

namespace heed::detail {
namespace {

TEST(Run, IsWhatHoldsValuesOneBehindAnother) {
  static_assert(HoldsRun<std::vector<float>>);
  static_assert(HoldsRun<std::vector<float>, const float>);
  static_assert(!HoldsRun<const std::vector<float>, float>, "const values stay const");
  static_assert(!HoldsRun<std::vector<float>, double>);
  static_assert(!HoldsRun<std::vector<bool>>, "bits have no pointer");
  static_assert(HoldsRun<std::span<int>, int>);
  static_assert(HoldsRun<Tensor<float, 2>, float>);
  static_assert(!HoldsRun<Eigen::MatrixXf>, "columns come first");
  static_assert(!HoldsRun<float*>);
  static_assert(std::is_same_v<RunElement<const std::array<float, 2>>, const float>);
}

TEST(Run, CountMustBeExact) {
  EXPECT_NO_THROW(check_run_fits<2>(6, {2, 3}));
  EXPECT_NO_THROW(check_run_fits<2>(0, {0, 3}));
  EXPECT_THROW(check_run_fits<2>(7, {2, 3}), ShapeError);
  EXPECT_THROW(check_run_fits<2>(1, {0, 3}), ShapeError);
}

TEST(Run, StridesStayInside) {
  EXPECT_NO_THROW(check_run_fits<2>(6, {2, 3}, {3, 1}));
  EXPECT_NO_THROW(check_run_fits<2>(3, {9, 3}, {0, 1}));
  EXPECT_NO_THROW(check_run_fits<2>(0, {0, 3}, {3, 1}));
  EXPECT_THROW(check_run_fits<2>(5, {2, 3}, {3, 1}), ShapeError);
  EXPECT_THROW(check_run_fits<2>(6, {2, 3}, {3, -1}), ShapeError);
}

}  // namespace
}  // namespace heed::detail
