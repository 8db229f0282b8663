// SPDX-License-Identifier: MIT
#include <heed/tensor/view.hpp>

#include <sys/mman.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include <tensor/random_view.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/layout.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {
namespace {

constexpr Index most = std::numeric_limits<Index>::max();
constexpr Index least = std::numeric_limits<Index>::min();

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(View, RowMajorByDefault) {
  auto values = counting(24);
  const TensorView view(values.data(), {2, 3, 4});
  static_assert(std::is_same_v<decltype(view), const TensorView<float, 3>>);
  EXPECT_EQ(view.strides(), (Extents<3>{12, 4, 1}));
  EXPECT_EQ(view(1, 2, 3), 23);
  EXPECT_EQ(view.size(), 24);
  view(0, 1, 0) = 100;
  EXPECT_EQ(values[4], 100);
}

TEST(View, OfNothing) {
  const TensorView<float, 2> view;
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.data_handle(), nullptr);
  EXPECT_TRUE(view.reverse(0).permute({1, 0}).slice(0, 0, 0).empty());
}

TEST(View, RankFollowsFromTheLists) {
  auto values = counting(24);
  const TensorView columns(values.data(), {6, 4}, {1, 6});
  static_assert(std::is_same_v<decltype(columns), const TensorView<float, 2>>);
  EXPECT_EQ(columns(5, 3), 23);
  const Index heads = 2, length = 3;
  const float* constant = values.data();
  const TensorView packed(constant, {1, heads, length, 4}, {24, 4, 8, 1});
  static_assert(std::is_same_v<decltype(packed), const TensorView<const float, 4>>);
  EXPECT_EQ(packed(0, 1, 2, 3), 23);
}

TEST(View, OfAContainerWithExtents) {
  auto values = counting(6);
  const TensorView view(values, {2, 3});
  static_assert(std::is_same_v<decltype(view), const TensorView<float, 2>>);
  view(1, 2) = 9;
  EXPECT_EQ(values[5], 9);
  const auto& constant = values;
  static_assert(std::is_same_v<decltype(TensorView(constant, {2, 3})), TensorView<const float, 2>>);
  const TensorView<const float, 3> reads(values, {3, 1, 2});
  EXPECT_EQ(reads(2, 0, 0), 4);
  std::array<int, 4> four = {1, 2, 3, 4};
  EXPECT_EQ(TensorView(four, {2, 2})(1, 0), 3);
  EXPECT_EQ(TensorView(std::span(values).subspan(2), {2, 2})(1, 0), 4);
  EXPECT_THROW(TensorView(values, {2, 2}), ShapeError);
  EXPECT_THROW(TensorView(values, {2, 4}), ShapeError);
  EXPECT_THROW(TensorView(values, {-2, -3}), ShapeError);
}

TEST(View, OfAContainerWithExtentsAndStrides) {
  auto values = counting(6);
  EXPECT_EQ(TensorView(values, {3, 2}, {1, 3})(2, 1), 5);
  EXPECT_EQ(TensorView(values, {2, 2}, {3, 1})(1, 1), 4) << "a part of the values is enough";
  EXPECT_TRUE(TensorView(values, {0, 9}, {9, 9}).empty());
  EXPECT_THROW(TensorView(values, {3, 2}, {2, 3}), ShapeError);
  EXPECT_THROW(TensorView(values, {2, 3}, {3, -1}), ShapeError) << "before the first value";
}

TEST(View, RowsByIndexAndFill) {
  auto values = counting(24);
  const TensorView view(values.data(), {4, 6}, {1, 4});
  EXPECT_EQ(view[3].extents(), (Extents<1>{6}));
  EXPECT_EQ(view[3][5], 23);
  EXPECT_THROW(view[4], ShapeError);
  view.slice(1, 1, 3).fill(-1);
  EXPECT_EQ(values[3], 3);
  EXPECT_EQ(values[4], -1);
  EXPECT_EQ(values[11], -1);
  EXPECT_EQ(values[12], 12);
  view[2].fill(7);
  EXPECT_EQ(values[2], 7);
  EXPECT_EQ(values[22], 7);
  EXPECT_EQ(values[23], 23);
  TensorView<float, 2>().fill(1);
}

TEST(View, OperationsEqualTheirMeaning) {
  const std::uint64_t seed = 11;
  for (std::uint64_t stream = 0; stream < 2000; ++stream) {
    Random random(seed, stream);
    const test::RandomView<3> sample(random, true);
    ASSERT_EQ(sample.view().extents(), sample.expected().extents()) << "stream " << stream;
    for (Index i = 0; i < sample.view().extent(0); ++i) {
      for (Index j = 0; j < sample.view().extent(1); ++j) {
        for (Index k = 0; k < sample.view().extent(2); ++k) {
          ASSERT_EQ(sample.view()(i, j, k), sample.expected()(i, j, k)) << "stream " << stream;
        }
      }
    }
  }
}

TEST(View, SelectSplitAndLeadingAxis) {
  auto values = counting(24);
  const TensorView view(values.data(), {2, 12});
  const auto row = view.select(0, 1);
  EXPECT_EQ(row.extents(), (Extents<1>{12}));
  EXPECT_EQ(row[5], 17);
  EXPECT_EQ(view.select(1, 3)(1), 15);
  const auto heads = view.split(1, 4);  // (2, 3 heads, 4)
  EXPECT_EQ(heads.extents(), (Extents<3>{2, 3, 4}));
  EXPECT_EQ(heads(1, 2, 3), 23);
  EXPECT_EQ(view.reverse(1).split(1, 4)(0, 2, 3), 0);
  const auto batch = view.with_leading_axis();
  EXPECT_EQ(batch.extents(), (Extents<3>{1, 2, 12}));
  EXPECT_EQ(batch(0, 1, 1), 13);
}

TEST(View, ReadsWhatItWrites) {
  auto values = counting(6);
  const TensorView<float, 1> writes = std::span<float>(values);
  const TensorView<const float, 1> reads = writes;
  writes[2] = 9;
  EXPECT_EQ(reads[2], 9);
  static_assert(!std::is_convertible_v<TensorView<const float, 1>, TensorView<float, 1>>);
  static_assert(!std::is_convertible_v<TensorView<double, 1>, TensorView<const float, 1>>);
}

TEST(View, WrongArgumentsSayWhatCame) {
  auto values = counting(6);
  const TensorView view(values.data(), {2, 3});
  EXPECT_THROW(view.slice(2, 0, 1), ShapeError);
  EXPECT_THROW(view.slice(1, -1, 1), ShapeError);
  EXPECT_THROW(view.slice(1, 2, 1), ShapeError);
  EXPECT_THROW(view.slice(1, 0, 4), ShapeError);
  EXPECT_THROW(view.slice(1, 0, 3, 0), ShapeError);
  EXPECT_THROW(view.slice(1, 0, 3, -1), ShapeError);
  EXPECT_THROW(view.permute({0, 0}), ShapeError);
  for (const Index other : {2, 3, 4, 5, 8, 100, 1000}) {
    EXPECT_THROW(view.permute({0, other}), ShapeError) << other;
  }
  EXPECT_THROW(view.permute({-1, 0}), ShapeError);
  for (const int axis : {-1, 2, 7}) {
    const auto other = static_cast<std::size_t>(axis);
    EXPECT_THROW(view.extent(other), ShapeError) << axis;
    EXPECT_THROW(view.stride(other), ShapeError) << axis;
    EXPECT_THROW((Tensor<float, 2>(2, 3).extent(other)), ShapeError) << axis;
    EXPECT_THROW(merge_axes(view, other), ShapeError) << axis;
  }
  EXPECT_THROW(view.transpose(0, 2), ShapeError);
  EXPECT_THROW(view.transpose(2, 0), ShapeError);
  EXPECT_THROW(view.reverse(7), ShapeError);
  EXPECT_THROW(view.broadcast(0, 2), ShapeError);
  EXPECT_THROW(view.slice(0, 0, 1).broadcast(0, -1), ShapeError);
  EXPECT_THROW(view.split(1, 2), ShapeError);
  EXPECT_THROW(view.split(1, 0), ShapeError);
  EXPECT_THROW(view.select(0, 2), ShapeError);
  EXPECT_THROW(view.select(0, -1), ShapeError);
  try {
    view.slice(1, 0, 4);
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "slice: [0, 4) in steps of 1 of axis 1 with extent 3, expected 0 <= begin <= end "
                 "<= extent, steps of 1 or more");
  }
}

TEST(View, ExtentsAndStridesThatDoNotFitAreRefused) {
  float value = 0;
  char byte = 0;
  EXPECT_THROW((TensorView<float, 2>(&value, {-1, 2})), ShapeError);
  EXPECT_THROW((TensorView<float, 2>(&value, {Index{1} << 32, Index{1} << 31})), ShapeError);
  EXPECT_THROW((TensorView<float, 1>(&value, {most / 2})),
               ShapeError);  // elements fit, bytes don't
  EXPECT_THROW((TensorView<float, 1>(&value, {2}, {most})), ShapeError);
  EXPECT_THROW((TensorView<char, 1>(&byte, {2}, {most})), ShapeError);
  EXPECT_THROW((TensorView<char, 1>(&byte, {2}, {least})), ShapeError);
  EXPECT_THROW((TensorView<char, 2>(&byte, {2, 2}, {most / 2 + 1, -(most / 2)})), ShapeError);
  EXPECT_THROW((TensorView<float, 2>(&value, {1, 1}).broadcast(0, most).broadcast(1, 2)),
               ShapeError);
  EXPECT_NO_THROW((TensorView<char, 1>(&byte, {2}, {most - 1})));
}

TEST(View, ANullPointerHasNoValues) {
  float* none = nullptr;
  try {
    TensorView<float, 2>(none, {2, 3});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "view: a null pointer has no values for extents (2, 3)");
  }
  EXPECT_THROW((TensorView<const float, 2>(none, {2, 3}, {1, 2})), InvalidArgument);
  EXPECT_NO_THROW((TensorView<float, 2>(none, {0, 3})));
  EXPECT_NO_THROW((TensorView<float, 2>(none, {2, 0}, {1, 2})));
}

// Under UBSan these would report an overflow.
TEST(View, ExtremeStridesThatNobodyStepsAreHarmless) {
  float value = 5;
  for (const Index stride : {most, least, Index{0}, Index{-1}}) {
    const TensorView<float, 2> one(&value, {1, 1}, {stride, stride});
    EXPECT_EQ(one.reverse(0).slice(1, 0, 1, most).split(0, 1)(0, 0, 0), 5);
    EXPECT_EQ(one.select(0, 0)[0], 5);
    EXPECT_EQ(one.broadcast(0, 3)(2, 0), 5);
  }
  char byte = 0;
  for (const char& only : TensorView<char, 2>(&byte, {1, 1}, {most, least})) EXPECT_EQ(only, 0);
  EXPECT_THROW(merge_axes(TensorView<char, 2>(&byte, {2, 2}, {1, Index{1} << 62}), 0), ShapeError);
  const TensorView<char, 1> wide(&byte, {2}, {most - 1});
  EXPECT_EQ(wide.split(0, 2).strides(), (Extents<2>{most - 1, most - 1}));
  EXPECT_EQ(wide.slice(0, 0, 2, most).extent(0), 1);
  EXPECT_EQ(wide.slice(0, 1, 2, most).extent(0), 1);
  const TensorView<float, 3> empty(nullptr, {Index{1} << 40, 0, Index{1} << 40});
  EXPECT_EQ(empty.size(), 0);
  EXPECT_TRUE(empty.reverse(0).slice(2, 7, 9).select(0, 3).empty());
}

#ifdef MAP_NORESERVE
// Address space without memory: only the pages that are touched exist.
class Reserved {
 public:
  explicit Reserved(std::size_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Reserved(const Reserved&) = delete;
  ~Reserved() {
    if (ok()) munmap(memory_, bytes_);
  }
  bool ok() const { return memory_ != MAP_FAILED; }
  float* data() const { return static_cast<float*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

TEST(View, OffsetsPast32Bits) {
  const Index row = (Index{1} << 31) + 7;  // elements; row 2 lies past 2³²
  const Reserved reserved(static_cast<std::size_t>(3 * row) * sizeof(float));
  if (!reserved.ok()) GTEST_SKIP() << "no address space for 24 GiB";
  const TensorView view(reserved.data(), {3, row});
  for (Index i = 0; i < 3; ++i) view(i, row - 1) = static_cast<float>(i + 1);
  view(2, 0) = 8;
  EXPECT_EQ(reserved.data()[3 * row - 1], 3);
  EXPECT_EQ(reserved.data()[2 * row], 8);
  EXPECT_EQ(view.reverse(0).reverse(1)(0, 0), 3);
  EXPECT_EQ(view.select(1, row - 1)(1), 2);
  EXPECT_EQ(view.permute({1, 0})(row - 1, 0), 1);
  EXPECT_EQ(view.slice(1, row - 1, row).split(0, 3)(0, 2, 0), 3);

  Tensor<float, 2> corner({3, 1});
  copy(view.slice(1, row - 1, row).reverse(0), corner);
  EXPECT_EQ(corner(0, 0), 3);
  EXPECT_EQ(corner(2, 0), 1);
  copy(corner, view.slice(1, row - 2, row - 1));
  EXPECT_EQ(reserved.data()[3 * row - 2], 1);
}
#endif

}  // namespace
}  // namespace heed
