// SPDX-License-Identifier: MIT
#include <heed/attention/detail/forward_pass.hpp>

#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

/// Hides single keys, key 40 and a whole group of 32.
struct Holes {
  bool allows(Position at) const {
    return at.key % 7 != at.query % 3 && at.key != 40 && at.key / 32 != 4;
  }
};

class PairBlocks : public ::testing::Test {
 protected:
  void SetUp() override {
    for (Index i = 0; i < 40; ++i) {
      for (Index d = 0; d < 4; ++d) {
        keys_(0, 0, i, d).bits = static_cast<std::uint16_t>(10 * i + d);
        if (d < 3) values_(0, 0, i, d).bits = static_cast<std::uint16_t>(1000 + 10 * i + d);
      }
    }
  }
  void use(simd::Isa isa) {
    if (!simd::supported(isa)) GTEST_SKIP() << "no " << simd::name(isa) << " here";
    simd::use(isa);
  }
  Tensor<bfloat16, 4> queries_{Extents<4>{1, 1, 2, 4}}, keys_{Extents<4>{1, 1, 40, 4}};
  Tensor<bfloat16, 4> values_{Extents<4>{1, 1, 40, 3}}, out_{Extents<4>{1, 1, 2, 3}};
  detail::AttentionArgs<float> args_ =
      detail::checked_args<float>(queries_.view(), keys_.view(), values_.view(), out_.view(), {});
  RestoreSettings restore_;
};

TEST_F(PairBlocks, KeysComeInPairsWhateverIsSeen) {
  use(simd::Isa::avx512_bf16);
  if (IsSkipped()) return;
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

TEST_F(PairBlocks, KeysOfTilesComeInGroupsOf32WhateverIsSeen) {
  use(simd::Isa::amx_twin);
  if (IsSkipped()) return;
  const auto& kernels = *simd::pair_kernels<float>();
  const detail::PairBlocks<float> products(args_, &kernels, 0);
  // Keys 34 and 35: their group begins at 32.
  const auto late = products.bring(0, 0, {34, 2, nullptr, false}, kernels.turn);
  ASSERT_EQ(late.count, 4);
  EXPECT_EQ(late.words[1], 0u);
  EXPECT_NE(late.words[2], 0u);
  EXPECT_EQ(late.keys.column_stride, 1);
  for (Index i = 0; i < 4; ++i) {
    const std::uint16_t* row = late.keys.data + i * late.keys.row_stride;
    EXPECT_EQ(row[3], 10 * (32 + i) + 3);
    for (Index d = 4; d < 32; ++d) EXPECT_EQ(row[d], 0) << "columns come in groups too";
    EXPECT_EQ(late.values[2 * 32 + i], 1000 + 10 * (32 + i) + 2) << "turned";
  }
  EXPECT_EQ(late.values[4], 0) << "no more keys";
  // The third key of 40 alone: the second group is not brought at all.
  std::uint64_t words[40] = {};
  words[2] = 3;
  const auto one = products.bring(0, 0, {0, 40, words, true}, kernels.turn);
  ASSERT_EQ(one.count, 32);
  EXPECT_EQ(one.words[2], 3u);
  EXPECT_EQ(one.words[3], 0u);
  EXPECT_EQ(one.values[31], 1310);
  // For decoding many rows values are zipped, for few rows they are read in place.
  const auto few = products.bring(0, 0, {0, 5, nullptr, false});
  EXPECT_EQ(few.values, nullptr);
  EXPECT_EQ(few.lying.data, &values_(0, 0, 0, 0).bits);
  const detail::PairBlocks<float> many(args_, &kernels, kernels.most_lying + 1);
  const auto zipped = many.bring(0, 0, {0, 5, nullptr, false});
  EXPECT_EQ(zipped.values[1], 1010);
  EXPECT_EQ(zipped.values[2 * 6], 1040);
  EXPECT_EQ(zipped.values[2 * 6 + 1], 0);
  EXPECT_EQ(zipped.values[3 * 32 - 1], 0);
}

TEST_F(PairBlocks, TilesReadKeysInPlaceWhereTheirRowsExist) {
  use(simd::Isa::amx_twin);
  if (IsSkipped()) return;
  Tensor<bfloat16, 4> queries({1, 1, 2, 32}), keys({1, 1, 40, 32});
  const auto args =
      detail::checked_args<float>(queries.view(), keys.view(), values_.view(), out_.view(), {});
  const detail::PairBlocks<float> products(args, simd::pair_kernels<float>(), 0);
  const auto place = [&](Index count) {
    return products.bring(0, 0, {0, count, nullptr, false}).keys.data;
  };
  EXPECT_EQ(place(32), &keys(0, 0, 0, 0).bits);
  EXPECT_EQ(place(20), &keys(0, 0, 0, 0).bits);
  EXPECT_NE(place(33), &keys(0, 0, 0, 0).bits) << "a tile of 16 keys would end past the tensor";
}

TEST_F(PairBlocks, BlocksOfQueriesShareTurnedValues) {
  for (const auto isa : {simd::Isa::avx512_bf16, simd::Isa::amx_twin}) {
    use(isa);
    if (IsSkipped()) return;
    const auto* kernels = simd::pair_kernels<float>();
    detail::TurnedValues<float> turned(args_, kernels, 1);
    turned.begin(0);
    const detail::PairBlocks<float> alone(args_, kernels, 0), shared(args_, kernels, 0, &turned);
    const auto last = shared.bring(0, 0, {32, 8, nullptr, false}, kernels->turn);
    const auto first = shared.bring(0, 0, {0, 40, nullptr, false}, kernels->turn);
    EXPECT_EQ(last.values, first.values);
    EXPECT_EQ(last.before, 32);
    EXPECT_EQ(last.arranged, 40);
    EXPECT_EQ(first.before, 0);
    const auto own = alone.bring(0, 0, {0, 40, nullptr, false}, kernels->turn);
    EXPECT_NE(own.values, first.values);
    const auto bytes = static_cast<std::size_t>(3 * 40) * sizeof(std::uint16_t);
    EXPECT_EQ(std::memcmp(own.values, first.values, bytes), 0);
    // A value that is not finite is not lent to those who may not see it.
    values_(0, 0, 35, 1).bits = 0x7f80;
    turned.begin(0);
    const auto part = shared.bring(0, 0, {0, 33, nullptr, false}, kernels->turn);
    EXPECT_EQ(part.before, 0);
    EXPECT_EQ(part.arranged, 33);
    EXPECT_NE(part.values, first.values);
    EXPECT_EQ(shared.bring(0, 0, {0, 40, nullptr, false}, kernels->turn).values, first.values);
    values_(0, 0, 35, 1).bits = 0;
  }
}

// Values laid out for pairs or tiles, or keys and values widened to float, and made by any thread.
TEST_F(PairBlocks, SharedKeysAndValuesChangeNoBit) {
  const Shape shape{2, 4, 2, 150, 300, 33, 20};
  NarrowInputs in(shape, 720, 2.f);
  in.values(1, 0, 40, 3) = bfloat16(std::numeric_limits<float>::quiet_NaN());
  const auto check = [&](const auto& mask) {
    const auto all = narrow_attention(shape, in, mask);
    NarrowResult alone(shape);
    const auto args = detail::checked_args<float>(in.queries.view(), in.keys.view(),
                                                  in.values.view(), alone.out.view(), {});
    const MaskRef erased(mask);
    for (Index item = 0; item < 2; ++item) {
      for (Index head = 0; head < 4; ++head) {
        for (Index row = 0; row < 150; row += 64) {
          detail::QueryBlockPass<float>(args, erased, args.pairs, item, head, row,
                                        std::min<Index>(64, 150 - row))
              .run();
        }
      }
    }
    EXPECT_EQ(std::memcmp(all.out.data(), alone.out.data(),
                          static_cast<std::size_t>(all.out.size()) * sizeof(bfloat16)),
              0);
  };
  for (const auto isa : bfloat16_sets()) {
    SCOPED_TRACE(simd::name(isa));
    simd::use(isa);
    for (const Index threads : {1, 3}) {
      set_thread_count(threads);
      check(masks::Full{});
      check(masks::SlidingWindow{.left = 50, .right = 10});
      check(Holes{});
    }
  }
}

TEST_F(PairBlocks, ValuesOfManyHeadsAreTurnedSomeAtATime) {
  use(simd::Isa::amx_twin);
  if (IsSkipped()) return;
  constexpr Index keys = 70000, columns = 240;  // 33 MB for a head, which repeats one row
  const auto ones = bfloat16(1.f);
  std::vector<bfloat16> rows;
  for (Index i = 0; i < 3 * columns; ++i) {
    rows.emplace_back(static_cast<float>(i / columns + 1));
  }
  const TensorView<const bfloat16, 4> queries(&ones, {1, 6, 70, 2}, {0, 0, 0, 0});
  const TensorView<const bfloat16, 4> all_keys(&ones, {1, 3, keys, 2}, {0, 0, 0, 0});
  const TensorView<const bfloat16, 4> values(rows.data(), {1, 3, keys, columns},
                                             {0, columns, 0, 1});
  Tensor<bfloat16, 4> out({1, 6, 70, columns});
  attention(queries, all_keys, values, masks::SlidingWindow{.left = 20, .right = 0}, out);
  for (Index i = 0; i < out.size(); ++i) {
    ASSERT_EQ(float{out.data()[i]}, static_cast<float>(i / (2 * 70 * columns) + 1));
  }
}

}  // namespace
}  // namespace heed::test
