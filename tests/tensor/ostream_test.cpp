// SPDX-License-Identifier: MIT
#include <heed/ostream.hpp>

#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>

#include <heed/core/bfloat16.hpp>
#include <heed/masks.hpp>
#include <heed/tensor/tensor.hpp>

// As a program of one's own writes it, outside of namespace heed.
namespace {

template <class X>
std::string shown(const X& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

template <class T, std::size_t Rank>
heed::Tensor<T, Rank> counting(const heed::Extents<Rank>& extents) {
  heed::Tensor<T, Rank> tensor(extents);
  std::iota(tensor.begin(), tensor.end(), T{});
  return tensor;
}

TEST(Ostream, AMatrix) {
  const heed::Tensor<float, 2> matrix{{1, -0.5f}, {100, 3}};
  EXPECT_EQ(shown(matrix), "[[   1, -0.5],\n [ 100,    3]]");
  EXPECT_EQ(shown(matrix.view().permute({1, 0})), "[[   1,  100],\n [-0.5,    3]]");
  EXPECT_EQ(shown(matrix[0]), "[   1, -0.5]");
}

TEST(Ostream, AVectorAndExtents) {
  EXPECT_EQ(shown(heed::Tensor<int, 1>{7, 8, -9}), "[ 7,  8, -9]");
  EXPECT_EQ(shown(heed::Tensor<float, 4>(1, 2, 3, 4).extents()), "(1, 2, 3, 4)");
  EXPECT_EQ(shown(heed::Extents<1>{5}), "(5)");
  EXPECT_EQ(shown(heed::MaskShape{1, 2, 3, 4}), "(batch, heads, queries, keys) (1, 2, 3, 4)");
}

TEST(Ostream, HigherRanksHaveBlankLinesBetween) {
  EXPECT_EQ(shown(counting<int>(heed::Extents<3>{2, 2, 2})),
            "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
  EXPECT_EQ(shown(counting<int>(heed::Extents<4>{2, 1, 1, 1})), "[[[[0]]],\n\n\n [[[1]]]]");
}

TEST(Ostream, EveryKindOfNumber) {
  heed::Tensor<bool, 1> flags(2);
  flags[1] = true;
  EXPECT_EQ(shown(flags), "[0, 1]");
  EXPECT_EQ(shown(heed::Tensor<unsigned char, 1>({2}, {65, 200})), "[ 65, 200]");
  heed::Tensor<heed::bfloat16, 1> halves(2);
  halves[0] = heed::bfloat16(1.5f);
  EXPECT_EQ(shown(halves), "[1.5,   0]");
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(shown(heed::Tensor<float, 1>({3}, {-inf, 0, inf})), "[-inf,    0,  inf]");
}

TEST(Ostream, TheStreamSaysHowNumbersLook) {
  const heed::Tensor<double, 1> values({2}, {1.0 / 3, 2});
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << std::setw(30) << values << 0.5;
  EXPECT_EQ(out.str(), "[0.33, 2.00]0.50");
  heed::Tensor<bool, 1> flags(1);
  out.str({});
  out << std::boolalpha << flags;
  EXPECT_EQ(out.str(), "[false]");
}

TEST(Ostream, NothingShowsItsExtents) {
  EXPECT_EQ(shown(heed::Tensor<float, 2>(0, 3)), "[] (0, 3)");
  EXPECT_EQ(shown(heed::TensorView<const float, 1>()), "[] (0)");
}

TEST(Ostream, LongRowsBreak) {
  EXPECT_EQ(shown(counting<int>(heed::Extents<1>{40})),
            "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,\n"
            " 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]");
  std::istringstream lines(shown(counting<double>(heed::Extents<3>{2, 3, 150})));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u);
}

TEST(Ostream, LongTensorsShowTheirEnds) {
  EXPECT_EQ(shown(counting<int>(heed::Extents<1>{1001})),
            "[   0,    1,    2, …,  998,  999, 1000] (1001)");
  EXPECT_EQ(shown(counting<int>(heed::Extents<2>{500, 7})),
            "[[   0,    1,    2, …,    4,    5,    6],\n"
            " [   7,    8,    9, …,   11,   12,   13],\n"
            " [  14,   15,   16, …,   18,   19,   20],\n"
            " …,\n"
            " [3479, 3480, 3481, …, 3483, 3484, 3485],\n"
            " [3486, 3487, 3488, …, 3490, 3491, 3492],\n"
            " [3493, 3494, 3495, …, 3497, 3498, 3499]] (500, 7)");
  const heed::Tensor<int, 1> full = counting<int>(heed::Extents<1>{1000});
  EXPECT_EQ(shown(full).find("…"), std::string::npos) << "1000 are shown";
  const heed::TensorView repeated(full.data(), {1 << 20, 1 << 20}, {0, 0});
  EXPECT_LT(shown(repeated).size(), 300u) << "what is not shown is not looked at";
}

TEST(Ostream, MasksAreDrawn) {
  const std::string causal = heed::describe(heed::masks::Causal{}, 16, 16);
  EXPECT_EQ(shown(heed::masks::Causal{}), causal);
  EXPECT_EQ(shown(heed::Mask(heed::masks::Causal{})), causal);
  EXPECT_EQ(shown(heed::masks::Causal{} & heed::masks::Full{}).substr(0, 40), causal.substr(0, 40));
  const std::string small =
      shown(heed::masks::Dense(heed::Tensor<bool, 2>(2, 2)) | heed::masks::consecutive_groups({2}));
  EXPECT_EQ(small.rfind("████· ", 0), 0u) << "a mask that knows two tokens is no error";
}

TEST(Ostream, GoogleTestPrintsTensors) {
  EXPECT_EQ(testing::PrintToString(heed::Tensor<int, 2>{{1, 2}, {3, 4}}), "[[1, 2],\n [3, 4]]");
  EXPECT_EQ(testing::PrintToString(heed::masks::Causal{}), shown(heed::masks::Causal{}));
}

}  // namespace
