// SPDX-License-Identifier: MIT
// Calls with Eigen's matrices as a user would guess them: each compiles as it is written, computes
// what it says, and gives a matrix back.
#include <gtest/gtest.h>

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

TEST_F(EigenCalls, HeatmapsOfMatricesAndExpressions) {
  const Heatmap heatmap = heatmap_of(q);
  EXPECT_EQ(heatmap.values(2, 5), static_cast<double>(q(2, 5)));
  EXPECT_EQ(heatmap_of(2 * q).values(2, 5), static_cast<double>(2 * q(2, 5)));
}

}  // namespace
