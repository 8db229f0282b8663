// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class BackwardKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
  const simd::BackwardKernels<float>& kernels_ = simd::backward_kernels<float>();
};

TEST_P(BackwardKernels, UnpackTurnsLanesIntoRows) {
  for (const Index count : {1, 15, 16, 17, 63, 64}) {
    for (const Index columns : {1, 15, 16, 17, 40}) {
      std::vector<float> packed(static_cast<std::size_t>(64 * columns));
      for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<float>(i);
      const Index stride = columns + 3;
      std::vector<float> rows(static_cast<std::size_t>(64 * stride), -1.f);
      kernels_.unpack(packed.data(), count, columns, 0.5f, rows.data(), stride);
      for (Index row = 0; row < 64; ++row) {
        for (Index column = 0; column < stride; ++column) {
          const bool written = row < count && column < columns;
          const float expected = written ? 0.5f * static_cast<float>(column * 64 + row) : -1.f;
          ASSERT_EQ(rows[static_cast<std::size_t>(row * stride + column)], expected);
        }
      }
    }
  }
}

TEST_P(BackwardKernels, RowDotsAndPutRows) {
  const Index stride = 3 * kernels_.row_lanes;
  std::vector<float> a(static_cast<std::size_t>(5 * stride)), b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 5) - 2;
  }
  std::vector<float> dots(5);
  kernels_.row_dots({a.data(), stride}, {b.data(), stride}, 5, stride, dots.data());
  for (Index row = 0; row < 5; ++row) {
    float sum = 0;
    for (Index i = row * stride; i < (row + 1) * stride; ++i) {
      sum += a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(dots[static_cast<std::size_t>(row)], sum);
  }
  for (const Index step : {1, 2}) {
    std::vector<float> out(400, 1.f);
    kernels_.put_rows(a.data(), stride, 3, 19 > stride ? stride : 19, 3.f, true, out.data(), 100,
                      step);
    EXPECT_EQ(out[100], 1 + 3 * a[static_cast<std::size_t>(stride)]);
    EXPECT_EQ(out[static_cast<std::size_t>(200 + 2 * step)],
              1 + 3 * a[static_cast<std::size_t>(2 * stride + 2)]);
    kernels_.put_rows(a.data(), stride, 3, 2, -1.f, false, out.data(), 100, step);
    EXPECT_EQ(out[100], -a[static_cast<std::size_t>(stride)]);
    EXPECT_FALSE(std::signbit(out[0])) << "0 · −1 is written as +0";
  }
}

TEST_P(BackwardKernels, RowsAreAddedInDoubleAnyNumberOfPlacesApart) {
  const auto check = [](const auto& kernels, auto number) {
    std::vector<decltype(number)> rows(7 * 64);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<decltype(number)>(i % 61) / 16 - 1;
    }
    for (const Index lanes : {1, 7, 16, 63, 64}) {
      for (const Index step : {-1, 0, 64}) {
        std::vector<double> sums(8 * 64, 0x1p-40), expected = sums;
        kernels.add_in_double(rows.data(), 7, lanes, sums.data() + 6, step);
        for (Index row = 0; row < 7; ++row) {
          for (Index lane = 0; lane < lanes; ++lane) {
            expected[static_cast<std::size_t>(6 + row * step + lane)] +=
                static_cast<double>(rows[static_cast<std::size_t>(row * 64 + lane)]);
          }
        }
        ASSERT_EQ(sums, expected) << lanes << " lanes, " << step << " apart";
      }
    }
  };
  check(kernels_, 0.f);
  check(simd::backward_kernels<double>(), 0.0);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, BackwardKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
