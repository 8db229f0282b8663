// SPDX-License-Identifier: MIT
// Who implements the interface is tested where it is: bfloat16_products_test.
#include <heed/attention/detail/narrow_products.hpp>

#include <gtest/gtest.h>

#include <heed/attention/detail/narrow_tensors.hpp>
#include <heed/attention/forward.hpp>
#include <heed/masks/full.hpp>

namespace heed::detail {
namespace {

/// Knows nothing but its name: every query comes to the same result.
class Fixed final : public NarrowTensors<float>, public NarrowProducts<float> {
 public:
  const NarrowProducts<float>* products() const override { return this; }
  simd::MatrixRef<float> query_rows(Index, Index, Index, Index) const override { return {}; }
  simd::MatrixRef<float> key_rows(Index, Index, Index, Index, float*) const override { return {}; }
  simd::MatrixRef<float> value_rows(Index, Index, Index, Index, float*) const override {
    return {};
  }
  float* out_rows(Index) const override { return out_; }
  void put_out(Index, Index, Index first, Index count) const override {
    for (Index i = 0; i < count; ++i) results[first + i] = out_[i];
  }
  void pack(Index, Index, Index, Index, float*) const override {}
  void copy_query(Index, Index, Index, Index, float*) const override {}
  simd::PairKeys bring(Index, Index, const VisibleKeys& seen) const override {
    simd::PairKeys keys;
    keys.count = seen.count;
    return keys;
  }
  void attend(const simd::PairKeys& keys, const simd::QueryBlock<float>& queries,
              const simd::SoftmaxState<float>& state, bool first) const override {
    for (Index lane = 0; lane < simd::query_block; ++lane) {
      state.maximum[lane] = 0;
      state.sum[lane] = (first ? 0 : state.sum[lane]) + static_cast<float>(keys.count);
      state.output[lane] = 3 * state.sum[lane];
    }
    EXPECT_EQ(queries.value_dim, 1);
  }
  void decode(const simd::PairKeys& keys, const simd::QueryRows<float>& rows) const override {
    for (Index row = 0; row < rows.count; ++row) {
      rows.maximum[row] = 0;
      rows.sum[row] += static_cast<float>(keys.count);
      rows.output[row * rows.output_stride] = 3 * rows.sum[row];
    }
  }
  mutable float results[40] = {};

 private:
  mutable float out_[64];
};

TEST(NarrowProducts, ArePreferredToWideningInPrefillAndDecoding) {
  for (const Index queries : {40, 3}) {
    const Fixed fixed{};
    const TensorView<const float, 4> rows(nullptr, {1, 1, queries, 1});
    const TensorView<const float, 4> keys(nullptr, {1, 1, 200, 1});
    auto problem = checked_problem<float>(rows, keys, keys,
                                          TensorView<float, 4>(nullptr, {1, 1, queries, 1}), {});
    problem.narrow = &fixed;
    run_attention(problem, MaskRef(masks::Full{}));
    for (Index i = 0; i < queries; ++i) EXPECT_EQ(fixed.results[i], 3.f);
  }
}

}  // namespace
}  // namespace heed::detail
