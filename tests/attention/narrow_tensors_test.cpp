// SPDX-License-Identifier: MIT
#include <heed/attention/detail/narrow_tensors.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/masks/full.hpp>

namespace heed::detail {
namespace {

/// Signed bytes, as a type of one's own would come to the kernels.
class Bytes final : public NarrowTensors<float> {
 public:
  simd::MatrixRef<float> query_rows(Index, Index, Index first, Index count) const override {
    return rows(first, count, queries_);
  }
  simd::MatrixRef<float> key_rows(Index, Index, Index first, Index count,
                                  float* scratch) const override {
    return rows(first, count, scratch);
  }
  simd::MatrixRef<float> value_rows(Index, Index, Index first, Index count,
                                    float* scratch) const override {
    return rows(first, count, scratch);
  }
  float* out_rows(Index) const override { return out_; }
  void put_out(Index, Index, Index first, Index count) const override {
    for (Index i = 0; i < 2 * count; ++i) {
      results[static_cast<std::size_t>(2 * first + i)] = static_cast<std::int8_t>(out_[i]);
    }
  }
  static std::int8_t value(Index row, Index d) { return static_cast<std::int8_t>(row % 5 + d); }

  mutable std::vector<std::int8_t> results = std::vector<std::int8_t>(2 * 30);

 private:
  static simd::MatrixRef<float> rows(Index first, Index count, float* to) {
    for (Index i = 0; i < 2 * count; ++i) to[i] = value(first + i / 2, i % 2);
    return {to, 2, 1};
  }
  mutable float queries_[2 * 64], out_[2 * 64];
};

TEST(NarrowTensors, AnotherStorageTypeIsAttendedTo) {
  static_assert(!std::is_default_constructible_v<NarrowTensors<float>>);
  const Bytes bytes{};
  const TensorView<const float, 4> shape(nullptr, {1, 1, 30, 2});
  AttentionOptions<float> options;
  options.scale = 50.f;  // the largest score takes it all
  auto problem = checked_problem<float>(shape, shape, shape,
                                        TensorView<float, 4>(nullptr, {1, 1, 30, 2}), options);
  problem.narrow = &bytes;
  run_attention(problem, MaskRef(masks::Full{}));
  for (Index row = 0; row < 30; ++row) {
    EXPECT_EQ(bytes.results[static_cast<std::size_t>(2 * row)], 4);
    EXPECT_EQ(bytes.results[static_cast<std::size_t>(2 * row + 1)], 5);
  }
}

}  // namespace
}  // namespace heed::detail
