// SPDX-License-Identifier: MIT
// Decoding beside prefill: the same call, once for a few rows and once among many.
#include <heed/attention/detail/decode_pass.hpp>

#include <algorithm>

#include <heed/masks.hpp>

#include "support/score_mods.hpp"

namespace heed::test {
namespace {

using masks::Causal;

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
    const Index group = 1 + upto(9), kv_heads = 1 + upto(2);
    const Shape shape{1 + upto(2),    group * kv_heads, kv_heads,     20 + upto(60),
                      80 + upto(400), 1 + upto(140),    1 + upto(140)};
    set_thread_count(1 + upto(3));
    const Index rows = 1 + upto(15);
    const auto seed = bits() % 1000;
    expect_prefill_bits<float>(shape, rows, Causal{}, seed);
    expect_prefill_bits<double>(shape, rows, ByHead{}, seed);
    expect_prefill_bits<float>(shape, rows, masks::SlidingWindow{.left = 30, .right = 0}, seed);
    expect_prefill_bits<float>(shape, rows, masks::EveryNthKey{7}, seed);
  }
}

TEST_P(Decode, AnyNumberOfColumnsAndRows) {
  for (Index columns = 1; columns <= 70; ++columns) {
    const Shape shape{1, 2, 2, 45, 180, columns, 71 - columns};
    for (const Index rows : {1, 4, 5, 8, 11, 17, 35}) {
      expect_prefill_bits<float>(shape, rows, masks::Full{}, 904);
    }
    expect_prefill_bits<double>(shape, 1 + columns % 20, Causal{}, 905);
  }
}

TEST_P(Decode, LongSequencesOverChunks) {
  expect_prefill_bits<float>({1, 4, 2, 20, 5000, 24, 40}, 3, Causal{}, 902);
  expect_prefill_bits<double>({1, 2, 2, 20, 3300, 8, 8}, 1, masks::last_n(1700), 903);
}

TEST_P(Decode, LengthsOnBothSidesOfAChunkBorder) {
  // What a served batch is: each item as if it were alone, whatever calls before left in memory.
  const Shape shape{4, 2, 1, 2, 1700, 8, 8};
  const Inputs<float> in(shape, 915, 5.f);
  const auto full = fused(shape, in, Causal{});
  EXPECT_EQ(std::count_if(full.out.begin(), full.out.end(), [](float x) { return x != x; }), 0);
  const Index counts[] = {1700, 100, 1536, 1537};
  AttentionOptions<float> options;
  options.key_counts = counts;
  const auto together = fused(shape, in, Causal{}, options);
  for (Index item = 0; item < 4; ++item) {
    const auto alone = [&](const Tensor<float, 4>& tensor) {
      return tensor.view().slice(0, item, item + 1);
    };
    Tensor<float, 4> out({1, 2, 2, 8});
    Tensor<float, 3> lse({1, 2, 2});
    attention(alone(in.queries), alone(in.keys).slice(2, 0, counts[item]),
              alone(in.values).slice(2, 0, counts[item]), Causal{}, out, {.log_sum_exp = lse});
    EXPECT_EQ(std::memcmp(&together.out(item, 0, 0, 0), out.data(), 32 * sizeof(float)), 0) << item;
    EXPECT_EQ(std::memcmp(&together.lse(item, 0, 0), lse.data(), 4 * sizeof(float)), 0) << item;
  }
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

/// Sees no multiple of three, but the first key.
struct NotEveryThird {
  bool allows(Position at) const { return at.key == 0 || (at.key % 3 != 0 && at.key <= at.query); }
};

TEST_P(Decode, WhatMaskedKeysHoldChangesNoBit) {
  const float poisons[] = {NAN, INFINITY, -INFINITY, 1e38f};
  for (const Index rows : {1, 2, 3, 4, 5, 7, 15}) {
    for (const Index dim : {1, 7, 16, 33}) {
      const Shape shape{1, 6, 2, rows, 150, dim, dim + 2};
      const Inputs<float> in(shape, 907);
      Inputs<float> poisoned = in;
      for (Index key = 3; key < 150; key += 3) {
        const float poison = poisons[key / 3 % 4];
        for (Index h = 0; h < 2; ++h) {
          for (Index d = 0; d < dim; ++d) poisoned.keys(0, h, key, d) = poison;
          for (Index d = 0; d < dim + 2; ++d) poisoned.values(0, h, key, d) = poison;
        }
      }
      const auto clean = fused(shape, in, NotEveryThird{});
      const auto result = fused(shape, poisoned, NotEveryThird{});
      ASSERT_TRUE(same_bits(result.out, clean.out)) << rows << " " << dim;
      ASSERT_TRUE(same_bits(result.lse, clean.lse)) << rows << " " << dim;
    }
  }
}

TEST_P(Decode, AQueryOfNaNIsAloneWithIt) {
  for (const Index rows : {2, 3, 4, 5, 9}) {
    const Shape shape{1, 2, 1, rows, 140, 24, 20};
    const Inputs<float> in(shape, 908);
    const auto clean = fused(shape, in, Causal{});
    for (Index row = 0; row < rows; ++row) {
      Inputs<float> poisoned = in;
      for (Index d = 0; d < 24; ++d) poisoned.queries(0, 0, row, d) = NAN;
      const auto out = fused(shape, poisoned, Causal{}).out;
      for (Index h = 0; h < 2; ++h) {
        for (Index q = 0; q < rows; ++q) {
          if (h == 0 && q == row) {
            for (Index d = 0; d < 20; ++d) ASSERT_TRUE(std::isnan(out(0, h, q, d)));
          } else {
            ASSERT_EQ(std::memcmp(&out(0, h, q, 0), &clean.out(0, h, q, 0), 80), 0);
          }
        }
      }
    }
  }
}

TEST_P(Decode, SinksDoNotHideWhatIsNaN) {
  const std::vector<float> sinks = {0.3f, -2, 40};
  const Shape shape{1, 3, 3, 40, 96, 8, 5};
  Inputs<float> in(shape, 909);
  for (Index d = 0; d < 8; ++d) {
    in.keys(0, 0, 3, d) = NAN;      // seen by every query of a head
    in.queries(0, 1, 38, d) = NAN;  // one query
  }
  const AttentionOptions<float> options{.sinks = sinks};
  const auto whole = attention(in.queries, in.keys, in.values, Causal{}, options);
  const auto few =
      attention(in.queries.view().slice(2, 37, 40), in.keys, in.values, Causal{}, options);
  for (Index h = 0; h < 3; ++h) {
    for (Index q = 37; q < 40; ++q) {
      const bool lost = h == 0 || (h == 1 && q == 38);
      for (Index d = 0; d < 5; ++d) {
        EXPECT_EQ(std::isnan(whole(0, h, q, d)), lost) << h << " " << q;
        EXPECT_EQ(std::isnan(few(0, h, q - 37, d)), lost) << h << " " << q;
        if (!lost) {
          EXPECT_EQ(whole(0, h, q, d), few(0, h, q - 37, d));
        }
      }
    }
  }
}

TEST_P(Decode, ThreadsChangeNoBit) {
  // More than the megabyte that is worth a second thread.
  const Shape shape{1, 8, 4, 3, 3000, 64, 48};
  const Inputs<float> in(shape, 910);
  set_thread_count(1);
  const auto alone = fused(shape, in, Causal{});
  for (const Index threads : {2, 3, 8}) {
    set_thread_count(threads);
    const auto together = fused(shape, in, Causal{});
    ASSERT_TRUE(same_bits(together.out, alone.out)) << threads;
    ASSERT_TRUE(same_bits(together.lse, alone.lse)) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Decode, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
