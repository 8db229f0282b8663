// SPDX-License-Identifier: MIT
#include <heed/attention/packed.hpp>

#include <algorithm>

#include <heed/masks.hpp>

#include "support/score_mods.hpp"

namespace heed::test {
namespace {

/// A mask that knows which sequence it is in.
struct ByNumber {
  bool allows(Position at) const { return at.key <= at.query && at.key % 4 != at.batch % 4; }
};

TEST(Packed, EverySequenceIsAsAlone) {
  const std::vector<Index> offsets = {0, 5, 5, 6, 140, 203, 300};
  const Shape shape{1, 4, 2, 300, 300, 12, 10};
  const Inputs<float> in(shape, 801);
  const Changes<float> score_mods(shape, 802);
  const RestoreSettings restore;
  // Everything but a bias tensor, which belongs to scores and not to sequences; dropout apart,
  // since alone every sequence is number 0.
  for (const unsigned which : {0u, 1u | 2u | 4u | 16u | 32u}) {
    for (const Index threads : {1, 3}) {
      set_thread_count(threads);
      auto options = score_mods.options(which);
      Tensor<float, 4> out({1, 4, 300, 10});
      Tensor<float, 3> lse({1, 4, 300});
      options.log_sum_exp = lse;
      packed_attention(in.queries, in.keys, in.values, offsets, ByNumber{}, out, options);
      for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
        const auto of = [&](const auto& tensor) {
          return tensor.view().slice(2, offsets[s], offsets[s + 1]);
        };
        const auto number = static_cast<Index>(s);
        const auto mask =
            predicate([=](Index q, Index k) { return k <= q && k % 4 != number % 4; });
        const auto alone =
            attention(of(in.queries), of(in.keys), of(in.values), mask, score_mods.options(which));
        for (Index h = 0; h < 4; ++h) {
          for (Index q = offsets[s]; q < offsets[s + 1]; ++q) {
            ASSERT_EQ(std::memcmp(&alone(0, h, q - offsets[s], 0), &out(0, h, q, 0), 40), 0)
                << "sequence " << s << " query " << q;
          }
        }
      }
    }
  }
}

TEST(Packed, ALambdaAndAScoreFunctionMeanTheSameInEveryForm) {
  const auto mask = predicate([](Index query, Index key) { return key <= query && key % 3 != 1; });
  const auto nearer = [](float score, Position at) {
    return score - 0.01f * static_cast<float>(at.query - at.key);
  };
  const AttentionOptions<float> options{.score_function = nearer};
  const std::vector<Index> offsets = {0, 9, 160};  // one that is decoded, one that is not
  const Shape shape{1, 4, 2, 160, 160, 12, 10};
  const Inputs<float> in(shape, 804);
  Tensor<float, 4> packed({1, 4, 160, 10});
  packed_attention(in.queries, in.keys, in.values, offsets, mask, packed, options);
  for (std::size_t s = 0; s < 2; ++s) {
    const auto of = [&](const auto& tensor) {
      return Tensor<float, 4>::copy_of(tensor.view().slice(2, offsets[s], offsets[s + 1]));
    };
    const auto queries = of(in.queries), keys = of(in.keys), values = of(in.values);
    const auto whole = attention(queries, keys, values, mask, options);
    Tensor<float, 4> expected(whole.extents());
    reference_attention(queries, keys, values, mask, expected, options);
    EXPECT_TRUE(same_bits(of(std::as_const(packed)), whole));
    const Index length = whole.extent(2);
    for (Index q = 0; q < length; ++q) {
      const auto one = attention(queries.view().slice(2, q, q + 1), keys.view().slice(2, 0, q + 1),
                                 values.view().slice(2, 0, q + 1), mask, options);
      for (Index h = 0; h < 4; ++h) {
        ASSERT_EQ(std::memcmp(&one(0, h, 0, 0), &whole(0, h, q, 0), 40), 0) << h << " " << q;
        for (Index d = 0; d < 10; ++d) ASSERT_NEAR(whole(0, h, q, d), expected(0, h, q, d), 2e-6f);
      }
    }
  }
}

TEST(Packed, DropoutDiffersFromSequenceToSequence) {
  const std::vector<Index> offsets = {0, 32, 64};
  Tensor<float, 3> x({1, 64, 4}), out({1, 64, 4});
  for (Index i = 0; i < 32 * 4; ++i) x.data()[i] = x.data()[128 + i] = static_cast<float>(i % 7);
  packed_attention(x, x, x, offsets, masks::Full{}, out,
                   {.dropout = {.probability = 0.5f, .seed = 1, .layer = 2}});
  EXPECT_NE(std::memcmp(&out(0, 0, 0), &out(0, 32, 0), 32 * 4 * 4), 0);
}

TEST(Packed, QueriesAndKeysMayHaveOffsetsOfTheirOwn) {
  const std::vector<Index> queries = {0, 2, 5}, keys = {0, 70, 100};
  std::mt19937_64 bits(803);
  const auto q = random_tensor<float, 3>({2, 5, 8}, bits);
  const auto k = random_tensor<float, 3>({1, 100, 8}, bits);
  Tensor<float, 3> out({2, 5, 8});
  packed_attention(q, k, k, {queries, keys}, masks::Causal{}, out);
  const auto second = attention(q.view().slice(1, 2, 5), k.view().slice(1, 70, 100),
                                k.view().slice(1, 70, 100), masks::Causal{});
  for (Index h = 0; h < 2; ++h) {
    EXPECT_EQ(std::memcmp(&second(h, 0, 0), &out(h, 2, 0), 3 * 8 * 4), 0);
  }
}

TEST(Packed, TheResultMayBeANewTensor) {
  const std::vector<Index> offsets = {0, 2, 5}, keys = {0, 70, 100};
  std::mt19937_64 bits(805);
  const auto q = random_tensor<float, 3>({2, 5, 8}, bits);
  const auto k = random_tensor<float, 3>({1, 100, 8}, bits);
  const auto v = random_tensor<float, 3>({1, 100, 6}, bits);
  Tensor<float, 3> out({2, 5, 6});
  packed_attention(q, k, v, {offsets, keys}, masks::Causal{}, out, {.scale = 0.3f});
  const Tensor<float, 3> fresh =
      packed_attention(q, k, v, {offsets, keys}, masks::Causal{}, {.scale = 0.3f});
  EXPECT_TRUE(same_bits(fresh, out));
  const Tensor<float, 3> self = packed_attention(q, q, q, offsets, masks::Full{});
  EXPECT_EQ(self.extents(), q.extents());
  EXPECT_THROW(packed_attention(q, k, v, {keys, offsets}, masks::Full{}), ShapeError);
}

TEST(Packed, WithoutAMaskEveryQueryWorksOnItsSequence) {
  const Tensor<float, 3> q({1, 3, 1}, {1, 2, 3}), k({1, 3, 1}, {1, -1, 2}), v({1, 3, 1}, {5, 6, 7});
  const std::vector<Index> offsets = {0, 1, 3};
  Tensor<float, 3> out({1, 3, 1});
  packed_attention(q, k, v, offsets, out);
  EXPECT_TRUE(same_bits(out, packed_attention(q, k, v, offsets, masks::Full{})));
  EXPECT_TRUE(same_bits(out, packed_attention(q, k, v, offsets)));
  EXPECT_EQ(out(0, 0, 0), 5.f) << "a sequence of one";
  EXPECT_GT(out(0, 2, 0), 6.9f) << "nearly all to the larger key";
}

TEST(Packed, Bfloat16SequencesAreAsAlone) {
  std::mt19937_64 bits(806);
  const auto some = [&](const Extents<3>& extents) {
    Tensor<bfloat16, 3> tensor(extents);
    for (bfloat16& value : tensor) value = bfloat16(random_tensor<float, 1>({1}, bits)[0]);
    return tensor;
  };
  const auto q = some({2, 100, 8}), k = some({1, 100, 8}), v = some({1, 100, 6});
  const std::vector<Index> offsets = {0, 3, 70, 100};
  Tensor<bfloat16, 3> out({2, 100, 6});
  packed_attention(q, k, v, offsets, masks::Causal{}, out);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto part = [&](const Tensor<bfloat16, 3>& all) {
      return all.view().slice(1, offsets[i], offsets[i + 1]);
    };
    const auto alone = attention(part(q), part(k), part(v), masks::Causal{});
    for (Index head = 0; head < 2; ++head) {
      for (Index row = 0; row < alone.extent(1); ++row) {
        for (Index d = 0; d < 6; ++d) {
          EXPECT_EQ(out(head, offsets[i] + row, d).bits, alone(head, row, d).bits);
        }
      }
    }
  }
}

TEST(Packed, RefusesOffsetsThatDoNotFit) {
  Tensor<float, 3> x({1, 10, 4}), out({1, 10, 4});
  std::fill(out.begin(), out.end(), 5.f);
  const auto refused = [&](std::vector<Index> queries, std::vector<Index> keys,
                           const AttentionOptions<float>& options = {}) {
    EXPECT_THROW(packed_attention(x, x, x, {queries, keys}, masks::Full{}, out, options),
                 ShapeError);
  };
  refused({0, 9}, {0, 10});
  refused({1, 10}, {0, 10});
  refused({0, 7, 5, 10}, {0, 1, 2, 10});
  refused({0, 5, 10}, {0, 10});
  refused({}, {});
  const Tensor<float, 2> bias({10, 10});
  refused({0, 10}, {0, 10}, {.bias = bias});
  for (const float value : out) EXPECT_EQ(value, 5.f);
}

TEST(PackedOffsets, KeepTemporaryArraysAndReferToOthers) {
  const PackedOffsets kept = std::vector<Index>{0, 3, 7}, listed = {0, 3, 7};
  const PackedOffsets both(std::vector<Index>{0, 2}, std::vector<Index>{0, 5});
  const std::vector<Index> others{-1, -1, -1}, named{0, 4};
  EXPECT_EQ(kept.queries[2], 7);
  EXPECT_EQ(listed.queries[2], 7);
  EXPECT_EQ(listed.keys[1], 3);
  EXPECT_EQ(kept.keys.data(), kept.queries.data());
  EXPECT_EQ(both.queries[1], 2);
  EXPECT_EQ(both.keys[1], 5);
  EXPECT_EQ(PackedOffsets(named).queries.data(), named.data());
  EXPECT_EQ(PackedOffsets(std::span<const Index>(named)).keys.data(), named.data());
  const std::initializer_list<Index> list = {0, 9};
  const Index array[2] = {0, 6};
  const PackedOffsets mixed(named, list);
  EXPECT_EQ(mixed.keys[1], 9);
  EXPECT_EQ(PackedOffsets(array).queries.data(), array);
  Tensor<float, 2> rows({7, 4});
  rows.fill(1);
  EXPECT_TRUE(same_bits(packed_attention(rows, rows, rows, {0, 3, 7}, masks::Causal{}), rows));
}

}  // namespace
}  // namespace heed::test
