// SPDX-License-Identifier: MIT
#include <heed/attention/merge.hpp>

#include <algorithm>

#include <heed/attention/forward.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

TEST(Merge, TwoSetsOfKeysAreOne) {
  const Shape shape{2, 4, 2, 30, 200, 16, 9};
  const Inputs<double> in(shape, 11);
  const auto whole = fused(shape, in, masks::Causal{});
  const auto odd = predicate([](Index q, Index k) { return k <= q && k % 3 == 0; });
  const auto rest = predicate([](Index q, Index k) { return k <= q && k % 3 != 0; });
  auto first = fused(shape, in, odd);
  const auto second = fused(shape, in, rest);
  merge(first.out, first.lse, second.out, second.lse);
  for (Index i = 0; i < whole.out.size(); ++i) {
    EXPECT_NEAR(first.out.data()[i], whole.out.data()[i], 1e-14);
  }
  for (Index i = 0; i < whole.lse.size(); ++i) {
    EXPECT_NEAR(first.lse.data()[i], whole.lse.data()[i], 1e-14);
  }
}

TEST(Merge, ThreadsChangeNoBit) {
  const Shape shape{2, 3, 3, 130, 64, 16, 40};
  const auto first = fused(shape, Inputs<float>(shape, 12), masks::Causal{});
  const auto second = fused(shape, Inputs<float>(shape, 13), masks::Full{});
  const RestoreSettings restore;
  set_thread_count(1);
  auto one = first;
  merge(one.out, one.lse, second.out, second.lse);
  for (const Index threads : {2, 5}) {
    set_thread_count(threads);
    auto several = first;
    merge(several.out, several.lse, second.out, second.lse);
    EXPECT_TRUE(same_bits(several.out, one.out) && same_bits(several.lse, one.lse)) << threads;
  }
}

TEST(Merge, TakesBfloat16AsAttentionWritesIt) {
  const Inputs<float> floats({1, 2, 2, 9, 9, 8, 8}, 13);
  const auto in = Tensor<bfloat16, 4>::copy_of(floats.queries);
  const auto call = [&](Index begin, Index end, Tensor<bfloat16, 4>& out, Tensor<float, 3>& lse) {
    attention(in, in, in, [=](Index, Index key) { return begin <= key && key < end; }, out,
              {.log_sum_exp = lse});
  };
  Tensor<bfloat16, 4> whole(in.extents()), first(in.extents()), second(in.extents());
  Tensor<float, 3> whole_lse({1, 2, 9}), lse({1, 2, 9}), second_lse({1, 2, 9});
  call(0, 9, whole, whole_lse);
  call(0, 4, first, lse);
  call(4, 9, second, second_lse);
  merge(first, lse, second, second_lse);
  for (Index i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(float(first.data()[i]), float(whole.data()[i]), 0x1p-6) << i;
  }
  for (Index i = 0; i < lse.size(); ++i) {
    EXPECT_NEAR(lse.data()[i], whole_lse.data()[i], 0x1p-8) << i << ": sums of rounded weights";
  }
}

TEST(Merge, ElementsOfARowAreThoseOfColumnsAlone) {
  const Shape shape{2, 3, 3, 9, 20, 8, 37};
  const auto sees_some = predicate([](Index q, Index k) { return q % 4 != 0 && k % 2 == 0; });
  auto row = fused(shape, Inputs<float>(shape, 14), sees_some);
  const auto other = fused(shape, Inputs<float>(shape, 15), masks::Causal{});
  auto columns = row;
  for (Index column = 0; column < 37; ++column) {
    auto lse = row.lse;
    merge(columns.out.slice(3, column, column + 1), lse, other.out.slice(3, column, column + 1),
          other.lse);
  }
  merge(row.out, row.lse, other.out, other.lse);
  EXPECT_TRUE(same_bits(row.out, columns.out));
}

TEST(Merge, AnEmptySetChangesNothing) {
  const Shape shape{1, 2, 2, 7, 20, 8, 8};
  const Inputs<float> in(shape, 12);
  const auto whole = fused(shape, in, masks::Causal{});
  auto nothing = fused(shape, in, predicate([](Index, Index) { return false; }));
  auto result = fused(shape, in, masks::Causal{});
  std::fill(nothing.out.begin(), nothing.out.end(), std::numeric_limits<float>::quiet_NaN());
  merge(result.out, result.lse, nothing.out, nothing.lse);
  EXPECT_TRUE(same_bits(result.out, whole.out));
  EXPECT_TRUE(same_bits(result.lse, whole.lse));
  // The other way round it takes everything, and nothing of what stood there.
  merge(nothing.out, nothing.lse, whole.out, whole.lse);
  EXPECT_TRUE(same_bits(nothing.out, whole.out));
  EXPECT_TRUE(same_bits(nothing.lse, whole.lse));
}

TEST(Merge, NaNOfAVisibleKeyReachesTheResult) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {nan, std::numeric_limits<float>::infinity()}) {
    // The weight of the first set underflows to 0; that of a set without keys is 0.
    Tensor<float, 2> low({1, 1}, {value}), high({1, 1}, {3}), onto = high;
    Tensor<float, 1> low_lse({1}, {-2000}), high_lse({1}, {0}), onto_lse = high_lse;
    merge(onto, onto_lse, low, low_lse);
    EXPECT_NE(onto(0, 0), onto(0, 0)) << value;
    merge(low, low_lse, high, high_lse);
    EXPECT_NE(low(0, 0), low(0, 0)) << value;
  }
}

TEST(Merge, RefusesShapesThatDoNotFit) {
  Tensor<float, 3> out({2, 5, 4}), other({2, 5, 3});
  Tensor<float, 2> lse({2, 5}), short_lse({2, 4});
  EXPECT_THROW(merge(out, lse, other, lse), ShapeError);
  EXPECT_THROW(merge(out, lse, out, short_lse), ShapeError);
}

TEST(Merge, RefusesToWriteOverWhatItReads) {
  Tensor<float, 3> memory({2, 6, 4}), apart({2, 5, 4});
  Tensor<float, 2> lse({2, 5}), other_lse({2, 5});
  const auto out = memory.view().slice(1, 0, 5), shifted = memory.view().slice(1, 1, 6);
  EXPECT_THROW(merge(out, lse, shifted, other_lse), ShapeError);
  EXPECT_THROW(merge(out, lse, apart, lse), ShapeError);
  const TensorView<float, 2> on_out(memory.data(), {2, 5});
  EXPECT_THROW(merge(out, lse, apart, on_out), ShapeError);
  EXPECT_THROW(merge(out, on_out, apart, lse), ShapeError);
  merge(out, lse, apart, other_lse);
}

}  // namespace
}  // namespace heed::test
