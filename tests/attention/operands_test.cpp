// SPDX-License-Identifier: MIT
#include <heed/attention/detail/operands.hpp>

#include <gtest/gtest.h>

#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::detail {
namespace {

template <class X>
Tensor<X, 4> counted(const Extents<4>& extents) {
  Tensor<X, 4> tensor(extents);
  for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = X(static_cast<float>(i));
  return tensor;
}

/// Expects rows [first, first + count) of a head to hold what `number(token, column)` says.
template <class T, class Number>
void expect_rows(const Operand<T>& operand, Index item, Index head, Index first, Index count,
                 const Number& number) {
  std::vector<T> scratch(static_cast<std::size_t>(count * operand.extent(3)));
  const auto rows = operand.rows(item, head, first, count, scratch.data());
  for (Index i = 0; i < count; ++i) {
    for (Index d = 0; d < operand.extent(3); ++d) {
      EXPECT_EQ(rows.data[i * rows.row_stride + d * rows.column_stride],
                static_cast<T>(number(first + i, d)))
          << first + i << ", " << d;
    }
  }
}

TEST(Operand, RowsOfAViewAreReadWhereTheyLie) {
  const auto tensor = counted<float>({2, 2, 5, 3});
  const Operand<float> operand(tensor.view());
  EXPECT_TRUE(operand.is_view());
  const auto rows = operand.rows(1, 1, 2, 3, nullptr);
  EXPECT_EQ(rows.data, &tensor(1, 1, 2, 0));
  EXPECT_EQ(operand(1, 0, 4, 2), tensor(1, 0, 4, 2));
  EXPECT_EQ(operand.slice(2, 4)(0, 1, 0, 1), tensor(0, 1, 2, 1));
  EXPECT_EQ(operand.slice(2, 4).extent(2), 2);
  EXPECT_EQ(operand.view().data_handle(), tensor.data());
  const Operand<float> turned(tensor.view().permute({0, 1, 3, 2}));
  EXPECT_EQ(turned.rows(0, 1, 2).data, &tensor(0, 1, 0, 2));
  EXPECT_EQ(turned.rows(0, 1, 2).column_stride, 3);
}

TEST(Operand, Bfloat16ComesAsWhatIsComputedIn) {
  const auto tensor = counted<bfloat16>({1, 2, 5, 3});
  const Operand<float> of_float(tensor.view());
  EXPECT_FALSE(of_float.is_view());
  expect_rows(of_float, 0, 1, 2, 3, [](Index token, Index d) { return 15 + 3 * token + d; });
  const auto turned = tensor.view().permute({0, 1, 3, 2});
  expect_rows(Operand<double>(turned), 0, 1, 1, 2,
              [](Index token, Index d) { return 15 + token + 3 * d; });
  const Operand<float> later = of_float.slice(1, 5);
  expect_rows(later, 0, 0, 1, 2, [](Index token, Index d) { return 3 * (token + 1) + d; });
  EXPECT_EQ(*later.bits(0, 1, 0), tensor(0, 1, 1, 0).bits);
}

/// Two sequences of pages of 16 tokens of 3 numbers, the later one first in memory.
template <class X>
class Pages {
 public:
  template <class T>
  Operand<T> operand(Index heads) const {
    return {memory_.data(), 16, tables_, {1, heads, 32, 3}};
  }
  /// What stands at a token of a head.
  static auto number(Index heads, Index head) {
    return [=](Index token, Index d) {
      const Index page = token < 16 ? 1 : 0;
      return page * heads * 48 + head * 48 + token % 16 * 3 + d;
    };
  }

 private:
  Tensor<X, 4> memory_ = counted<X>({2, 2, 16, 3});
  Index table_[2] = {1, 0};
  const Index* tables_[1] = {table_};
};

TEST(Operand, RowsWithinAPageAreReadWhereTheyLieAndOthersCopied) {
  const Pages<float> pages;
  const auto operand = pages.operand<float>(2);
  EXPECT_FALSE(operand.is_view());
  EXPECT_TRUE(operand.is_contiguous(4, 12));
  EXPECT_FALSE(operand.is_contiguous(4, 13));
  EXPECT_EQ(*operand.rows(0, 1, 4, 12, nullptr).data, 96 + 48 + 12);
  expect_rows(operand, 0, 1, 14, 4, pages.number(2, 1));
  EXPECT_EQ(operand.bytes().begin, operand.bytes().end) << "nobody else reaches pages";
}

TEST(Operand, PagesOfBfloat16ComeAsWhatIsComputedIn) {
  const Pages<bfloat16> pages;
  expect_rows(pages.operand<float>(1), 0, 0, 14, 4, pages.number(1, 0));
  expect_rows(pages.operand<double>(1), 0, 0, 3, 9, pages.number(1, 0));
  EXPECT_EQ(*pages.operand<float>(1).bits(0, 0, 17), bfloat16(3).bits);
}

TEST(Operand, KnowsItsAddresses) {
  const auto tensor = counted<bfloat16>({1, 1, 4, 3});
  const auto bytes = Operand<float>(tensor.view().slice(2, 1, 3)).bytes();
  EXPECT_EQ(bytes.begin, reinterpret_cast<std::uintptr_t>(&tensor(0, 0, 1, 0)));
  EXPECT_EQ(bytes.end - bytes.begin, 12u);
}

TEST(Result, RoundsOnceToBfloat16OfAnyStrides) {
  Tensor<bfloat16, 4> tensor({1, 2, 5, 4});
  const Result<float> out(tensor.view());
  float rows[8];
  for (int i = 0; i < 8; ++i) rows[i] = 1 + static_cast<float>(i) * 0x1p-9f;
  out.round(rows, 2, 0, 1, 3);
  EXPECT_EQ(float{tensor(0, 1, 3, 0)}, 1.f);
  EXPECT_EQ(float{tensor(0, 1, 4, 3)}, 1 + 0x1p-6f);  // 7 · 2⁻⁹, to the nearest 2⁻⁷
  const Result<float> turned(tensor.view().permute({0, 1, 3, 2}));
  turned.slice(1, 3).round(rows, 1, 0, 0, 0);
  EXPECT_EQ(float{tensor(0, 0, 4, 1)}, 1 + 0x1p-7f);  // 4 · 2⁻⁹
}

}  // namespace
}  // namespace heed::detail
