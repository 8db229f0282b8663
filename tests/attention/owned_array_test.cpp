// SPDX-License-Identifier: MIT
#include <heed/attention/options.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed {
namespace {

template <class T>
std::vector<T> values_of(const OwnedArray<T>& array) {
  return {array.begin(), array.end()};
}

TEST(OwnedArray, KeepsWhatTemporariesHeld) {
  const OwnedArray<float> of_tensor = Tensor<float, 1>({3}, {1, 2, 3});
  EXPECT_EQ(values_of(of_tensor), (std::vector<float>{1, 2, 3}));
  const OwnedArray<Index> of_vector = std::vector<Index>{4, 5}, of_list = {6, 7, 8};
  EXPECT_EQ(values_of(of_vector), (std::vector<Index>{4, 5}));
  EXPECT_EQ(values_of(of_list), (std::vector<Index>{6, 7, 8}));
  std::array<Index, 2> changing{1, 2};
  const OwnedArray<Index> of_array = changing;
  changing[0] = 9;
  EXPECT_EQ(of_array[0], 1) << "a copy";
  EXPECT_EQ(of_array.size(), 2u);
}

/// A user's container, without iterators.
struct TwoPlaces {
  const Index* data() const { return places.data(); }
  std::size_t size() const { return places.size(); }
  std::array<Index, 2> places{0, 5};
};

TEST(OwnedArray, TakesEveryKindOfList) {
  const Index fixed[2] = {0, 5};
  Index changing[2] = {0, 5};
  const std::initializer_list<Index> list = {0, 5};
  const std::vector<Index> expected{0, 5};
  for (const OwnedArray<Index>& array :
       {OwnedArray<Index>(TwoPlaces{}), OwnedArray<Index>(fixed), OwnedArray<Index>(changing),
        OwnedArray<Index>(list), OwnedArray<Index>(std::vector<int>{0, 5}),
        OwnedArray<Index>(std::span<const Index>(expected))}) {
    EXPECT_EQ(values_of(array), expected);
  }
}

TEST(OwnedArray, CopiesShareAndOutliveTheFirst) {
  OwnedArray<double> copy;
  EXPECT_TRUE(copy.empty());
  {
    const OwnedArray<double> first{1.5, 2.5};
    copy = first;
    EXPECT_EQ(copy.data(), first.data());
  }
  EXPECT_EQ(values_of(copy), (std::vector<double>{1.5, 2.5}));
  copy = {};
  EXPECT_TRUE(copy.empty());
  EXPECT_TRUE(OwnedArray<double>(std::vector<double>{}).empty());
}

TEST(OwnedArray, BorrowedRefersToWhatIsThere) {
  std::vector<Index> values{1, 2};
  const auto borrowed = OwnedArray<Index>::borrowed(values);
  values[1] = 7;
  EXPECT_EQ(borrowed.data(), values.data());
  EXPECT_EQ(borrowed[1], 7);
}

}  // namespace
}  // namespace heed
