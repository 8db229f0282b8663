// SPDX-License-Identifier: MIT
#include <heed/tensor/tensor.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include <tensor/random_view.hpp>

#include "support/sanitizers.hpp"

namespace heed {
namespace {

TEST(Tensor, StartsAlignedAndZero) {
  for (const Index columns : {1, 3, 17, 1000}) {
    const Tensor<float, 2> tensor({3, columns});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0u);
    for (const float value : tensor) ASSERT_EQ(value, 0);
    EXPECT_EQ(tensor.size(), 3 * columns);
    EXPECT_EQ(tensor.end() - tensor.begin(), 3 * columns);
  }
}

TEST(Tensor, IndicesAreRowMajor) {
  Tensor<int, 3> tensor({2, 3, 4});
  int next = 0;
  for (int& value : tensor) value = next++;
  EXPECT_EQ(tensor(0, 0, 3), 3);
  EXPECT_EQ(tensor(1, 2, 3), 23);
  EXPECT_EQ(std::as_const(tensor)(1, 0, 0), 12);
  EXPECT_EQ(tensor.view()(1, 2, 0), tensor(1, 2, 0));
  Tensor<int, 1> row({3}, {4, 5, 6});
  row[1] = 7;
  EXPECT_EQ(std::as_const(row)[1], 7);
}

TEST(Tensor, FromValues) {
  const Tensor<float, 2> tensor({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(tensor(1, 0), 3);
  EXPECT_THROW((Tensor<float, 2>({2, 2}, {1, 2, 3})), ShapeError);
  EXPECT_THROW((Tensor<float, 2>({0, 2}, {1})), ShapeError);
}

TEST(Tensor, CopiesCopyAndMovesMove) {
  Tensor<float, 1> a({3}, {1, 2, 3});
  Tensor<float, 1> copy = a;
  copy[0] = 9;
  EXPECT_EQ(a[0], 1);
  const float* memory = a.data();
  Tensor<float, 1> moved = std::move(a);
  EXPECT_EQ(moved.data(), memory);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): the moved-from state is promised
  EXPECT_EQ(a.data(), nullptr);
  copy = moved;
  EXPECT_EQ(copy[0], 1);
  copy = *&copy;
  EXPECT_EQ(copy[2], 3);
  moved = std::move(copy);
  EXPECT_EQ(moved.size(), 3);
  static_assert(std::is_nothrow_move_constructible_v<Tensor<float, 4>>);
}

TEST(Tensor, EmptyAndImpossibleExtents) {
  const Index large = Index{1} << 40;
  EXPECT_EQ((Tensor<float, 3>({large, large, 0}).size()), 0);
  EXPECT_EQ((Tensor<float, 2>().size()), 0);
  EXPECT_THROW((Tensor<float, 1>({-1})), ShapeError);
  EXPECT_THROW((Tensor<float, 2>({large, large})), ShapeError);
}

std::string out_of_memory(const auto& make) {
  try {
    make();
  } catch (const std::bad_alloc& error) {
    EXPECT_NE(dynamic_cast<const OutOfMemory*>(&error), nullptr);
    return error.what();
  }
  return "";
}

TEST(Tensor, NoMemoryIsAnErrorThatSaysForWhat) {
  constexpr Index most = std::numeric_limits<Index>::max(), large = Index{1} << 15;
  EXPECT_EQ(out_of_memory([] { return Tensor<double, 1>({most}); }),
            "no memory for a tensor of (9223372036854775807): 9223372036854775808 bytes or more");
  if (test::sanitized) return;  // whose allocators end the program
  EXPECT_EQ(out_of_memory([] {
              return Tensor<float, 4>({large, large, 32 * large, 8});
            }),
            "no memory for a tensor of (32768, 32768, 1048576, 8): 36028797018963968 bytes");
}

TEST(Tensor, CopyOfAnyView) {
  for (std::uint64_t stream = 0; stream < 1000; ++stream) {
    Random random(12, stream);
    const test::RandomView<4> sample(random, true);
    const auto result = Tensor<float, 4>::copy_of(sample.view());
    ASSERT_EQ(result.extents(), sample.expected().extents());
    for (Index i = 0; i < result.size(); ++i) {
      ASSERT_EQ(result.data()[i], sample.expected().data()[i]) << "stream " << stream;
    }
  }
}

TEST(Tensor, HoldsBool) {
  Tensor<bool, 2> mask({2, 2});
  mask(0, 1) = true;
  EXPECT_TRUE(mask.data()[1]);
  EXPECT_FALSE(mask(1, 1));
}

TEST(Tensor, ReshapedKeepsValuesAndMovesTheMemory) {
  Tensor<float, 2> from({2, 3}, {1, 2, 3, 4, 5, 6});
  const float* memory = from.data();
  const Tensor<float, 3> to = std::move(from).reshaped(Extents<3>{3, 1, 2});
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(to(2, 0, 1), 6);
  EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): documented
  EXPECT_THROW((Tensor<float, 2>({2, 3}).reshaped(Extents<1>{5})), ShapeError);
}

TEST(Tensor, UninitializedHasItsExtentsAndCanBeWritten) {
  auto tensor = Tensor<float, 2>::uninitialized({2, 3});
  for (float& value : tensor) value = 4;
  EXPECT_EQ(tensor(1, 2), 4);
  EXPECT_EQ((Tensor<float, 2>::uninitialized({0, 3}).data()), nullptr);
  EXPECT_THROW((Tensor<float, 1>::uninitialized({-1})), ShapeError);
}

TEST(Tensor, ExtentsOneByOne) {
  Tensor<float, 2> matrix(5, 8);
  EXPECT_EQ(matrix.extents(), (Extents<2>{5, 8}));
  for (const float value : matrix) EXPECT_EQ(value, 0);
  const std::size_t rows = 3;
  EXPECT_EQ((Tensor<double, 3>(rows, 2, 0).extents()), (Extents<3>{3, 2, 0}));
  EXPECT_EQ((Tensor<bool, 4>(1, 2, Index{3}, 4).size()), 24);
  EXPECT_EQ((Tensor<float, 1>(7).extent(0)), 7);
  EXPECT_THROW((Tensor<float, 2>(5, -8)), ShapeError);
}

TEST(Tensor, ExtentsOneByOneLeaveListsOfValuesAlone) {
  EXPECT_EQ((Tensor<float, 2>{{1, 2}, {3, 4}}(1, 0)), 3);
  EXPECT_EQ((Tensor<float, 2>{{1, 2}}.extents()), (Extents<2>{1, 2}));
  EXPECT_EQ((Tensor<float, 1>{1, 2, 3}[2]), 3);
  EXPECT_EQ((Tensor<int, 1>{5, 8}.extent(0)), 2);
  EXPECT_EQ((Tensor<float, 1>({3}).extent(0)), 3);
  static_assert(!std::is_convertible_v<int, Tensor<float, 1>>, "a number is no tensor");
  static_assert(!std::is_constructible_v<Tensor<float, 2>, double, double>);
  static_assert(!std::is_constructible_v<Tensor<bool, 1>, bool>, "true is no extent");
}

TEST(Tensor, Fill) {
  Tensor<float, 2> matrix(2, 3);
  matrix.fill(4);
  for (const float value : matrix) EXPECT_EQ(value, 4);
  matrix.fill(0);
  EXPECT_EQ(matrix(1, 2), 0);
  Tensor<bool, 1> flags(3);
  flags.fill(true);
  EXPECT_TRUE(flags[2]);
  Tensor<double, 1>().fill(1);
  for (const Index size : {1, 63, 64, 65, 200, 4096, 4160, 9000, 20001}) {  // by ever larger copies
    Tensor<bfloat16, 1> vector(size + 2);
    vector.slice(0, 1, size + 1).fill(1.5f);
    EXPECT_EQ(vector[0], bfloat16(0.f));
    EXPECT_EQ(vector[size + 1], bfloat16(0.f));
    for (Index i = 1; i <= size; ++i) ASSERT_EQ(vector[i], bfloat16(1.5f)) << i;
    const Tensor<Index, 1> numbers({size}, Index{7});
    for (const Index number : numbers) ASSERT_EQ(number, 7);
  }
}

TEST(Tensor, RowsByIndex) {
  Tensor<int, 3> tensor(2, 3, 4);
  int next = 0;
  for (int& value : tensor) value = next++;
  static_assert(std::is_same_v<decltype(tensor[0]), TensorView<int, 2>>);
  static_assert(std::is_same_v<decltype(std::as_const(tensor)[0]), TensorView<const int, 2>>);
  EXPECT_EQ(tensor[1].extents(), (Extents<2>{3, 4}));
  EXPECT_EQ(tensor[1][2][3], 23);
  EXPECT_EQ(std::as_const(tensor)[1][0][2], 14);
  tensor[0][2][1] = -1;
  EXPECT_EQ(tensor(0, 2, 1), -1);
  tensor[1].fill(5);
  EXPECT_EQ(tensor(1, 2, 3), 5);
  EXPECT_EQ(tensor(0, 2, 3), 11);
  EXPECT_THROW(tensor[2], ShapeError);
  EXPECT_THROW(tensor[-1], ShapeError);
}

}  // namespace
}  // namespace heed
