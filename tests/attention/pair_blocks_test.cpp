// SPDX-License-Identifier: MIT
#include <heed/attention/detail/forward_pass.hpp>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

class PairBlocks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simd::supported(simd::Isa::avx512_bf16)) GTEST_SKIP() << "no products of pairs here";
    simd::use(simd::Isa::avx512_bf16);
    for (Index i = 0; i < 40; ++i) {
      for (Index d = 0; d < 4; ++d) {
        keys_(0, 0, i, d).bits = static_cast<std::uint16_t>(10 * i + d);
        if (d < 3) values_(0, 0, i, d).bits = static_cast<std::uint16_t>(1000 + 10 * i + d);
      }
    }
  }
  Tensor<bfloat16, 4> queries_{Extents<4>{1, 1, 2, 4}}, keys_{Extents<4>{1, 1, 40, 4}};
  Tensor<bfloat16, 4> values_{Extents<4>{1, 1, 40, 3}}, out_{Extents<4>{1, 1, 2, 3}};
  detail::AttentionArgs<float> args_ =
      detail::checked_args<float>(queries_.view(), keys_.view(), values_.view(), out_.view(), {});
  RestoreSettings restore_;
};

TEST_F(PairBlocks, KeysComeInPairsWhateverIsSeen) {
  const detail::PairBlocks<float> products(args_, simd::pair_kernels<float>(), 0);
  // Keys 5 … 8: their pairs begin at 4, which nobody sees.
  const auto odd = products.bring(0, 0, {5, 4, nullptr, false});
  EXPECT_EQ(odd.count, 5);
  ASSERT_NE(odd.words, nullptr);
  EXPECT_EQ(odd.words[0], 0u);
  EXPECT_NE(odd.words[1], 0u);
  EXPECT_EQ(odd.keys.data, &keys_(0, 0, 4, 0).bits);
  EXPECT_EQ(odd.values[0], 1040);
  EXPECT_EQ(odd.values[1], 1050);
  // Of the keys 5 … 12 the 5th, the 9th and the 12th.
  const std::uint64_t words[] = {1, 0, 0, 0, 2, 0, 0, 3};
  const auto holes = products.bring(0, 0, {5, 8, words, true});
  ASSERT_EQ(holes.count, 5);
  const Index expected[] = {4, 5, 8, 9, 12};
  const std::uint64_t seen[] = {0, 1, 0, 2, 3};
  for (Index i = 0; i < 5; ++i) {
    EXPECT_EQ(holes.keys.data[i * holes.keys.row_stride], 10 * expected[i]);
    EXPECT_EQ(holes.values[i / 2 * 6 + i % 2], 1000 + 10 * expected[i]);
    EXPECT_EQ(holes.words[i], seen[i]);
  }
  EXPECT_EQ(holes.values[13], 0) << "the last one stands alone";
  // An even start where all is seen stays where it lies.
  const auto plain = products.bring(0, 0, {6, 7, nullptr, false});
  EXPECT_EQ(plain.words, nullptr);
  EXPECT_EQ(plain.count, 7);
  EXPECT_FALSE(plain.guard_values);
}

}  // namespace
}  // namespace heed::test
