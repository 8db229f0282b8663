// SPDX-License-Identifier: MIT
#include <heed/layers/positions.hpp>

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace heed::test {
namespace {

std::vector<Index> row_of(const Positions& positions, Index row, Index columns) {
  std::vector<Index> ids;
  for (Index column = 0; column < columns; ++column) ids.push_back(positions.at(row, column));
  return ids;
}
using Ids = std::vector<Index>;

TEST(Positions, AreColumnsByDefault) {
  EXPECT_EQ(row_of({}, 3, 3), (Ids{0, 1, 2}));
  EXPECT_EQ(row_of(7, 3, 3), (Ids{7, 8, 9}));
  EXPECT_EQ(row_of(Positions(7).row(1).columns(2, 1), 0, 2), (Ids{9, 10}));
  EXPECT_TRUE(Positions(7).are_columns());
  EXPECT_EQ(Positions(7).first(), 7);
  Positions(7).check("test", {3, 100});
}

TEST(Positions, AreGivenForEveryTokenOrOneRowForAll) {
  const Positions own(Tensor<Index, 2>({2, 3}, {5, 0, 1, 2, 2, 9}));
  EXPECT_FALSE(own.are_columns());
  EXPECT_EQ(row_of(own, 1, 3), (Ids{2, 2, 9}));
  EXPECT_EQ(row_of(own.row(1).columns(1, 2), 0, 2), (Ids{2, 9}));
  own.check("test", {2, 3});
  const Positions all(Tensor<Index, 2>({1, 3}, {5, 0, 1}));
  EXPECT_EQ(row_of(all, 8, 3), (Ids{5, 0, 1}));
  EXPECT_EQ(row_of(all.row(8).columns(2, 1), 0, 1), Ids{1});
  all.check("test", {9, 3});
}

TEST(Positions, RefuseWhatDoesNotFit) {
  EXPECT_THROW(Positions(Tensor<Index, 2>({1, 2}, {0, -1})), InvalidArgument);
  const Positions own(Tensor<Index, 2>({2, 3}));
  EXPECT_THROW(own.check("test", {2, 2}), ShapeError);
  EXPECT_THROW(own.check("test", {2, 4}), ShapeError);
  EXPECT_THROW(own.check("test", {1, 3}), ShapeError);
  EXPECT_THROW(own.check("test", {3, 3}), ShapeError);
  EXPECT_THROW(own.row(2), ShapeError);
  EXPECT_THROW(own.row(-1), ShapeError);
  EXPECT_THROW(own.columns(2, 2), ShapeError);
  EXPECT_THROW(own.columns(-1, 2), ShapeError);
  EXPECT_THROW(own.columns(1, -1), ShapeError);
  EXPECT_EQ(row_of(own.columns(3, 0), 0, 0), Ids{});
}

TEST(Positions, RefuseNumbersThatOverflow) {
  constexpr Index most = std::numeric_limits<Index>::max(), far = Index{1} << 62;
  for (const Index first : {most, -most - 1, far + 1, -far - 1}) {
    EXPECT_THROW(Positions{first}, InvalidArgument) << first;
  }
  EXPECT_THROW(Positions(far).columns(most, 1), InvalidArgument);
  EXPECT_THROW(Positions(5).columns(most, 1), InvalidArgument);
  EXPECT_THROW(Positions(Tensor<Index, 2>({2, 3})).columns(1, most), ShapeError);
  EXPECT_EQ(Positions(far).columns(-5, 1).at(0, 3), far - 2);
}

TEST(Positions, OfPaddedTexts) {
  const auto right = positions_of(masks::Padding({2, 0, 4}), {3, 4});
  EXPECT_EQ(row_of(right, 0, 4), (Ids{0, 1, 0, 0}));
  EXPECT_EQ(row_of(right, 1, 4), (Ids{0, 0, 0, 0}));
  EXPECT_EQ(row_of(right, 2, 4), (Ids{0, 1, 2, 3}));
  const auto both = positions_of(masks::Padding({2, 0}, {4, 3}), {2, 5});
  EXPECT_EQ(row_of(both, 0, 5), (Ids{0, 0, 0, 1, 0}));
  EXPECT_EQ(row_of(both, 1, 5), (Ids{0, 1, 2, 0, 0}));
  const Ids tokens = {0, 0, 3, 4, 0, 5, 6, 0};
  const auto found = positions_of(masks::padding_of_tokens(tokens, 4, Index{0}), {2, 4});
  EXPECT_EQ(row_of(found, 0, 4), (Ids{0, 0, 0, 1}));
  EXPECT_EQ(row_of(found, 1, 4), (Ids{0, 0, 1, 0}));
  const auto inside = positions_of(masks::padding_of_tokens(Ids{3, 0, 4, 5}, 4, Index{0}), {1, 4});
  EXPECT_EQ(row_of(inside, 0, 4), (Ids{0, 0, 1, 2})) << "counts real tokens";
  EXPECT_THROW(positions_of(masks::Padding({2}), {2, 4}), ShapeError);
  EXPECT_THROW(positions_of(masks::Padding({5, 4}), {2, 4}), ShapeError);
  EXPECT_THROW(positions_of(masks::padding_of_tokens(tokens, 4, Index{0}), {2, 5}), ShapeError);
}

TEST(Positions, OfPackedDocuments) {
  const auto packed = positions_of(masks::Segments({0, 2, 2, 5, 6}), {2, 6});
  EXPECT_EQ(row_of(packed, 0, 6), (Ids{0, 1, 0, 1, 2, 0}));
  EXPECT_EQ(row_of(packed, 1, 6), (Ids{0, 1, 0, 1, 2, 0}));
}

TEST(Positions, OfATreeOfDrafts) {
  const masks::Tree tree(2, {-1, 0, 0, 1, -1});
  const auto found = positions_of(tree, {1, 7});
  EXPECT_EQ(row_of(found, 0, 7), (Ids{0, 1, 2, 3, 3, 4, 2}));
  EXPECT_EQ(row_of(positions_of(tree, {1, 4}), 0, 4), (Ids{0, 1, 2, 3}));
  EXPECT_THROW(positions_of(tree, {1, 8}), ShapeError);
}

}  // namespace
}  // namespace heed::test
