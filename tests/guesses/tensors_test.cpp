// SPDX-License-Identifier: MIT
// Tensors, views and matrices of masks as a user would guess them, who read the README once: each
// compiles as it is written, and does what it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <numeric>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/heed.hpp>
#include <heed/ostream.hpp>

// A program's own arithmetic, beside the library's sentences for what it has not.
heed::Tensor<float, 2>& operator*=(heed::Tensor<float, 2>& a, float factor) {
  for (float& x : a) x *= factor;
  return a;
}
heed::Tensor<float, 2> operator*(heed::Tensor<float, 2> a, float factor) { return a *= factor; }
heed::Tensor<float, 2> operator-(heed::Tensor<float, 2> a) { return a *= -1; }
heed::Tensor<float, 2> operator-(heed::Tensor<float, 2> a, const heed::Tensor<float, 2>& b) {
  for (heed::Index i = 0; i < a.size(); ++i) a.data()[i] -= b.data()[i];
  return a;
}

namespace {

TEST(Tensors, AProgramMayHaveItsOwnArithmetic) {
  const heed::Tensor<float, 2> a({1, 2}, {3, 4});
  EXPECT_EQ((a * 2)(0, 1), 8);
  EXPECT_EQ((a * 0.5)(0, 1), 2);
  EXPECT_EQ((a - a)(0, 0), 0);
  EXPECT_EQ((-a)(0, 1), -4);
}

TEST(Tensors, MadeFilledAndLookedAt) {
  heed::Tensor<float, 2> t(5, 8);
  t.fill(0);
  t[0].fill(1);
  t[1][2] = 3;
  EXPECT_EQ(t(0, 7), 1);
  EXPECT_EQ(t(1, 2), 3);
  EXPECT_EQ(t(4, 7), 0);
  heed::Tensor<float, 4> heads(2, 4, 10, 64);
  EXPECT_EQ(heads[1][3].extents(), (heed::Extents<2>{10, 64}));
  EXPECT_EQ(heads[1][3].data_handle(), &heads(1, 3, 0, 0));
}

TEST(Tensors, OtherExtentsAndOrdersAsPyTorchHasThem) {
  heed::Tensor<float, 3> x(2, 3, 4);
  x(1, 2, 3) = 5;
  EXPECT_EQ(x.permute(2, 0, 1)(3, 1, 2), 5);
  EXPECT_EQ(x.view().permute(0, 2, 1)(1, 3, 2), 5);
  const auto& same = x;
  EXPECT_EQ(same.permute(2, 0, 1).extents(), (heed::Extents<3>{4, 2, 3}));
  auto flat = x.view({6, 4});
  flat(5, 3) += 1;
  EXPECT_EQ(same.view({24})(23), 6);
  EXPECT_THROW(x.view({5, 5}), heed::ShapeError);
}

TEST(Tensors, ShapesAndValuesAsNumPyHasThem) {
  const heed::Tensor<float, 2> t{{1, 2.5f, 3}, {4, 5, 6}};
  EXPECT_EQ(t.shape()[0], 2);
  EXPECT_EQ(t.view().transpose().shape()[0], 3);
  const heed::Tensor<float, 1> mixed{1.5f, 2, 3};
  EXPECT_EQ(mixed.shape()[0], 3);
  EXPECT_EQ(mixed[0], 1.5f);
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const heed::Tensor<float, 2> from_vector({2, 3}, values);
  EXPECT_EQ(from_vector(1, 2), 6);
  EXPECT_THROW((heed::Tensor<float, 2>({2, 4}, values)), heed::ShapeError);
}

TEST(Tensors, RoundedToBfloat16AndBack) {
  const heed::Tensor<float, 1> floats{1, 2.5f, 3.14159265f};
  heed::Tensor<heed::bfloat16, 1> half(3);
  heed::copy(floats, half);
  heed::Tensor<float, 1> back(3);
  heed::copy(half, back);
  EXPECT_EQ(back[1], 2.5f);
  EXPECT_NEAR(back[2], 3.14159, 0.01);
}

TEST(Tensors, CopiedOfVectorsViewsAndOtherTypes) {
  const std::vector<float> values{1, 2.5f, 3};
  const heed::Tensor<float, 1> vector(values), copied = heed::Tensor<float, 1>::copy_of(values);
  EXPECT_EQ(vector[1], 2.5f);
  EXPECT_EQ(copied[2], 3);
  EXPECT_EQ((heed::Tensor<double, 1>(std::array<float, 2>{3, 4.5f})[1]), 4.5);
  const heed::Tensor<float, 2> t{{1, 2, 3}, {4, 5, 3.14159265f}};
  const heed::Tensor<float, 2> across(t.view().transpose());
  EXPECT_EQ(across(2, 0), 3);
  const heed::Tensor<heed::bfloat16, 2> narrow(t);
  EXPECT_NEAR(narrow(1, 2), 3.14159, 0.01);
  EXPECT_EQ((heed::Tensor<double, 2>::copy_of(narrow)(1, 1)), 5);
}

TEST(Tensors, ValuesBehindExtentsConvert) {
  const std::vector<int> ids{3, 1, 4, 1};
  const heed::Tokens tokens({2, 2}, ids);
  EXPECT_EQ(tokens(1, 0), 4);
  EXPECT_EQ(heed::Tokens({1, 2}, std::list<int>{5, 9})(0, 1), 9);
  EXPECT_TRUE((heed::Tensor<bool, 2>({1, 2}, std::vector<bool>{false, true})(0, 1)));
  EXPECT_THROW(heed::Tokens({1, 3}, ids), heed::ShapeError);
}

TEST(Tensors, ViewsAreWalkedElementByElement) {
  heed::Tensor<float, 2> t{{1, 2, 3}, {4, 5, 6}};
  std::vector<float> seen;
  for (const float x : t.view().transpose()) seen.push_back(x);
  EXPECT_EQ(seen, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  for (float& x : t[1]) x *= 2;
  EXPECT_EQ(t(1, 2), 12);
  const auto column = t.view().select(1, 2);
  EXPECT_EQ(std::accumulate(column.begin(), column.end(), 0.0f), 15);
  EXPECT_EQ(std::distance(column.begin(), std::max_element(column.begin(), column.end())), 1);
  EXPECT_EQ(std::max_element(column.begin(), column.end()) - column.begin(), 1);
  EXPECT_EQ(*std::ranges::max_element(t[0]), 3);
  const heed::Tensor<float, 2>& same = t;
  EXPECT_TRUE(std::ranges::equal(t.view().reverse(0)[1], same[0]));
  EXPECT_TRUE(std::ranges::equal(t.view().with_leading_axis(), t));
  for (const float x : t.view().slice(0, 1, 1)) EXPECT_EQ(x, 0) << "an element of none";
}

TEST(Tensors, ViewsAreSorted) {
  heed::Tensor<float, 2> t{{4, 1, 5}, {2, 6, 3}};
  const auto column = t.select(1, 0);
  std::sort(column.begin(), column.end());
  EXPECT_EQ(t, (heed::Tensor<float, 2>{{2, 1, 5}, {4, 6, 3}}));
  const auto across = t.transpose();
  std::ranges::sort(across, std::greater<>());
  EXPECT_EQ(t, (heed::Tensor<float, 2>{{6, 4, 2}, {5, 3, 1}}));
  auto at = across.begin() + 5;
  static_assert(std::random_access_iterator<decltype(at)>);
  EXPECT_EQ(*at--, 1);
  EXPECT_EQ(at[-2], 4);
  EXPECT_EQ(*++at, 1);
  EXPECT_EQ(++at, across.end());
  EXPECT_EQ(*(at - 6), 6);
  const auto none = t.slice(1, 0, 0);
  std::sort(none.begin(), none.end());
  EXPECT_EQ(none.begin() + 0, none.end());
}

TEST(Tensors, AreComparedAndAdded) {
  const heed::Tensor<float, 2> a{{1, 2}, {3, 4}}, b = a, flat{{1, 2, 3, 4}};
  EXPECT_EQ(a, b);
  EXPECT_NE(a, flat);
  EXPECT_EQ(a + b, (heed::Tensor<float, 2>{{2, 4}, {6, 8}}));
  EXPECT_THROW(a + flat, heed::ShapeError);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const heed::Tensor<float, 1> unknown{nan, 1};
  EXPECT_FALSE(unknown == unknown);
  EXPECT_EQ(a[0], b[0]);
  EXPECT_NE(a[0], a[1]);
  EXPECT_EQ(a, b.view());
  EXPECT_EQ(a.transpose(), (heed::Tensor<float, 2>{{1, 3}, {2, 4}}));
}

TEST(Tensors, OfBfloat16AreFilledWithNumbers) {
  heed::Tensor<heed::bfloat16, 2> t(2, 2);
  t.fill(2);
  t[1].fill(0.5f);
  EXPECT_EQ(t(0, 1), 2);
  EXPECT_EQ(t(1, 0), 0.5f);
}

TEST(Tensors, OfBfloat16AreListed) {
  const heed::Tensor<heed::bfloat16, 1> vector{1, 2.5, 3.f};
  EXPECT_EQ(vector.extents(), heed::Extents<1>{3});
  EXPECT_EQ(static_cast<float>(vector(1)), 2.5f);
  const heed::Tensor<heed::bfloat16, 2> matrix{{1, 2}, {3.5, heed::bfloat16(4.f)}};
  EXPECT_EQ(matrix, (heed::Tensor<heed::bfloat16, 2>({2, 2}, {1, 2, 3.5f, 4})));
  const double between = 1 + 0x1p-8 + 0x1p-40;  // a float of it would be rounded down
  EXPECT_EQ(static_cast<float>(heed::Tensor<heed::bfloat16, 2>{{between}}(0, 0)), 1 + 0x1p-7f);
  EXPECT_THROW((heed::Tensor<heed::bfloat16, 2>{{1, 2}, {3}}), heed::ShapeError);
  EXPECT_EQ((heed::Tensor<heed::bfloat16, 1>({3}, 1.5f)),
            (heed::Tensor<heed::bfloat16, 1>{1.5, 1.5, 1.5}));
}

TEST(Tensors, OfBfloat16AreAssignedNumbers) {
  heed::Random random(1), other(1);
  heed::Tensor<heed::bfloat16, 2> t(2, 3);
  for (heed::bfloat16& v : t) v = random.normal<float>();
  EXPECT_EQ(t(0, 0), heed::bfloat16(other.normal<float>()));
  t(1, 2) = 2.5;
  t[0][1] = 3;
  for (heed::bfloat16& v : t[1]) v = v * 2;
  EXPECT_EQ(t(1, 2), 5);
  EXPECT_EQ(t(0, 1), 3);
  heed::float16 half;
  half = 0.1;
  EXPECT_NEAR(half, 0.1, 1e-4);
}

TEST(Tensors, TransposeWithoutACopy) {
  heed::Tensor<float, 2> weight{{1, 2, 3}, {4, 5, 6}};
  const auto across = weight.view().transpose();
  EXPECT_EQ(across.extents(), (heed::Extents<2>{3, 2}));
  EXPECT_EQ(across(2, 1), 6);
  const heed::Tensor<float, 2> x{{1, 1, 1}};
  const auto y = heed::matrix_product(x, weight.view().transpose());
  EXPECT_EQ(y(0, 1), 15);
  heed::Tensor<float, 4> q(1, 10, 8, 64);  // tokens before heads
  EXPECT_EQ(q.view().transpose(1, 2).extents(), (heed::Extents<4>{1, 8, 10, 64}));
  EXPECT_EQ(&q.view().transpose(1, 2)(0, 7, 9, 1), &q(0, 9, 7, 1));
}

TEST(Tensors, AttentionOnVectors) {
  const long batch = 1, heads = 2, length = 6, dim = 4;
  std::vector<float> q(48, 0.5f), k(48, 0.25f), v(48, 2), out(48);
  const heed::TensorView queries(q.data(), {batch, heads, length, dim}, {48, 4, 8, 1});
  const heed::TensorView keys(k, {batch, heads, length, dim});
  const heed::TensorView values(v, {batch, heads, length, dim});
  heed::attention(queries, keys, values, heed::masks::Causal{},
                  heed::TensorView(out, {batch, heads, length, dim}));
  for (const float x : out) EXPECT_NEAR(x, 2, 1e-6);
  EXPECT_THROW(heed::TensorView(q, {batch, heads, length, dim + 1}), heed::ShapeError);
}

TEST(Tensors, ViewsOfListsUnderExtents) {
  std::vector<float> values(48);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto heads = heed::view_of(values, {2, 6, 4});
  EXPECT_EQ(heads.extents(), (heed::Extents<3>{2, 6, 4}));
  EXPECT_EQ(&heads(1, 2, 3), &values[35]);
  heads(0, 0, 1) = 7;
  EXPECT_EQ(values[1], 7);
  const std::array<double, 6> fixed = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(heed::view_of(fixed, {2, 3})(1, 0), 4);
  const heed::Extents<2> extents{3, 2};
  EXPECT_EQ(heed::view_of(std::span(fixed), extents)(1, 0), 3);
  EXPECT_THROW(heed::view_of(values, {2, 6, 5}), heed::ShapeError);
  EXPECT_EQ(heed::attention(heads, heads, heads).extents(), heads.extents());
}

TEST(Tensors, HaveThePartsOfTheirViews) {
  heed::Tensor<float, 3> t({2, 3, 4});
  std::iota(t.begin(), t.end(), 0.f);
  const auto& same = t;
  t.slice(2, 1, 4, 2).fill(-1);
  EXPECT_EQ(t(1, 2, 3), -1);
  t.select(0, 1).fill(5);
  EXPECT_EQ(t(1, 0, 0), 5);
  EXPECT_EQ(same.transpose()(1, 2, 0), 5);
  EXPECT_EQ(same.transpose(0, 1).extents(), (heed::Extents<3>{3, 2, 4}));
  EXPECT_EQ(same.permute({2, 0, 1}).extents(), (heed::Extents<3>{4, 2, 3}));
  EXPECT_EQ(same.reverse(0)(0, 2, 0), 5);
  EXPECT_EQ(same.split(2, 2).with_leading_axis().extents(), (heed::Extents<5>{1, 2, 3, 2, 2}));
  EXPECT_EQ(same.slice(0, 1, 2).broadcast(0, 9)(8, 0, 0), 5);
  EXPECT_THROW(t.broadcast(0, 9), heed::ShapeError);
  static_assert(std::is_same_v<decltype(same.slice(0, 0, 1)), heed::TensorView<const float, 3>>);
}

TEST(Tensors, ArePrinted) {
  heed::Tensor<float, 2> t{{1, 2}, {3, 4}};
  std::ostringstream out;
  out << t << t.view()[0] << t.extents() << heed::masks::Causal{};
  EXPECT_EQ(out.str().rfind("[[1, 2],\n [3, 4]][1, 2](2, 2)██", 0), 0u) << out.str();
}

TEST(Tensors, APlanOfACallWithThemIsPrinted) {
  const heed::Tensor<float, 2> x(100, 8);
  auto plan = heed::plan(x, x, heed::masks::Causal{});
  plan.isa = heed::simd::Isa::avx2;
  plan.last_queries = 4;
  plan.tasks = 4;
  plan.threads = 1;
  std::ostringstream out;
  out << plan;
  EXPECT_EQ(out.str(),
            "avx2, blocks of queries meet blocks of keys, the last 4 have keys in their lanes; all "
            "tensors are stored in the scalar type; 4 tasks by 1 threads; tiles: 1 skipped, 3 "
            "partial, 0 full");
}

TEST(Tensors, MatricesAreMasks) {
  const heed::Tensor<float, 2> x{{1, 0}, {0, 1}, {1, 1}};
  heed::Tensor<bool, 2> seen(3, 3);
  for (heed::Index i = 0; i < 3; ++i) seen[i].slice(0, 0, i + 1).fill(true);
  const auto expected = heed::attention(x, x, x, heed::masks::Causal{});
  const auto from_bool = heed::attention(x, x, x, heed::masks::Dense(seen));
  const auto from_view = heed::attention(x, x, x, heed::masks::Dense(seen.view()));
  const heed::Tensor<float, 2> bias = heed::additive<float>(heed::masks::Causal{}, 3, 3);
  const auto from_additive = heed::attention(x, x, x, heed::masks::Dense(bias));
  EXPECT_EQ(bias(0, 1), -std::numeric_limits<float>::infinity());
  for (heed::Index i = 0; i < 6; ++i) {
    EXPECT_EQ(from_bool.data()[i], expected.data()[i]);
    EXPECT_EQ(from_view.data()[i], expected.data()[i]);
    EXPECT_EQ(from_additive.data()[i], expected.data()[i]);
  }
}

TEST(Tensors, AnArrayOfExtents) {
  const std::array<heed::Index, 3> shape{2, 3, 4};
  const std::array<std::size_t, 3> sizes{2, 3, 4};
  const heed::Tensor<float, 3> zeros(2, 3, 4);
  EXPECT_EQ((heed::Tensor<float, 3>(shape)), zeros);
  EXPECT_EQ((heed::Tensor<float, 3>(sizes)), zeros);
  EXPECT_EQ((heed::Tensor<float, 3>(std::array<int, 3>{2, 3, 4})), zeros);
  EXPECT_EQ((heed::Tensor<float, 1>(std::array<int, 2>{2, 3})), (heed::Tensor<float, 1>{2, 3}));
  EXPECT_THROW((heed::Tensor<float, 2>(std::array<int, 2>{2, -3})), heed::ShapeError);
}

TEST(Tensors, ExtentsOfAnyIntegersInBraces) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.f);
  const std::size_t rows = 3, columns = 4;
  const int two = 2;
  EXPECT_EQ((heed::Tensor<float, 2>({rows, columns})), (heed::Tensor<float, 2>(3, 4)));
  EXPECT_EQ((heed::Tensor<float, 3>({1, rows, two})), (heed::Tensor<float, 3>(1, 3, 2)));
  EXPECT_EQ((heed::Tensor<float, 1>({rows})), (heed::Tensor<float, 1>(3)));
  EXPECT_EQ((heed::Tensor<float, 2>{two, rows}), (heed::Tensor<float, 2>(2, 3)));
  EXPECT_EQ((heed::Tokens({1, values.size()}, values)(0, 11)), 11);
  EXPECT_EQ((heed::Extents<2>{rows, 4}), (heed::Extents<2>{3, columns}));
  const heed::Tensor deduced({two, values.size() / 2}, values);
  EXPECT_EQ(deduced(1, 0), 6);
  EXPECT_EQ(heed::TensorView(values, {3, values.size() / 3})(1, 0), 4);
  EXPECT_EQ(heed::TensorView(values.data(), {columns, rows}, {1, columns})(1, 2), 9);
  EXPECT_EQ((heed::TensorView<float, 2>(values.data(), {rows, columns})(2, 3)), 11);
  EXPECT_EQ(heed::view_of(values, {rows, two + 2})(2, 0), 8);
  EXPECT_THROW((heed::Tensor<float, 2>({rows, -two})), heed::ShapeError);
}

TEST(Tensors, ViewsUnderAnArrayOfExtents) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.f);
  const std::array<int, 2> shape{3, 4};
  const std::array<std::size_t, 3> sizes{2, 3, 2};
  EXPECT_EQ((heed::TensorView<float, 2>(values.data(), shape)(1, 0)), 4);
  EXPECT_EQ((heed::TensorView<float, 3>(values, sizes)(1, 0, 0)), 6);
  EXPECT_EQ(heed::TensorView(values, sizes)(0, 1, 1), 3);
  EXPECT_EQ(heed::TensorView(values.data(), shape)(2, 3), 11);
  EXPECT_EQ(heed::view_of(values, shape)(2, 0), 8);
  EXPECT_EQ(heed::Tensor(shape, values)(2, 1), 9);
}

TEST(Tensors, ReshapedToExtentsInBraces) {
  heed::Tensor<float, 2> t({4, 6}, 0);
  std::iota(t.begin(), t.end(), 0.f);
  const std::size_t half = 12;
  EXPECT_EQ(heed::Tensor(t).reshaped({2, half})(1, 0), 12);
  EXPECT_EQ(heed::Tensor(t).reshaped({24})(23), 23);
  EXPECT_EQ(std::move(t).reshaped({2, 3, 4})(1, 2, 3), 23);
  EXPECT_THROW((heed::Tensor<float, 2>(2, 3).reshaped({5})), heed::ShapeError);
}

TEST(Tensors, FilledWithOneValue) {
  const heed::Tensor<float, 2> t({2, 3}, 1.5f);
  for (const float value : t) EXPECT_EQ(value, 1.5f);
  EXPECT_EQ((heed::Tensor<float, 2>({1, 1}, {7}))(0, 0), 7);
  EXPECT_EQ((heed::Tensor<heed::Index, 2>({2, 3}, 4))(1, 2), 4);
  EXPECT_EQ((heed::Tensor<double, 1>({3}, 1)), (heed::Tensor<double, 1>{1, 1, 1}));
  for (const auto& rounded :
       {heed::Tensor<heed::bfloat16, 2>({2, 3}, 1.5f), heed::Tensor<heed::bfloat16, 2>({2, 3}, 1.5),
        heed::Tensor<heed::bfloat16, 2>({2, 3}, heed::bfloat16(1.5f))}) {
    EXPECT_EQ(rounded(1, 2), heed::bfloat16(1.5f));
  }
  const bool seen[] = {true, false, true, true};
  EXPECT_FALSE((heed::Tensor<bool, 2>({2, 2}, seen)(0, 1)));
  EXPECT_TRUE((heed::Tensor<bool, 2>({2, 2}, true)(0, 1)));
}

TEST(Tensors, RowsUnderAVectorOfBools) {
  const std::vector<float> scores{3, 1, 2};
  const std::vector<bool> visible{true, true, false};
  const std::array<bool, 3> bools{true, true, false};
  EXPECT_EQ(heed::softmax(scores, {.mask = visible}), heed::softmax(scores, {.mask = bools}));
}

TEST(Tensors, AViewDeducesWhatItShows) {
  heed::Tensor<float, 2> tensor(2, 3);
  const heed::Tensor<double, 1> fixed = {1, 2};
  heed::TensorView view(tensor);
  view(1, 2) = 5;
  EXPECT_EQ(tensor(1, 2), 5);
  EXPECT_EQ(heed::TensorView(fixed)(1), 2);
}

TEST(Tensors, ATensorDeducesWhatItIsGiven) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const heed::Tensor t({2, 3}, values);
  static_assert(std::is_same_v<decltype(t), const heed::Tensor<float, 2>>);
  EXPECT_EQ(t(1, 0), 4);
  const heed::Tensor turned(t.view().transpose());
  static_assert(std::is_same_v<decltype(turned), const heed::Tensor<float, 2>>);
  EXPECT_EQ(turned(0, 1), 4);
  const heed::Tensor copied(t);
  EXPECT_EQ(copied, t);
  EXPECT_EQ(heed::zeros_like(t), (heed::Tensor<float, 2>(2, 3)));
}

}  // namespace
