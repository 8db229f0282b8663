// SPDX-License-Identifier: MIT
#include <heed/masks/tokens.hpp>

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <span>

#include <heed/core/bfloat16.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::masks {
namespace {

TEST(ValidKeys, PaddingWhereverItStands) {
  const std::array<int, 8> tokens = {0, 5, 0, 7,   // left and inside
                                     4, 4, 4, 0};  // right
  const auto mask = padding_of_tokens(std::span<const int>(tokens), 4, 0);
  EXPECT_FALSE(mask.allows({0, 0, 0, 0}));
  EXPECT_TRUE(mask.allows({0, 0, 0, 1}));
  EXPECT_FALSE(mask.allows({0, 0, 0, 2}));
  EXPECT_EQ(mask.before(0, 3), 1);
  EXPECT_EQ(mask.before(0, 1), 0);
  EXPECT_EQ(mask.before(1, 3), 3);
  EXPECT_EQ(mask.coverage({1, 0, 0, 9, 0, 2}), Coverage::full);
  EXPECT_EQ(mask.coverage({1, 0, 0, 9, 3, 3}), Coverage::none);
  EXPECT_NO_THROW(mask.check({2, 1, 4, 4}));
  EXPECT_THROW(mask.check({2, 1, 4, 5}), ShapeError);
  EXPECT_THROW(mask.check({1, 1, 4, 4}), ShapeError);
  EXPECT_THROW(padding_of_tokens(std::span<const int>(tokens), 3, 0), ShapeError);
}

TEST(ValidKeys, TheMatrixOfATokenizer) {
  const Tensor<Index, 2> numbers{{1, 1, 0, 0}, {0, 1, 1, 1}};
  Tensor<bool, 2> bools({2, 4});
  for (Index i = 0; i < 8; ++i) bools.data()[i] = numbers.data()[i] != 0;
  const ValidKeys mask(numbers), same(bools);
  for (Index item = 0; item < 2; ++item) {
    for (Index key = 0; key < 4; ++key) {
      EXPECT_EQ(mask.allows({item, 0, 0, key}), numbers(item, key) != 0);
      EXPECT_EQ(same.allows({item, 0, 0, key}), numbers(item, key) != 0);
    }
  }
  EXPECT_NO_THROW(mask.check({2, 1, 4, 4}));
  EXPECT_THROW(mask.check({2, 1, 4, 5}), ShapeError);
}

TEST(ValidKeys, TheListOfOneText) {
  const ValidKeys numbers(std::vector<int>{0, 1, 1}), bools(std::vector<bool>{false, true, true});
  const Tensor<Index, 2> column{{0}, {1}, {1}};
  const ValidKeys tensor(column.select(1, 0));
  for (Index key = 0; key < 4; ++key) {
    EXPECT_EQ(tensor.allows({0, 0, 0, key}), key == 1 || key == 2);
    EXPECT_EQ(numbers.allows({0, 0, 0, key}), key == 1 || key == 2);
    EXPECT_EQ(bools.allows({0, 0, 0, key}), key == 1 || key == 2);
  }
  EXPECT_NO_THROW(numbers.check({1, 1, 4, 3}));
  EXPECT_THROW(numbers.check({2, 1, 4, 3}), ShapeError);
  EXPECT_THROW(ValidKeys(std::vector<int>{0, -10000}), InvalidArgument);
}

TEST(ValidKeys, CellsOfAGrid) {
  const auto on_the_diagonal = [](Index, Index row, Index column) { return row == column; };
  const ValidKeys mask = valid_cells(1, 2, 3, on_the_diagonal);
  EXPECT_TRUE(mask.allows({0, 0, 9, 0}));
  EXPECT_TRUE(mask.allows({0, 0, 9, 4})) << "row 1, column 1";
  EXPECT_FALSE(mask.allows({0, 0, 9, 3}));
  EXPECT_EQ(mask.keys(), 6);
  EXPECT_THROW(valid_cells(1, -2, -3, on_the_diagonal), InvalidArgument);
  const Index many = Index{1} << 32;
  EXPECT_THROW(valid_cells(1, many, many, on_the_diagonal), InvalidArgument) << "2^64 cells";
}

TEST(ValidKeys, RefusesNegativeSizesAndKnowsWhereItEnds) {
  const auto all = [](Index, Index) { return true; };
  EXPECT_THROW(ValidKeys(-1, 3, all), ShapeError);
  EXPECT_THROW(ValidKeys(1, -3, all), ShapeError);
  const ValidKeys mask(1, 3, all);
  EXPECT_FALSE(mask.allows({0, 0, 0, 3}));
  EXPECT_FALSE(mask.allows({1, 0, 0, 0}));
  EXPECT_EQ(mask.coverage({0, 0, 0, 0, 2, 3}), Coverage::partial);
}

TEST(ValidKeys, OfNumbersThatAreAddedToScoresIsRefused) {
  const float hidden = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(ValidKeys(Tensor<float, 2>{{1, 0}, {0, 1}}).allows({1, 0, 0, 1}));
  EXPECT_THROW(ValidKeys(Tensor<float, 2>{{0, hidden}}), InvalidArgument);
  EXPECT_THROW(ValidKeys(Tensor<float, 2>{{0, std::numeric_limits<float>::lowest()}}),
               InvalidArgument);
  EXPECT_THROW(ValidKeys(Tensor<bfloat16, 2>({1, 1}, {bfloat16(hidden)})), InvalidArgument);
  EXPECT_THROW(ValidKeys(Tensor<int, 2>{{1, -10000}}), InvalidArgument);
  EXPECT_TRUE(ValidKeys(Tensor<bool, 2>{{false, true}}).allows({0, 0, 0, 1}));
}

TEST(ValidKeys, OfNothing) {
  const auto valid = [](auto...) { return true; };
  EXPECT_EQ(ValidKeys(2, 0, valid).keys(), 0);
  EXPECT_EQ(valid_cells(1, 0, 5, valid).keys(), 0);
  EXPECT_EQ(valid_cells(1, 5, 0, valid).keys(), 0);
}

}  // namespace
}  // namespace heed::masks
