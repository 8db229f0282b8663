// SPDX-License-Identifier: MIT
#include <heed/layers/detail/rows.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed {
namespace {

TEST(Rows, RunsCoverEveryRowOnce) {
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

TEST(Rows, RowsLieWhereTheyAreUnlessTheyAreScattered) {
  Tensor<float, 4> x({2, 3, 1, 4});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i);
  const detail::Rows<float> all(x), part(x.view().slice(0, 1, 2)),
      scattered(x.view().permute({3, 1, 2, 0}));
  EXPECT_EQ(all.view().data_handle(), x.data());
  EXPECT_EQ(all.view().extents(), (Extents<2>{6, 4}));
  EXPECT_EQ(part.view().data_handle(), x.data() + 12);
  EXPECT_EQ(scattered.view().extents(), (Extents<2>{12, 2}));
  EXPECT_EQ(scattered.view()(5, 1), x(1, 2, 0, 1));
}

TEST(Rows, ATemporaryTensorIsItsOwnCopy) {
  Tensor<float, 3> x({2, 3, 4});
  const float* data = x.data();
  EXPECT_NE(detail::owned<float>(x).data(), data);
  EXPECT_NE(detail::owned_rows<float>(x.view()).data(), data);
  EXPECT_EQ(detail::owned_rows<float>(std::move(x)).data(), data);
}

TEST(Rows, SumsAreOfAllRows) {
  for (const Index width : {3, 4000}) {
    const auto sum =
        detail::sum_row_runs<double>(300, width, [&](Index first, Index last, double* to) {
          for (Index i = 0; i < width; ++i) to[i] += static_cast<double>(last - first);
        });
    for (const double value : sum) EXPECT_EQ(value, 300);
  }
}

TEST(Rows, AGradientWithoutAForwardPassSaysSo) {
  const Tensor<float, 2> grad({3, 4}), nothing({0, 0}), two({2, 5});
  Tensor<float, 2> weight({4, 5});
  const auto refusal = [&](const Tensor<float, 2>& x) -> std::string {
    try {
      detail::accumulate_weight<float, float>(grad, x, weight, Products::exact);
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(two), "backward: a gradient of (3, 4) where forward saw (2, 5)");
  EXPECT_EQ(refusal(nothing),
            "backward: a gradient of (3, 4), but no forward pass filled `saved`; expected that of "
            "forward(x, saved)");
}

}  // namespace
}  // namespace heed
