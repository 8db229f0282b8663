// SPDX-License-Identifier: MIT
#include <heed/layers/detail/row_work.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed {
namespace {

TEST(RowWork, RunsCoverEveryRowOnce) {
  for (const Index width : {1, 5000}) {
    for (const Index rows : {0, 1, 31, 32, 33, 200}) {
      std::vector<int> seen(static_cast<std::size_t>(rows));
      detail::for_row_runs(rows, width, [&](Index first, Index last) {
        for (Index row = first; row < last; ++row) ++seen[static_cast<std::size_t>(row)];
      });
      for (const int count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(RowWork, SumsAreOfAllRows) {
  for (const Index width : {3, 4000}) {
    const auto sum =
        detail::sum_row_runs<double>(300, width, [&](Index first, Index last, double* to) {
          for (Index i = 0; i < width; ++i) to[i] += static_cast<double>(last - first);
        });
    for (const double value : sum) EXPECT_EQ(value, 300);
  }
}

}  // namespace
}  // namespace heed
