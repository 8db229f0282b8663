// SPDX-License-Identifier: MIT
// Calls on floats that are rounded to bfloat16: AttentionOptions::products.
#include <heed/attention/detail/pairs.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <heed/attention/cached.hpp>
#include <heed/attention/packed.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/reference.hpp>
#include <heed/attention/weights.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"
#include "support/own_masks.hpp"
#include "support/score_mods.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

using Options = AttentionOptions<float>;

Options rounding(Options options = {}) {
  options.products = Products::bfloat16;
  return options;
}

class RoundedCall : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// Numbers that are bfloat16, and others in every place beside them: NaN, denormals, halfway cases.
Inputs<float> odd_inputs(const Shape& shape, std::uint64_t seed) {
  Inputs<float> in(shape, seed, 3.f);
  const float odd[] = {0x1.01p0f, 0x1.03p0f,        0x1.00ffp3f,
                       0x1p-130f, -0x1.23456p-127f, 0x1.fffp126f};
  for (auto* tensor : {&in.queries, &in.keys, &in.values}) {
    for (Index i = 0; i < tensor->size(); i += 37) tensor->data()[i] = odd[i / 37 % 5];
  }
  return in;
}
NarrowInputs narrowed(const Shape& shape, const Inputs<float>& in) {
  NarrowInputs narrow(shape, 0);
  narrow.queries = NarrowInputs::narrowed(in.queries);
  narrow.keys = NarrowInputs::narrowed(in.keys);
  narrow.values = NarrowInputs::narrowed(in.values);
  return narrow;
}

/// round(out) is what the call on bfloat16 tensors writes, and the log-sum-exp has its bits.
void expect_narrow_bits(const Result<float>& result, const NarrowResult& expected) {
  EXPECT_TRUE(same_bits(result.lse, expected.lse));
  EXPECT_TRUE(same_bits(NarrowInputs::narrowed(result.out), expected.out));
}
template <class M>
void expect_narrow_bits(const Shape& shape, const Inputs<float>& in, const M& mask,
                        const Options& options = {}) {
  SCOPED_TRACE(shape.text());
  expect_narrow_bits(fused(shape, in, mask, rounding(options)),
                     narrow_attention(shape, narrowed(shape, in), mask, options));
}

TEST_P(RoundedCall, HasTheBitsOfBfloat16Tensors) {
  for (const Shape& shape : {Shape{2, 4, 2, 150, 333, 20, 17}, Shape{1, 2, 1, 64, 64, 32, 32},
                             Shape{3, 2, 2, 20, 50, 8, 8}, Shape{1, 6, 2, 1, 400, 64, 64},
                             Shape{1, 2, 1, 7, 1700, 33, 5}, Shape{1, 1, 1, 70, 1700, 16, 16},
                             Shape{1, 2, 2, 5, 5, 1, 3}}) {
    const auto in = odd_inputs(shape, 801);
    for (const Index threads : {1, 3}) {
      set_thread_count(threads);
      expect_narrow_bits(shape, in, Full{});
      expect_narrow_bits(shape, in, Causal{});
      expect_narrow_bits(shape, in, masks::last_n(19) | masks::Prefix(5));
      expect_narrow_bits(shape, in, masks::EveryNthKey{7});
      expect_narrow_bits(shape, in, [](Index q, Index k) { return (q * 5 + k * 3) % 7 < 2; });
    }
    std::vector<Index> counts(static_cast<std::size_t>(shape.batch), shape.keys);
    counts.back() = shape.keys / 2;
    expect_narrow_bits(shape, in, Causal{}, {.key_counts = counts});
    expect_narrow_bits(shape, in, Causal{}, {.scale = -0.3f});
    expect_narrow_bits(shape, in, Causal{}, {.scale = 1e-7f});
    expect_narrow_bits(shape, in, masks::Padding(counts), {.first_query = 3});
  }
}

TEST_P(RoundedCall, AnyStridesGiveTheSameBits) {
  const Shape shape{2, 4, 2, 70, 131, 10, 11};
  const auto in = odd_inputs(shape, 802);
  const auto expected = fused(shape, in, Causal{}, rounding());
  // Heads lie side by side, as layers have them, or rows and columns change places.
  for (const auto& axes : {Extents<4>{0, 2, 1, 3}, Extents<4>{0, 1, 3, 2}}) {
    const auto moved = [&](const Tensor<float, 4>& from) {
      return Tensor<float, 4>::copy_of(from.view().permute(axes));
    };
    const auto queries = moved(in.queries), keys = moved(in.keys), values = moved(in.values);
    for (const Index rows : {70, 3}) {
      const auto out =
          attention(queries.view().permute(axes).slice(2, 70 - rows, 70), keys.view().permute(axes),
                    values.view().permute(axes), Causal{}, rounding());
      EXPECT_TRUE(
          same_bits(out, Tensor<float, 4>::copy_of(expected.out.view().slice(2, 70 - rows, 70))));
    }
  }
}

TEST_P(RoundedCall, ScoreModificationsAreAppliedToRoundedNumbers) {
  const Shape shape{2, 4, 2, 45, 200, 20, 12};
  const Inputs<float> in(shape, 803);
  Inputs<float> rounded = in;
  for (auto* each : {&rounded.queries, &rounded.keys, &rounded.values}) {
    *each = rounded_to_bfloat16(*each);
  }
  const Changes<float> score_mods(shape, 803);
  for (const unsigned which : {1u, 2u, 64u, unsigned{Changes<float>::all}}) {
    const auto options = score_mods.options(which);
    const auto expected = narrow_attention(shape, narrowed(shape, in), Causal{}, options);
    const auto result = fused(shape, in, Causal{}, rounding(options));
    expect_narrow_bits(result, expected);
    for (const Index rows : {1, 7}) {  // decoded
      auto few = rounding(options);
      few.first_query = 200 - rows;
      if (options.bias.given()) continue;  // has a row for every query
      const auto part =
          attention(in.queries.view().slice(2, 45 - rows, 45), in.keys, in.values, Causal{}, few);
      EXPECT_TRUE(
          same_bits(part, Tensor<float, 4>::copy_of(result.out.view().slice(2, 45 - rows, 45))));
    }
    if (plan(in.queries, in.keys, in.values, Causal{}, rounding(options)).arithmetic !=
        AttentionPlan::Arithmetic::scalar) {
      continue;
    }
    const auto in_float = fused(shape, rounded, Causal{}, options);
    EXPECT_TRUE(same_bits(result.out, in_float.out)) << which;
  }
}

TEST_P(RoundedCall, R7ARowDoesNotDependOnTheRowsComputedWithIt) {
  const Shape shape{1, 2, 1, 150, 1900, 20, 17};
  const auto in = odd_inputs(shape, 804);
  const auto check = [&](const auto& mask) {
    const auto whole = fused(shape, in, mask, rounding());
    for (const Index chunk : {1, 5, 16, 64}) {
      for (Index first = 0; first < 150; first += chunk) {
        const Index end = std::min<Index>(first + chunk, 150);
        auto options = rounding({.first_query = 1750 + first});
        const auto part =
            attention(in.queries.view().slice(2, first, end), in.keys, in.values, mask, options);
        ASSERT_TRUE(
            same_bits(part, Tensor<float, 4>::copy_of(whole.out.view().slice(2, first, end))));
      }
    }
  };
  check(Causal{});
  check(masks::SlidingWindow{.left = 201, .right = 0});
}

template <class Stored>
void expect_bits_of_tensors(Index page, Index queries, bool forgets) {
  const Shape shape{2, 4, 2, queries, 230, 20, 12};
  SCOPED_TRACE("pages of " + std::to_string(page) + ", " + shape.text());
  const auto in = odd_inputs(shape, 805);
  const auto mask = masks::SlidingWindow{.left = 60, .right = 0};
  KeyValueCache<float, Stored> cache({2, 2, 20, 12, page, 2 * (230 / page + 1)});
  cache.append(in.keys, in.values);
  if (forgets) cache.forget(1, 230 - queries - 60);
  Result<float> result(shape);
  auto options = rounding({.log_sum_exp = result.lse});
  attention(in.queries, cache, mask, result.out, options);
  const auto expected = fused(shape, in, mask, rounding());
  EXPECT_TRUE(same_bits(result.out, expected.out));
  EXPECT_TRUE(same_bits(result.lse, expected.lse));
}

TEST_P(RoundedCall, CachesOfAnyTypeGiveTheBitsOfTensors) {
  for (const Index queries : {1, 7, 40, 100}) {
    for (const Index page : {16, 48, 96, 240}) {
      for (const bool forgets : {false, true}) {
        expect_bits_of_tensors<float>(page, queries, forgets);
        expect_bits_of_tensors<bfloat16>(page, queries, forgets);
      }
    }
  }
}

TEST_P(RoundedCall, PackedSequencesHaveTheBitsOfEachAlone) {
  const Shape shape{1, 4, 2, 230, 230, 20, 12};
  const auto in = odd_inputs(shape, 806);
  const std::vector<Index> offsets = {0, 3, 3, 60, 200, 230};
  const auto packed =
      packed_attention(in.queries, in.keys, in.values, offsets, Causal{}, rounding());
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const auto of = [&](const Tensor<float, 4>& x) {
      return x.view().slice(2, offsets[s], offsets[s + 1]);
    };
    const auto alone = attention(of(in.queries), of(in.keys), of(in.values), Causal{}, rounding());
    EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(of(packed)), alone)) << s;
  }
}

TEST_P(RoundedCall, IsAccurate) {
  const Shape shape{1, 2, 1, 70, 200, 32, 24};
  const Inputs<float> in(shape, 807);
  const auto narrow = narrowed(shape, in);
  const auto result = fused(shape, in, Causal{}, rounding());
  for (Index q = 0; q < 70; ++q) {
    const auto exact = exact_row(shape, narrow, Causal{}, {}, 0, 1, q);
    const double of_float = 0x1p-24 * exact.largest_value *
                            (8 + std::sqrt(exact.visible) / 4 + 3.5 * exact.largest_score);
    for (Index d = 0; d < 24; ++d) {  // the bound of the contract, without n · |exact|
      const auto i = static_cast<std::size_t>(d);
      const double bound = 1.01 * (of_float + 1.1 * 0x1p-8 * exact.deviation[i]);
      ASSERT_LE(std::fabs(static_cast<double>(result.out(0, 1, q, d)) - exact.out[i]), bound);
    }
  }
  // The reference rounds too.
  Result<float> reference(shape);
  reference_attention(in.queries, in.keys, in.values, Causal{}, reference.out, rounding());
  for (Index i = 0; i < result.out.size(); ++i) {
    ASSERT_NEAR(reference.out.data()[i], result.out.data()[i], 0.01);
  }
}

TEST_P(RoundedCall, WeightsAreThoseOfTheRoundedNumbers) {
  const Shape shape{1, 2, 1, 30, 120, 16, 8};
  const auto in = odd_inputs(shape, 808);
  EXPECT_TRUE(same_bits(
      attention_weights(in.queries, in.keys, Causal{}, rounding()),
      attention_weights(rounded_to_bfloat16(in.queries), rounded_to_bfloat16(in.keys), Causal{})));
}

TEST_P(RoundedCall, PlanIsThatOfBfloat16Tensors) {
  const Shape shape{1, 2, 2, 70, 200, 16, 8};
  const Inputs<float> in(shape, 809);
  const auto narrow = narrowed(shape, in);
  const auto check = [&](const Options& options) {
    const auto of_floats = plan(in.queries, in.keys, in.values, Causal{}, rounding(options));
    const auto of_narrow = plan(narrow.queries, narrow.keys, narrow.values, Causal{}, options);
    EXPECT_EQ(of_floats.arithmetic, of_narrow.arithmetic);
    EXPECT_STREQ(of_floats.why_arithmetic, of_narrow.why_arithmetic);
  };
  check({});
  check({.softcap = 5});
  check({.scale = 0});
}

TEST_P(RoundedCall, FewQueriesHaveKeysInTheirLanes) {
  if (!simd::decode_kernels<float>().attend) GTEST_SKIP() << "header-only, without AVX2";
  const Shape shape{1, 2, 2, 4, 200, 16, 8};
  const Inputs<float> in(shape, 809);
  const auto few = plan(in.queries, in.keys, in.values, Causal{}, rounding());
  EXPECT_EQ(few.lanes, AttentionPlan::Lanes::keys);
}

TEST(RoundedCallErrors, ProductsThatTheTypeDoesNotHave) {
  const Tensor<double, 2> x({5, 4});
  const Tensor<float, 2> y({5, 4});
  EXPECT_THROW(attention(x, x, x, Full{}, {.products = Products::bfloat16}), InvalidArgument);
  EXPECT_THROW(attention(y, y, y, Full{}, {.products = Products::int16}), InvalidArgument);
  EXPECT_NO_THROW(attention(x, x, x, Full{}, {.products = Products::exact}));
}

/// Gradients of a call on floats that are rounded, and of the same call on bfloat16 tensors.
template <class M>
void expect_narrow_gradients(const Shape& shape, const M& mask, const Options& options = {}) {
  SCOPED_TRACE(shape.text());
  const Inputs<float> in(shape, 810);
  const auto narrow = narrowed(shape, in);
  const auto grad_out = Loss<float>(shape, 810).grad_out;
  const auto forward = fused(shape, in, mask, rounding(options));
  Gradients<float> expected(shape);
  attention_backward(narrow.queries, narrow.keys, narrow.values, mask, forward.out, forward.lse,
                     grad_out, expected.queries, expected.keys, expected.values, options);
  for (const Index threads : {1, 3}) {
    set_thread_count(threads);
    Gradients<float> result(shape);
    attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, grad_out,
                       result.queries, result.keys, result.values, rounding(options));
    EXPECT_TRUE(same_bits(result, expected));
  }
}

TEST_P(RoundedCall, GradientsHaveTheBitsOfBfloat16Tensors) {
  const std::vector<float> slopes = {0.5f, 0.1f};
  for (const Shape& shape : {Shape{2, 4, 2, 90, 210, 20, 12}, Shape{3, 2, 2, 64, 64, 32, 32},
                             Shape{1, 2, 2, 5, 7, 3, 9}, Shape{1, 2, 1, 200, 200, 64, 64}}) {
    expect_narrow_gradients(shape, Full{});
    expect_narrow_gradients(shape, Causal{});
    expect_narrow_gradients(shape, masks::last_n(17) | masks::Prefix(5));
    expect_narrow_gradients(shape, Causal{}, {.softcap = 3.f});
    if (shape.heads == 2) expect_narrow_gradients(shape, Causal{}, {.alibi_slopes = slopes});
  }
}

TEST_P(RoundedCall, GradientsOfPackedSequencesAreThoseOfEachAlone) {
  const Shape shape{1, 2, 1, 130, 130, 20, 12};
  const Inputs<float> in(shape, 811);
  const auto grad_out = Loss<float>(shape, 811).grad_out;
  const std::vector<Index> offsets = {0, 40, 130};
  Result<float> forward(shape);
  packed_attention(in.queries, in.keys, in.values, offsets, Causal{}, forward.out,
                   rounding({.log_sum_exp = forward.lse}));
  Gradients<float> all(shape), each(shape);
  packed_attention_backward(in.queries, in.keys, in.values, offsets, Causal{}, forward.out,
                            forward.lse, grad_out, all.queries, all.keys, all.values, rounding());
  for (std::size_t s = 0; s < 2; ++s) {
    const auto of = [&](auto& x) { return x.view().slice(2, offsets[s], offsets[s + 1]); };
    attention_backward(of(in.queries), of(in.keys), of(in.values), Causal{}, of(forward.out),
                       of(forward.lse), of(grad_out), of(each.queries), of(each.keys),
                       of(each.values), rounding());
  }
  EXPECT_TRUE(same_bits(all, each));
}

TEST_P(RoundedCall, RowsMayHaveColumnsInAnyOrder) {
  for (const Index queries : {1, 5, 70}) {
    const Inputs<float> in({1, 2, 2, queries, 40, 32, 32}, 9);
    Tensor<float, 4> out({1, 2, queries, 32}), expected = out;
    attention(in.queries, in.keys, in.values, Full{}, expected, rounding());
    const auto reversed = [](const Tensor<float, 4>& tensor) {
      return Tensor<float, 4>::copy_of(tensor.view().reverse(3));
    };
    const auto q = reversed(in.queries), k = reversed(in.keys), v = reversed(in.values);
    attention(q.view().reverse(3), k.view().reverse(3), v.view().reverse(3), Full{}, out,
              rounding());
    EXPECT_TRUE(same_bits(out, expected)) << queries << " queries";
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, RoundedCall, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
