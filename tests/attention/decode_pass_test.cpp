// SPDX-License-Identifier: MIT
// Decoding beside prefill: the same call, once for a few rows and once among many.
#include <heed/attention/decode_pass.hpp>

#include <algorithm>

#include <heed/masks.hpp>

#include "support/score_changes.hpp"

namespace heed::test {
namespace {

using masks::Causal;

/// Every head another mask.
struct ByHead {
  bool allows(Position at) const { return at.key <= at.query && at.key % (at.head + 2) != 1; }
};

class Decode : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// The last `rows` queries alone (decoded) = the same rows among all (prefill), bit by bit.
template <class T, class M>
void expect_prefill_bits(const Shape& shape, Index rows, const M& mask, std::uint64_t seed) {
  SCOPED_TRACE(shape.text() + " rows " + std::to_string(rows) + " seed " + std::to_string(seed));
  const Inputs<T> in(shape, seed);
  const auto whole = fused(shape, in, mask);
  const Index first = shape.queries - rows;
  Tensor<T, 4> out({shape.batch, shape.heads, rows, shape.value_dim});
  Tensor<T, 3> lse({shape.batch, shape.heads, rows});
  attention(in.queries.view().slice(2, first, shape.queries), in.keys, in.values, mask, out,
            {.log_sum_exp = lse});
  const auto bytes = static_cast<std::size_t>(shape.value_dim) * sizeof(T);
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.heads; ++h) {
      for (Index q = 0; q < rows; ++q) {
        ASSERT_EQ(std::memcmp(&out(b, h, q, 0), &whole.out(b, h, first + q, 0), bytes), 0);
        ASSERT_EQ(std::memcmp(&lse(b, h, q), &whole.lse(b, h, first + q), sizeof(T)), 0);
      }
    }
  }
}

TEST_P(Decode, RowsHaveTheBitsOfPrefill) {
  std::mt19937_64 bits(901);
  for (int i = 0; i < 20; ++i) {
    const auto upto = [&](Index n) {
      return static_cast<Index>(bits() % static_cast<unsigned>(n));
    };
    const Index group = 1 + upto(9), key_heads = 1 + upto(2);
    const Shape shape{1 + upto(2),    group * key_heads, key_heads,    20 + upto(60),
                      80 + upto(400), 1 + upto(140),     1 + upto(140)};
    set_thread_count(1 + upto(3));
    const Index rows = 1 + upto(15);
    const auto seed = bits() % 1000;
    expect_prefill_bits<float>(shape, rows, Causal{}, seed);
    expect_prefill_bits<double>(shape, rows, ByHead{}, seed);
    expect_prefill_bits<float>(shape, rows, masks::SlidingWindow{.left = 30, .right = 0}, seed);
    expect_prefill_bits<float>(shape, rows, masks::GlobalKeys{7}, seed);
  }
}

TEST_P(Decode, LongSequencesOverChunks) {
  expect_prefill_bits<float>({1, 4, 2, 20, 5000, 24, 40}, 3, Causal{}, 902);
  expect_prefill_bits<double>({1, 2, 2, 20, 3300, 8, 8}, 1, masks::last_n(1700), 903);
}

TEST_P(Decode, ScoresThatGrowMoveTheMaximum) {
  const Shape shape{1, 2, 1, 30, 700, 4, 4};
  Inputs<float> in(shape, 904);
  for (Index key = 0; key < 700; ++key) {
    for (Index d = 0; d < 4; ++d) in.keys(0, 0, key, d) *= static_cast<float>(key) / 4;
  }
  const auto whole = fused(shape, in, Causal{});
  const auto one = attention(in.queries.view().slice(2, 29, 30), in.keys, in.values, Causal{});
  for (Index h = 0; h < 2; ++h) {
    EXPECT_EQ(std::memcmp(&one(0, h, 0, 0), &whole.out(0, h, 29, 0), 16), 0);
  }
}

TEST_P(Decode, ATreeOfGuessesInOneCall) {
  // Five guessed tokens after 50 known ones: token 52 and 53 follow 51, 54 follows 53.
  const std::vector<Index> parents = {-1, 0, 1, 1, 3};
  const Shape shape{1, 2, 1, 5, 55, 8, 8};
  const Inputs<float> in(shape, 905);
  const auto out = fused(shape, in, masks::Tree(50, parents)).out;
  // The last one's branch as a plain sequence: the known tokens, then 0, 1, 3, 4.
  Tensor<float, 4> keys({1, 1, 54, 8}), values({1, 1, 54, 8});
  for (Index i = 0; i < 54; ++i) {
    const Index from = i < 52 ? i : i + 1;
    for (Index d = 0; d < 8; ++d) {
      keys(0, 0, i, d) = in.keys(0, 0, from, d);
      values(0, 0, i, d) = in.values(0, 0, from, d);
    }
  }
  const auto branch = attention(in.queries.view().slice(2, 4, 5), keys, values, Causal{});
  for (Index h = 0; h < 2; ++h) {
    EXPECT_EQ(std::memcmp(&branch(0, h, 0, 0), &out(0, h, 4, 0), 32), 0);
  }
}

TEST_P(Decode, StridedViewsAndNaNInMaskedKeys) {
  const Shape shape{2, 4, 2, 6, 300, 10, 11};
  const Inputs<float> in(shape, 906);
  const auto expected = fused(shape, in, ByHead{});
  // Values with the last axis strided: transposed storage.
  Tensor<float, 4> turned({2, 2, 11, 300});
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 2; ++h) {
      for (Index k = 0; k < 300; ++k) {
        for (Index d = 0; d < 11; ++d) turned(b, h, d, k) = in.values(b, h, k, d);
      }
    }
  }
  const auto strided =
      attention(in.queries, in.keys, turned.view().permute({0, 1, 3, 2}), ByHead{});
  EXPECT_TRUE(same_bits(strided, expected.out));
  // The last four keys are seen by some of the queries only.
  Inputs<float> poisoned = in;
  for (Index d = 0; d < 11; ++d) poisoned.values(0, 0, 298, d) = NAN;
  const auto result = fused(shape, poisoned, Causal{});
  const auto clean = fused(shape, in, Causal{});
  for (Index h = 0; h < 2; ++h) {
    for (Index q = 0; q < 6; ++q) {
      const bool sees = q >= 4;
      EXPECT_EQ(std::isnan(result.out(0, h, q, 0)), sees);
      if (!sees) {
        EXPECT_EQ(std::memcmp(&result.out(0, h, q, 0), &clean.out(0, h, q, 0), 44), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Decode, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
