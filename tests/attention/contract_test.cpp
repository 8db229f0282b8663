// SPDX-License-Identifier: MIT
// The promises of docs/contract.md on the forward pass, by number.
#include <algorithm>
#include <limits>
#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/masks/intervals.hpp>

#include "support/own_masks.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class Contract : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(Contract, R1MaskedMeansAbsent) {
  const Shape shape{1, 2, 1, 100, 300, 16, 12};
  const Inputs<float> clean(shape, 31);
  const auto check = [&](const auto& mask) {
    const auto expected = fused(shape, clean, mask);
    for_each_poison_where_masked(shape, clean, mask, [&](const auto& in, float poison) {
      const auto result = fused(shape, in, mask);
      EXPECT_TRUE(same_bits(result.out, expected.out)) << poison;
      EXPECT_TRUE(same_bits(result.lse, expected.lse)) << poison;
    });
  };
  check(Sparse{});
  check(NotTheFirst{130});
  check(First{201});
}

TEST_P(Contract, R1WhatALaterTokenHoldsCannotReachAnEarlierOne) {
  // Keys seen by some queries of a tile and masked for others: the guarded path.
  const Shape shape{1, 1, 1, 130, 130, 8, 7};
  const Inputs<float> clean(shape, 32);
  const auto expected = fused(shape, clean, Causal{});
  for (const Index from : {1, 40, 63, 64, 100, 129}) {
    for (const float poison : {nan, infinity, 1e38f}) {
      Inputs<float> in = clean;
      for (Index token = from; token < shape.keys; ++token) {
        for (Index d = 0; d < 8; ++d) in.keys(0, 0, token, d) = poison;
        for (Index d = 0; d < 7; ++d) in.values(0, 0, token, d) = poison;
      }
      const auto result = fused(shape, in, Causal{});
      for (Index q = 0; q < from; ++q) {
        for (Index d = 0; d < 7; ++d) {
          ASSERT_EQ(std::memcmp(&result.out(0, 0, q, d), &expected.out(0, 0, q, d), 4), 0)
              << "from " << from << " query " << q << " poison " << poison;
        }
      }
    }
  }
}

TEST_P(Contract, R2ARowThatSeesNothingIsExactlyZero) {
  const Shape shape{1, 1, 1, 100, 300, 16, 12};
  Inputs<float> in(shape, 33);
  std::fill(in.values.begin(), in.values.end(), 1.f);
  const auto result = fused(shape, in, Sparse{}, {.first_query = 0});
  for (Index q = 0; q < shape.queries; ++q) {
    const bool empty = q <= 3 || q % 10 == 0;
    EXPECT_EQ(result.lse(0, 0, q) == -infinity, empty) << q;
    for (Index d = 0; d < shape.value_dim; ++d) {
      const float value = result.out(0, 0, q, d);
      if (empty) {
        EXPECT_TRUE(value == 0 && !std::signbit(value)) << q;
      } else {
        EXPECT_NEAR(value, 1.f, 1e-5f) << q;
      }
    }
  }
}

TEST_P(Contract, R2WithASinkItsLogSumExpIsTheSink) {
  const Shape shape{1, 60, 2, 40, 60, 8, 4};
  const Inputs<float> in(shape, 36);
  std::vector<float> sinks;
  for (int head = 0; head < 60; ++head) sinks.push_back(0.37f * static_cast<float>(head) - 9);
  for (const Index rows : {shape.queries, Index{1}}) {  // as few as are decoded too
    AttentionOptions<float> options;
    options.sinks = sinks;
    options.first_query = 0;
    Tensor<float, 3> lse({1, 60, rows});
    options.log_sum_exp = lse;
    attention(in.queries.view().slice(2, 0, rows), in.keys, in.values, Sparse{}, options);
    for (Index head = 0; head < 60; ++head) {
      for (Index q = 0; q < rows; ++q) {
        if (q <= 3 || q % 10 == 0) {
          EXPECT_EQ(lse(0, head, q), sinks[static_cast<std::size_t>(head)]) << head << " " << q;
        }
      }
    }
  }
}

TEST_P(Contract, R3NothingHidesNaN) {
  for (const Index keys : {1, 5, 16, 17, 64, 97, 200}) {
    const Shape shape{1, 1, 1, keys, keys, 8, 5};
    const Inputs<float> clean(shape, 34);
    for (Index at = 0; at < keys; at += 1 + keys / 9) {
      Inputs<float> in = clean;
      in.keys(0, 0, at, 3) = nan;
      const auto result = fused(shape, in, Causal{});
      for (Index q = 0; q < keys; ++q) {
        for (Index d = 0; d < 5; ++d) {
          EXPECT_EQ(std::isnan(result.out(0, 0, q, d)), q >= at) << "keys " << keys << " at " << at;
        }
        EXPECT_EQ(std::isnan(result.lse(0, 0, q)), q >= at);
      }
    }
  }
}

TEST_P(Contract, R3AVisibleInfiniteScoreGivesANaNRow) {
  const Shape shape{1, 1, 1, 70, 250, 4, 5};
  Inputs<float> in(shape, 35);
  for (Index key = 0; key < shape.keys; ++key)
    in.keys(0, 0, key, 0) = std::fabs(in.keys(0, 0, key, 0));
  for (Index q = 0; q < shape.queries; ++q) in.queries(0, 0, q, 0) = q % 2 ? 1.f : -1.f;
  in.keys(0, 0, 120, 0) = infinity;  // +inf for odd queries, −inf for even ones
  const auto result = fused(shape, in, Full{});
  for (Index q = 0; q < shape.queries; ++q) {
    for (Index d = 0; d < 5; ++d) EXPECT_EQ(std::isnan(result.out(0, 0, q, d)), q % 2 == 1) << q;
  }
}

TEST_P(Contract, R3AnUnderflowedWeightTimesAVisibleInfinityIsNaN) {
  const Shape shape{1, 1, 1, 3, 40, 1, 2};
  Inputs<float> in(shape, 36);
  std::fill(in.queries.begin(), in.queries.end(), 1.f);
  std::fill(in.keys.begin(), in.keys.end(), -1000.f);
  in.keys(0, 0, 2, 0) = 0.f;
  in.values(0, 0, 30, 1) = infinity;
  const auto result = fused(shape, in, Causal{}, {.scale = 1.f});
  for (Index q = 0; q < 3; ++q) {
    EXPECT_FALSE(std::isnan(result.out(0, 0, q, 0)));
    EXPECT_TRUE(std::isnan(result.out(0, 0, q, 1)));
  }
}

TEST_P(Contract, R3AnUnderflowedWeightUnderAPartialMaskKeepsNaN) {
  // Short sequences, one block of queries and several; the last queries alone are decoded. The
  // first key has a weight of 0 but in row 0, and every row sees its value.
  for (const Index length : {5, 20, 64, 90, 200}) {
    const Shape shape{1, 2, 2, length, length, 1, 3};
    Inputs<float> in(shape, 48);
    std::fill(in.queries.begin(), in.queries.end(), 1.f);
    std::fill(in.keys.begin(), in.keys.end(), 0.f);
    in.keys(0, 1, 0, 0) = -300.f;
    in.values(0, 1, 0, 1) = nan;
    for (const Index queries : {length, std::min<Index>(length, 3)}) {
      Shape part = shape;
      part.queries = queries;
      Inputs<float> last = in;
      last.queries = Tensor<float, 4>({1, 2, queries, 1});
      std::fill(last.queries.begin(), last.queries.end(), 1.f);
      const auto result = fused(part, last, Causal{}, {.scale = 1.f});
      for (Index q = 0; q < queries; ++q) {
        EXPECT_FALSE(std::isnan(result.out(0, 0, q, 1)));
        EXPECT_FALSE(std::isnan(result.out(0, 1, q, 0)));
        EXPECT_TRUE(std::isnan(result.out(0, 1, q, 1))) << length << " queries " << queries;
        EXPECT_FALSE(std::isnan(result.lse(0, 1, q)));
      }
    }
  }
}

TEST_P(Contract, R3NaNInTheLastKeyOfADecodedBlockReachesNoEarlierRow) {
  // Five queries over the last five keys: only the last one sees the last key, and its value.
  for (const Index keys : {5, 96, 97, 192, 500, 1536, 1537}) {
    const Shape shape{1, 1, 1, 5, keys, 8, 6};
    Inputs<float> in(shape, 49);
    in.values(0, 0, keys - 1, 2) = nan;
    const auto result = fused(shape, in, Causal{});
    for (Index q = 0; q < 5; ++q) {
      for (Index d = 0; d < 6; ++d) {
        EXPECT_EQ(std::isnan(result.out(0, 0, q, d)), q == 4 && d == 2) << keys << " row " << q;
      }
    }
  }
}

TEST_P(Contract, R6SameBitsForAnyThreadCountAndRun) {
  const Shape shape{2, 3, 1, 333, 400, 24, 20};
  const Inputs<float> in(shape, 37);
  set_thread_count(1);
  const auto expected = fused(shape, in, Causal{});
  for (const Index threads : {1, 2, 3, 7, 8}) {
    set_thread_count(threads);
    for (int run = 0; run < 5; ++run) {
      const auto result = fused(shape, in, Causal{});
      ASSERT_TRUE(same_bits(result.out, expected.out)) << threads;
      ASSERT_TRUE(same_bits(result.lse, expected.lse)) << threads;
    }
  }
}

TEST_P(Contract, R6SameBitsAtEveryAlignment) {
  const Index length = 70, dim = 13;
  const Inputs<float> in({1, 1, 1, length, length, dim, dim}, 38);
  const auto expected = fused<float>({1, 1, 1, length, length, dim, dim}, in, Causal{});
  const Index size = length * dim;
  for (Index offset = 0; offset < 16; ++offset) {
    std::vector<float> memory(static_cast<std::size_t>(4 * size + 64));
    float* base = memory.data() + offset;
    std::copy(in.queries.begin(), in.queries.end(), base);
    std::copy(in.keys.begin(), in.keys.end(), base + size + 1);
    std::copy(in.values.begin(), in.values.end(), base + 2 * size + 3);
    const auto view = [&](float* at) { return TensorView<float, 2>(at, {length, dim}); };
    attention(view(base), view(base + size + 1), view(base + 2 * size + 3), Causal{},
              view(base + 3 * size + 5));
    EXPECT_EQ(std::memcmp(base + 3 * size + 5, expected.out.data(), sizeof(float) * 70 * 13), 0);
  }
}

/// Rows [first, first + count) of the queries, as a call of their own.
Result<float> rows_of(const Shape& shape, const Inputs<float>& in, const auto& mask, Index first,
                      Index count) {
  Shape part = shape;
  part.queries = count;
  Result<float> result(part);
  attention(view_of(in.queries).slice(2, first, first + count), in.keys, in.values, mask,
            result.out,
            {.first_query = shape.keys - shape.queries + first, .log_sum_exp = result.lse});
  return result;
}

TEST_P(Contract, R7ARowDoesNotDependOnTheRowsComputedWithIt) {
  const Shape shape{1, 2, 1, 150, 1900, 20, 17};
  Inputs<float> in(shape, 39, 6.f);  // wide scores, so that maxima move
  const auto check = [&](const auto& mask) {
    const auto whole = fused(shape, in, mask);
    for (const Index chunk : {1, 5, 16, 37, 64}) {
      for (Index first = 0; first < shape.queries; first += chunk) {
        const Index count = std::min(chunk, shape.queries - first);
        const auto part = rows_of(shape, in, mask, first, count);
        for (Index h = 0; h < 2; ++h) {
          ASSERT_EQ(std::memcmp(&part.out(0, h, 0, 0), &whole.out(0, h, first, 0),
                                sizeof(float) * static_cast<std::size_t>(count * 17)),
                    0)
              << "chunk " << chunk << " first " << first;
          ASSERT_EQ(std::memcmp(&part.lse(0, h, 0), &whole.lse(0, h, first),
                                sizeof(float) * static_cast<std::size_t>(count)),
                    0);
        }
      }
    }
  };
  check(Causal{});
  check(Sparse{});
  check(Full{});
}

TEST_P(Contract, R7NeighborsMayBeAnything) {
  const Shape shape{1, 1, 1, 64, 500, 8, 9};
  const Inputs<float> clean(shape, 40, 4.f);
  const auto expected = fused(shape, clean, Causal{});
  for (const float poison : {nan, infinity, 1e30f}) {
    Inputs<float> in = clean;
    for (Index q = 0; q < shape.queries; ++q) {
      if (q % 5 == 2) continue;
      for (Index d = 0; d < 8; ++d) in.queries(0, 0, q, d) = poison;
    }
    const auto result = fused(shape, in, Causal{});
    for (Index q = 2; q < shape.queries; q += 5) {
      EXPECT_EQ(std::memcmp(&result.out(0, 0, q, 0), &expected.out(0, 0, q, 0), 9 * 4), 0) << q;
    }
  }
}

TEST_P(Contract, R7AppendingKeysNobodySeesChangesNoBit) {
  const Shape shape{1, 1, 1, 40, 300, 8, 9};
  const Inputs<float> in(shape, 41, 3.f);
  Shape longer = shape;
  longer.keys = 2000;
  Inputs<float> more(longer, 42);
  std::copy(in.queries.begin(), in.queries.end(), more.queries.begin());
  std::copy(in.keys.begin(), in.keys.end(), more.keys.begin());
  std::copy(in.values.begin(), in.values.end(), more.values.begin());
  const auto expected = fused(shape, in, First{300}, {.first_query = 0});
  const auto result = fused(longer, more, First{300}, {.first_query = 0});
  EXPECT_TRUE(same_bits(result.out, expected.out));
  EXPECT_TRUE(same_bits(result.lse, expected.lse));
}

TEST_P(Contract, R9TheErrorIsThatOfAPlainTwoPassKernel) {
  for (const float range : {0.5f, 2.f, 6.f}) {
    const Shape shape{1, 1, 1, 64, 1024, 64, 32};
    const Inputs<float> in(shape, 43, range);
    const auto expected = exact(shape, in, Full{});
    Result<float> plain(shape);
    reference_attention(in.queries, in.keys, in.values, Full{}, plain.out);
    const auto result = fused(shape, in, Full{});
    const auto worst = [&](const Tensor<float, 4>& out) {
      double error = 0;
      for (Index i = 0; i < out.size(); ++i) {
        error =
            std::max(error, std::fabs(static_cast<double>(out.data()[i]) - expected.out.data()[i]));
      }
      return error;
    };
    EXPECT_LE(worst(result.out), 2 * worst(plain.out) + 4 * 6e-8 * range) << range;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Contract, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
