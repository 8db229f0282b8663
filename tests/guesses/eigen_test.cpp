// SPDX-License-Identifier: MIT
// Calls with Eigen's matrices as a user would guess them: each compiles as it is written, computes
// what it says, and gives a matrix back.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include <Eigen/Core>

#include <heed/heed.hpp>

using namespace heed;

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The same numbers by way of tensors, which the matrices are copied into.
Eigen::MatrixXf by_tensors(const Eigen::MatrixXf& q, const Eigen::MatrixXf& k,
                           const Eigen::MatrixXf& v, const Mask& mask,
                           const AttentionOptions<float>& options = {}) {
  const auto copied = [](const Eigen::MatrixXf& m) {
    return Tensor<float, 2>::copy_of(view_of(m));
  };
  const auto result = attention(copied(q), copied(k), copied(v), mask, options);
  return as_matrix(result);
}

class EigenCalls : public ::testing::Test {
 protected:
  const Index n = 9;
  const Eigen::MatrixXf q = Eigen::MatrixXf::Random(9, 8), k = Eigen::MatrixXf::Random(9, 8),
                        v = Eigen::MatrixXf::Random(12, 5);
  const masks::Causal mask{};
};

TEST_F(EigenCalls, AMatrixComesBack) {
  Eigen::MatrixXf out = attention(q, 0.5f * k, v.topRows(n), mask);
  EXPECT_EQ(out, by_tensors(q, 0.5f * k, v.topRows(n), mask));
  EXPECT_EQ(attention(q, k, v.topRows(n)), by_tensors(q, k, v.topRows(n), masks::Full{}));
  const auto scaled = attention(q + k, k, v.topRows(n), mask, {.scale = 0.25});
  EXPECT_EQ(scaled, by_tensors(q + k, k, v.topRows(n), mask, {.scale = 0.25}));
  const auto lambda =
      attention(q, k, v.topRows(n) * 2, [](Index query, Index key) { return key <= query; });
  EXPECT_EQ(lambda, by_tensors(q, k, v.topRows(n) * 2, mask));
}

TEST_F(EigenCalls, InTheOrderOfTheQueries) {
  static_assert(std::is_same_v<decltype(attention(q, k, v, mask)), Eigen::MatrixXf>);
  static_assert(std::is_same_v<decltype(attention(q.transpose(), k, v, mask)), RowMajor>);
  static_assert(std::is_same_v<decltype(attention(RowMajor(q), k, v, mask)), RowMajor>);
  static_assert(std::is_same_v<decltype(attention(Eigen::Matrix3f(), k, v)), Eigen::MatrixXf>);
  static_assert(std::is_same_v<decltype(attention(view_of(q), k, v, mask)), Tensor<float, 2>>);
  EXPECT_EQ(attention(RowMajor(q), k, v.topRows(n), mask), by_tensors(q, k, v.topRows(n), mask));
}

TEST_F(EigenCalls, MapsRefsBlocksAndProducts) {
  std::vector<float> memory(9 * 8);
  Eigen::Map<RowMajor> map(memory.data(), 9, 8);
  map = q;
  const Eigen::Ref<const Eigen::MatrixXf> ref = v.middleRows(1, 9);
  EXPECT_EQ(attention(map, k, ref, mask), by_tensors(q, k, ref, mask));
  const Eigen::MatrixXf weight = Eigen::MatrixXf::Random(8, 8);
  const Eigen::MatrixXf projected = q * weight;
  EXPECT_EQ(attention(q * weight, k, ref, mask), by_tensors(projected, k, ref, mask));
  EXPECT_EQ(attention(q.array() + 1, k, ref, mask),
            by_tensors((q.array() + 1).matrix(), k, ref, mask));
  Eigen::MatrixXf all = Eigen::MatrixXf::Zero(20, 10);
  attention(q, -k, ref, mask, all.block(3, 2, 9, 5));
  EXPECT_EQ(all.block(3, 2, 9, 5), by_tensors(q, -k, ref, mask));
  EXPECT_EQ(all.topRows(3).cwiseAbs().sum(), 0);
}

TEST_F(EigenCalls, NothingIsCopiedThatHasMemory) {
  static_assert(std::is_reference_v<decltype(detail::evaluated(v.topRows(3)))>);
  static_assert(std::is_reference_v<decltype(detail::evaluated(q.transpose()))>);
  static_assert(!std::is_reference_v<decltype(detail::evaluated(0.5f * k))>);
}

TEST_F(EigenCalls, Doubles) {
  const Eigen::MatrixXd x = Eigen::MatrixXd::Random(4, 3);
  Eigen::MatrixXd out = attention(x, x, x, mask);
  EXPECT_EQ(out.row(0), x.row(0));
  const Eigen::MatrixXd nothing = attention(x.topRows(0), x, x, mask);
  EXPECT_EQ(nothing.rows(), 0);
}

TEST_F(EigenCalls, WeightsAndSoftmaxAreMatricesToo) {
  const Eigen::MatrixXf weights = attention_weights(q, 0.5f * k, mask);
  EXPECT_NEAR((weights.rowwise().sum().array() - 1).abs().maxCoeff(), 0, 1e-6);
  EXPECT_EQ(weights(0, 1), 0);
  const Eigen::MatrixXf some = attention_weights(q, 0.5f * k, mask, WeightRows{.first = 4});
  EXPECT_EQ(some, weights.bottomRows(5));
  const Eigen::MatrixXf voted = softmax(q);
  EXPECT_NEAR(voted.row(3).sum(), 1, 1e-6);
  const RowMajor logs = log_softmax(RowMajor(q));
  EXPECT_NEAR(logs.row(3).array().exp().sum(), 1, 1e-6);
}

TEST_F(EigenCalls, AColumnVectorIsOneRow) {
  const Eigen::Vector3d x(1, 2, 3);
  const Eigen::RowVector3d flat = x.transpose();
  const Eigen::VectorXd voted = softmax(x);
  const Eigen::RowVectorXd expected = softmax(flat);
  EXPECT_NEAR(voted.sum(), 1, 1e-12);
  EXPECT_EQ(voted, expected.transpose());
  EXPECT_EQ(softmax(Eigen::MatrixXd(x.replicate(1, 2)).col(1)), expected.transpose());
  EXPECT_EQ(log_softmax(x), log_softmax(flat).transpose());
  EXPECT_EQ(log_sum_exp(x).size(), 1);
  EXPECT_EQ(log_sum_exp(x)[0], log_sum_exp(flat)[0]);
  const Eigen::Vector<bool, 3> seen(true, false, true);
  const Eigen::VectorXd some = softmax(x, {.mask = seen});
  EXPECT_EQ(some[1], 0);
  EXPECT_NEAR(some.sum(), 1, 1e-12);
  Eigen::VectorXd out(3);
  softmax(x, out);
  EXPECT_EQ(out, voted);
  const Eigen::VectorXd shares = softmax(Eigen::VectorXd(-x));
  EXPECT_GT(cross_entropy(x, shares).loss, 0);
  EXPECT_EQ(cross_entropy(x, shares).loss,
            cross_entropy_loss(flat, Eigen::RowVectorXd(shares.transpose())));
  EXPECT_THROW(softmax(x, {.temperature = 0}), InvalidArgument);
}

TEST_F(EigenCalls, ClassNumbersAreVectors) {
  const Eigen::MatrixXf logits = Eigen::MatrixXf::Random(3, 4);
  const Eigen::Vector3i column(2, 0, 3);
  const Eigen::RowVector<Index, Eigen::Dynamic> row = column.transpose().cast<Index>();
  const double expected = cross_entropy(logits, {2, 0, 3}).loss;
  EXPECT_EQ(cross_entropy(logits, column).loss, expected);
  EXPECT_EQ(cross_entropy(logits, row).loss, expected);
  EXPECT_EQ(cross_entropy_loss(logits, column), expected);
  EXPECT_EQ(cross_entropy_loss(logits, column.segment(0, 3)), expected);
  EXPECT_THROW(cross_entropy(logits, Eigen::Vector2i(2, 0)), ShapeError);
}

TEST_F(EigenCalls, ListsAreVectorsWithAnyStride) {
  Eigen::Matrix<Index, 2, 2> lengths;
  lengths << 1, 2, 5, 7;  // by columns in memory: 1 5 2 7
  Tensor<float, 4> x({2, 1, 7, 4});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 5);
  const auto same = [&](const Tensor<float, 4>& a, const Tensor<float, 4>& b) {
    return std::equal(a.begin(), a.end(), b.begin());
  };
  const auto expected = attention(x, x, x, masks::Padding({5, 7}));
  EXPECT_TRUE(same(attention(x, x, x, masks::Padding(lengths.row(1))), expected));
  const Eigen::VectorXi counts = lengths.row(1).transpose().cast<int>();
  EXPECT_TRUE(same(attention(x, x, x, {.key_counts = counts}), expected));
  Eigen::Matrix2f slopes;
  slopes << 1, 2, 3, 4;
  const auto two = x.view().permute({1, 0, 2, 3});  // two heads
  EXPECT_TRUE(same(attention(two, two, two, {.alibi_slopes = slopes.row(1)}),
                   attention(two, two, two, {.alibi_slopes = {3, 4}})));
  const Eigen::Vector3i offsets(0, 3, 7);
  const auto tokens = x.view().select(0, 1);
  EXPECT_EQ(packed_attention(tokens, tokens, tokens, offsets)(0, 6, 1),
            packed_attention(tokens, tokens, tokens, {0, 3, 7})(0, 6, 1));
}

TEST_F(EigenCalls, ATensorIsMadeOfAMatrix) {
  const Tensor<float, 2> copied(q), doubled(2 * q);
  const auto across = Tensor<double, 2>::copy_of(q.transpose());
  EXPECT_EQ(copied(2, 5), q(2, 5));
  EXPECT_EQ(doubled(2, 5), 2 * q(2, 5));
  EXPECT_EQ(across(5, 2), static_cast<double>(q(2, 5)));
}

TEST_F(EigenCalls, HeatmapsOfMatricesAndExpressions) {
  const Heatmap heatmap = heatmap_of(q);
  EXPECT_EQ(heatmap.values(2, 5), static_cast<double>(q(2, 5)));
  EXPECT_EQ(heatmap_of(2 * q).values(2, 5), static_cast<double>(2 * q(2, 5)));
}

TEST_F(EigenCalls, AVectorHoldsTheLogSumExp) {
  Eigen::VectorXf lse(9);
  Tensor<float, 1> same({9});
  const Eigen::MatrixXf out = attention(q, k, k, mask, {.log_sum_exp = lse});
  attention(q, k, k, mask, {.log_sum_exp = same});
  for (Index i = 0; i < n; ++i) EXPECT_EQ(lse(i), same(i));
  const auto [grad_q, grad_k, grad_v] = attention_backward(q, k, k, mask, out, lse, out);
  const Eigen::MatrixXf of_keys = attention_backward(q, k, k, mask, out, lse, out).keys;
  EXPECT_EQ(of_keys, grad_k);
  Eigen::MatrixXf queries(9, 8), keys(9, 8), values(9, 8);
  attention_backward(q, k, k, mask, out, lse, out, queries, keys, values);
  for (Index i = 0; i < n; ++i) {
    for (Index d = 0; d < 8; ++d) {
      EXPECT_EQ(grad_q(i, d), queries(i, d));
      EXPECT_EQ(grad_v(i, d), values(i, d));
    }
  }
}

TEST_F(EigenCalls, EigenKeepsItsOwnOperatorsOfBools) {
  const Eigen::ArrayXXf a = q.array(), b = -q.array();
  EXPECT_EQ(((a > 0.f) && (b > 0.f)).count(), 0);
  EXPECT_EQ(((a > 0.f) || (b >= 0.f)).count(), q.size());
  EXPECT_EQ((!(a > 0.f)).count(), (a <= 0.f).count());
}

TEST_F(EigenCalls, AListMasksAColumnToo) {
  const Eigen::VectorXf x{{1.f, 2.f, 3.f, 4.f}};
  const Tensor<float, 1> same({4}, {1, 2, 3, 4});
  const std::vector<bool> bits = {true, true, false, true};
  const std::array<bool, 4> array = {true, true, false, true};
  const Tensor<bool, 1> tensor({4}, array);
  const Eigen::Array<bool, Eigen::Dynamic, 1> column{{true, true, false, true}};
  const auto expected = softmax(same, {.mask = array});
  for (const Eigen::MatrixXf& y : {softmax(x, {.mask = bits}), softmax(x, {.mask = array}),
                                   softmax(x, {.mask = tensor}), softmax(x, {.mask = column})}) {
    for (Index i = 0; i < 4; ++i) EXPECT_EQ(y(i), expected[i]);
  }
  EXPECT_EQ(log_sum_exp(x, {.mask = bits})[0], log_sum_exp(same, {.mask = array})[0]);
  const std::vector<bool> three(3);
  EXPECT_THROW(softmax(x, {.mask = three}), ShapeError);
}

}  // namespace
