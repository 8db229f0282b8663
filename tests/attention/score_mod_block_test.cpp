// SPDX-License-Identifier: MIT
// Changes of scores in the fused kernel: against the reference, alone and together, under masks.
#include <heed/attention/detail/pass.hpp>

#include <algorithm>

#include <heed/attention/weights.hpp>
#include <heed/masks.hpp>

#include "support/score_mods.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;
using masks::predicate;

/// Leaves holes in runs of keys, so that keys are gathered.
struct Holes {
  bool allows(Position at) const {
    return at.key <= at.query + 5 && at.key % 3 != 1 && (at.key + at.query) % 7 != 2;
  }
};

template <class A, class B>
double worst(const A& a, const B& b) {
  double worst = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a.data()[i]), y = static_cast<double>(b.data()[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    worst = std::max(worst, std::isfinite(x - y) ? std::fabs(x - y) : 1e300);
  }
  return worst;
}

template <class T, class M>
void expect_matches(const Shape& shape, const M& mask, unsigned which, std::uint64_t seed,
                    Extents<4> bias_extents) {
  using W = Wider<T>;
  SCOPED_TRACE(shape.text() + " changes " + std::to_string(which) + " seed " +
               std::to_string(seed) + " isa " + std::string(simd::name(simd::active())));
  const Inputs<T> in(shape, seed);
  const Changes<T> score_mods(shape, seed + 1, bias_extents);
  const auto result = fused(shape, in, mask, score_mods.options(which));
  // The same formula by plain loops, in this type and in a wider one.
  const auto wide_changes = score_mods.template as<W>();
  Result<W> expected(shape);
  auto options = wide_changes.options(which);
  options.log_sum_exp = expected.lse;
  reference_attention(converted<W>(in.queries), converted<W>(in.keys), converted<W>(in.values),
                      mask, expected.out, options);
  Result<T> plain(shape);
  auto same = score_mods.options(which);
  same.log_sum_exp = plain.lse;
  reference_attention(in.queries, in.keys, in.values, mask, plain.out, same);
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  // A user's function sees scores in units of e and gives them back: one rounding more.
  const double times = (which & Changes<T>::function) != 0 ? 3 : 2;
  EXPECT_LE(worst(result.out, expected.out), times * worst(plain.out, expected.out) + 2 * unit);
  EXPECT_LE(worst(result.lse, expected.lse), times * worst(plain.lse, expected.lse) + 8 * unit);
}

class ScoreMods : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(ScoreMods, EachAndAllTogetherEqualTheReference) {
  const Shape shape{2, 4, 2, 70, 110, 12, 9};
  const Extents<4> whole{2, 4, 70, 110};
  for (const unsigned which :
       {1u, 2u, 4u, 8u, 16u, 32u, 64u, unsigned{Changes<float>::all}, 47u, 14u, 3u, 17u, 100u}) {
    expect_matches<float>(shape, Causal{}, which, 900 + which, whole);
    expect_matches<double>(shape, Holes{}, which, 910 + which, whole);
  }
}

TEST_P(ScoreMods, ManyMasksAndOddShapes) {
  std::mt19937_64 bits(77);
  const auto upto = [&](Index n) { return static_cast<Index>(bits() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 24; ++i) {
    const Index group = 1 + upto(3), kv_heads = 1 + upto(2);
    const Shape shape{1 + upto(2),   group * kv_heads, kv_heads,    1 + upto(140),
                      1 + upto(220), 1 + upto(70),     1 + upto(40)};
    const auto which = static_cast<unsigned>(bits() % 128);
    Extents<4> bias{shape.batch, shape.heads, shape.queries, shape.keys};
    for (auto& extent : bias) extent = bits() % 3 == 0 ? 1 : extent;
    const auto seed = bits() % 1000;
    switch (i % 4) {
      case 0:
        expect_matches<float>(shape, Full{}, which, seed, bias);
        break;
      case 1:
        expect_matches<float>(shape, Holes{}, which, seed, bias);
        break;
      case 2:
        expect_matches<double>(shape, masks::SlidingWindow{.left = 20, .right = 3}, which, seed,
                               bias);
        break;
      default:
        expect_matches<float>(shape, predicate([](Index q, Index k) { return (q + k) % 4 != 0; }),
                              which, seed, bias);
    }
  }
}

TEST_P(ScoreMods, RowsAreInvariant) {
  // Whole = in chunks = one by one, for any threads, with every change at once.
  const Shape shape{1, 2, 1, 90, 1700, 20, 11};
  const Inputs<float> in(shape, 61);
  const Changes<float> score_mods(shape, 62);
  const auto mask = Causal{} & predicate([](Index q, Index k) { return (3 * q + k) % 11 != 0; });
  const auto whole = fused(shape, in, mask, score_mods.options(Changes<float>::all));
  for (const Index chunk : {1, 5, 37}) {
    set_thread_count(chunk % 4 + 1);
    for (Index first = 0; first < shape.queries; first += chunk) {
      const Index end = std::min(first + chunk, shape.queries);
      auto options = score_mods.options(Changes<float>::all);
      options.first_query = shape.keys - shape.queries + first;
      options.bias = score_mods.bias_table.view().slice(2, first, end);
      const auto part = attention(in.queries.view().slice(2, first, end), in.keys.view(),
                                  in.values.view(), mask, options);
      for (Index head = 0; head < 2; ++head) {
        for (Index q = first; q < end; ++q) {
          ASSERT_EQ(std::memcmp(&part(0, head, q - first, 0), &whole.out(0, head, q, 0), 11 * 4), 0)
              << "chunk " << chunk << " query " << q;
        }
      }
    }
  }
}

TEST_P(ScoreMods, MaskedBiasesAreNotLookedAt) {
  const Shape shape{1, 2, 2, 70, 130, 8, 7};
  const Inputs<float> in(shape, 63);
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e38f}) {
    Changes<float> score_mods(shape, 64);
    const auto expected = fused(shape, in, Holes{}, score_mods.options(127));
    for (Index h = 0; h < 2; ++h) {
      for (Index q = 0; q < 70; ++q) {
        for (Index k = 0; k < 130; ++k) {
          if (!Holes{}.allows({0, h, q + 60, k})) score_mods.bias_table(0, h, q, k) = poison;
        }
      }
    }
    const auto result = fused(shape, in, Holes{}, score_mods.options(127));
    EXPECT_TRUE(same_bits(result.out, expected.out));
    EXPECT_TRUE(same_bits(result.lse, expected.lse));
  }
}

TEST_P(ScoreMods, WeightsAreTheOnesUsed) {
  const Shape shape{1, 3, 3, 40, 150, 8, 1};
  const Inputs<float> in(shape, 65);
  Inputs<float> ones = in;
  std::fill(ones.values.begin(), ones.values.end(), 1.f);
  const Changes<float> score_mods(shape, 66);
  const auto options = score_mods.options(127);
  const auto weights = attention_weights(in.queries, in.keys, Holes{}, options);
  const auto sums = fused(shape, ones, Holes{}, options);
  for (Index h = 0; h < 3; ++h) {
    for (Index q = 0; q < 40; ++q) {
      double sum = 0;
      for (Index k = 0; k < 150; ++k) {
        const Position at{0, h, q + 110, k};
        const float weight = weights(0, h, q, k);
        sum += static_cast<double>(weight);
        if (!Holes{}.allows(at) || !keeps(options.dropout, at)) {
          ASSERT_EQ(weight, 0.f);
        }
      }
      EXPECT_NEAR(sum, static_cast<double>(sums.out(0, h, q, 0)), 1e-5);
    }
  }
}

TEST_P(ScoreMods, ABiasOfMinusInfinityTakesKeysAway) {
  const Shape shape{1, 1, 1, 70, 200, 8, 7};
  const Inputs<float> in(shape, 67);
  Tensor<float, 2> bias({70, 200});
  std::fill(bias.begin(), bias.end(), 0.f);
  for (Index q = 0; q < 70; ++q) {
    for (Index k = 0; k < 200; ++k) {
      // Rows 10 … 19 see nothing at all; every other one what Causal lets it.
      if (q / 10 == 1 || k > q + 130) bias(q, k) = -std::numeric_limits<float>::infinity();
    }
  }
  const auto result = fused<float>(shape, in, Full{}, {.bias = bias});
  const auto expected = fused(shape, in, Causal{});
  for (Index q = 0; q < 70; ++q) {
    for (Index d = 0; d < 7; ++d) {
      const float value = result.out(0, 0, q, d);
      if (q / 10 == 1) {
        EXPECT_TRUE(value == 0 && !std::signbit(value));
      } else {
        EXPECT_NEAR(value, expected.out(0, 0, q, d), 1e-6f);
      }
    }
  }
}

/// As by the formula: NaN − ∞ is NaN, and so is 0 · NaN. Only a mask makes a key absent.
TEST_P(ScoreMods, ABiasOfMinusInfinityHidesNoNaN) {
  const Shape shape{1, 1, 1, 70, 200, 8, 7};
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool in_key : {true, false}) {
      Inputs<float> in(shape, 67);
      in.queries.view().fill(1.f);
      (in_key ? in.keys : in.values).view().select(2, 100).fill(poison);
      Tensor<float, 1> bias({200});
      bias(100) = -std::numeric_limits<float>::infinity();
      const auto result = fused<float>(shape, in, Full{}, {.bias = bias});
      for (const float value : result.out) EXPECT_TRUE(std::isnan(value)) << poison;
      const auto hidden =
          fused(shape, in, masks::predicate([](Index, Index k) { return k != 100; }));
      for (const float value : hidden.out) EXPECT_FALSE(std::isnan(value)) << poison;
    }
  }
}

TEST_P(ScoreMods, AFunctionIsCalledForVisibleScoresOnly) {
  const Shape shape{1, 2, 1, 33, 47, 5, 4};
  const Inputs<float> in(shape, 68);
  set_thread_count(1);
  std::vector<int> calls(2 * 33 * 47);
  const auto count = [&](float score, Position at) {
    ++calls[static_cast<std::size_t>((at.head * 33 + at.query - 14) * 47 + at.key)];
    return score;
  };
  const auto result = fused<float>(shape, in, Holes{}, {.score_function = count});
  const auto plain = fused(shape, in, Holes{});
  EXPECT_LT(worst(result.out, plain.out), 1e-6);
  for (Index h = 0; h < 2; ++h) {
    for (Index q = 0; q < 33; ++q) {
      for (Index k = 0; k < 47; ++k) {
        EXPECT_EQ(calls[static_cast<std::size_t>((h * 33 + q) * 47 + k)],
                  Holes{}.allows({0, h, q + 14, k}) ? 1 : 0);
      }
    }
  }
}

TEST_P(ScoreMods, DropoutAtItsEnds) {
  const Shape shape{1, 1, 1, 20, 30, 5, 4};
  const Inputs<float> in(shape, 69);
  const auto plain = fused(shape, in, Causal{});
  EXPECT_TRUE(same_bits(
      fused<float>(shape, in, Causal{}, {.dropout = {.probability = 0.f, .seed = 5, .layer = 1}})
          .out,
      plain.out));
  const auto none =
      fused<float>(shape, in, Causal{}, {.dropout = {.probability = 1.f, .seed = 5, .layer = 1}});
  for (const float value : none.out) EXPECT_EQ(value, 0.f);
  EXPECT_TRUE(same_bits(none.lse, plain.lse));
}

TEST_P(ScoreMods, ASinkIsTheLogSumExpOfARowWithoutKeys) {
  const Shape shape{1, 2, 1, 5, 20, 5, 4};
  const Inputs<float> in(shape, 70);
  const float sinks[] = {0.5f, -200.f};
  const auto nothing = predicate([](Index, Index) { return false; });
  const auto result = fused<float>(shape, in, nothing, {.sinks = sinks});
  for (Index h = 0; h < 2; ++h) {
    for (Index q = 0; q < 5; ++q) {
      EXPECT_NEAR(result.lse(0, h, q), sinks[h], 1e-4f);
      for (Index d = 0; d < 4; ++d) EXPECT_EQ(result.out(0, h, q, d), 0.f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ScoreMods, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
