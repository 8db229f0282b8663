// SPDX-License-Identifier: MIT
// attention_backward of bfloat16 tensors: float gradients.
#include <heed/attention/backward.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"
#include "support/tile_emulator.hpp"

namespace heed::test {
namespace {

using masks::Causal;

Inputs<float> widened_inputs(const Shape& shape, const NarrowInputs& in) {
  Inputs<float> wide(shape, 0);
  const auto copy = [](const Tensor<bfloat16, 4>& from, Tensor<float, 4>& to) {
    for (Index i = 0; i < to.size(); ++i) to.data()[i] = from.data()[i];
  };
  copy(in.queries, wide.queries);
  copy(in.keys, wide.keys);
  copy(in.values, wide.values);
  return wide;
}

template <class Out, class GradOut>
Gradients<float> narrow_gradients(const Shape& shape, const NarrowInputs& in, const auto& mask,
                                  const Out& out, const Tensor<float, 3>& lse,
                                  const GradOut& grad_out,
                                  const AttentionOptions<float>& options = {}) {
  Gradients<float> result(shape);
  attention_backward(in.queries, in.keys, in.values, mask, out, lse, grad_out, result.queries,
                     result.keys, result.values, options);
  return result;
}

class Bfloat16Backward : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(Bfloat16Backward, HasTheBitsOfFloatGradientsOfTheSameNumbers) {
  const Shape shape{2, 4, 2, 90, 210, 20, 12};
  const NarrowInputs in(shape, 71);
  const auto wide = widened_inputs(shape, in);
  const auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 71).grad_out);
  const auto check = [&](const auto& mask, const AttentionOptions<float>& options) {
    const auto forward = narrow_attention(shape, in, mask, options);
    const auto out = converted<float>(forward.out), gradient = converted<float>(grad_out);
    Gradients<float> expected(shape);
    attention_backward(wide.queries, wide.keys, wide.values, mask, out, forward.lse, gradient,
                       expected.queries, expected.keys, expected.values, options);
    for (const Index threads : {1, 3}) {
      set_thread_count(threads);
      EXPECT_TRUE(
          same_bits(narrow_gradients(shape, in, mask, forward.out, forward.lse, grad_out, options),
                    expected));
      EXPECT_TRUE(same_bits(narrow_gradients(shape, in, mask, out, forward.lse, gradient, options),
                            expected));
    }
  };
  check(masks::last_n(17) | masks::Prefix(5), {.softcap = 3.f});
  check(Causal{}, {.scale = 1e-7f});
  if (simd::pair_kernels<float>() != nullptr) return;  // they multiply pairs in other calls
  check(masks::Full{}, {});
  check(Causal{}, {});
}

/// Gradients within the bounds of docs/contract.md, and the same bits on any number of threads and
/// for an output and its gradient in either type.
template <class M>
void expect_accurate_gradients(const Shape& shape, const M& mask, std::uint64_t seed,
                               const AttentionOptions<float>& options = {}) {
  SCOPED_TRACE(shape.text() + " seed " + std::to_string(seed));
  const NarrowInputs in(shape, seed);
  const auto wide = widened_inputs(shape, in);
  Loss<float> loss(shape, seed);
  std::fill(loss.grad_lse.begin(), loss.grad_lse.end(), 0.f);
  const auto grad_out = NarrowInputs::narrowed(loss.grad_out);
  for (Index i = 0; i < grad_out.size(); ++i) loss.grad_out.data()[i] = grad_out.data()[i];
  const auto exact = exact_gradients(shape, wide, loss, mask, options);
  const GradientBounds<float, M> bound(shape, wide, loss, mask, options, 1.5 * 0x1p-8);
  const auto forward = narrow_attention(shape, in, mask, options);
  const auto result =
      narrow_gradients(shape, in, mask, forward.out, forward.lse, grad_out, options);
  EXPECT_EQ(beyond(result.queries, exact.queries, bound.bounds.queries), 0);
  EXPECT_EQ(beyond(result.keys, exact.keys, bound.bounds.keys), 0);
  EXPECT_EQ(beyond(result.values, exact.values, bound.bounds.values), 0);
  set_thread_count(3);
  const auto out = converted<float>(forward.out);
  EXPECT_TRUE(same_bits(
      narrow_gradients(shape, in, mask, forward.out, forward.lse, grad_out, options), result));
  EXPECT_TRUE(same_bits(narrow_gradients(shape, in, mask, out, forward.lse, loss.grad_out, options),
                        result));
  set_thread_count(1);
}

TEST_P(Bfloat16Backward, IsAsAccurateAsRoundedWeights) {
  expect_accurate_gradients({1, 2, 2, 64, 96, 32, 32}, masks::Full{}, 721);
  expect_accurate_gradients({1, 2, 1, 70, 130, 16, 24}, Causal{}, 722);
  if (simd::pair_kernels<float>() == nullptr) return;  // what follows is about their blocks
  expect_accurate_gradients({2, 4, 2, 77, 201, 19, 33}, Causal{}, 723);
  expect_accurate_gradients({1, 2, 1, 130, 130, 64, 48}, Causal{}, 724);
  expect_accurate_gradients({1, 1, 1, 150, 150, 40, 80}, masks::last_n(37), 725);
  expect_accurate_gradients({1, 2, 2, 65, 290, 1, 3}, masks::last_n(9) | masks::Prefix(4), 726);
  expect_accurate_gradients({1, 1, 1, 100, 120, 17, 16}, masks::predicate([](Index q, Index k) {
                              return (q * 5 + k * 3) % 7 < 2;
                            }),
                            727, {.scale = -0.4f});
  expect_accurate_gradients({3, 1, 1, 5, 7, 8, 8}, masks::Full{}, 728);
  // Keys that some queries of a block see, between keys that all of them see.
  expect_accurate_gradients({1, 1, 1, 128, 96, 16, 16}, masks::predicate([](Index q, Index k) {
                              return q < 80 || k < 2 || k >= 80;
                            }),
                            729, {.first_query = 0});
}

/// Sets differ in the order of additions only.
TEST_P(Bfloat16Backward, IsCloseToTheSetWithoutPairs) {
  const Shape shape{1, 2, 1, 90, 200, 36, 20};
  const NarrowInputs in(shape, 72);
  const auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 72).grad_out);
  const auto forward = narrow_attention(shape, in, Causal{});
  const auto gradients = [&] {
    return narrow_gradients(shape, in, Causal{}, forward.out, forward.lse, grad_out);
  };
  const auto result = gradients();
  simd::use(supported_sets().back());
  const auto expected = gradients();
  for (const auto each :
       {&Gradients<float>::queries, &Gradients<float>::keys, &Gradients<float>::values}) {
    EXPECT_LT(relative_error(result.*each, expected.*each), 0x1p-8);
  }
}

TEST_P(Bfloat16Backward, AnItemAloneHasTheSameBits) {
  const Shape shape{2, 4, 2, 70, 100, 24, 16}, alone{1, 4, 2, 70, 100, 24, 16};
  const NarrowInputs in(shape, 75);
  const auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 75).grad_out);
  const auto forward = narrow_attention(shape, in, Causal{});
  const auto whole = narrow_gradients(shape, in, Causal{}, forward.out, forward.lse, grad_out);
  const auto second = []<class T, std::size_t Rank>(const Tensor<T, Rank>& items) {
    auto extents = items.extents();
    extents[0] = 1;
    Tensor<T, Rank> item(extents);
    std::copy_n(items.data() + item.size(), item.size(), item.data());
    return item;
  };
  NarrowInputs last(alone, 0);
  last.queries = second(in.queries);
  last.keys = second(in.keys);
  last.values = second(in.values);
  const auto part = narrow_gradients(alone, last, Causal{}, second(forward.out),
                                     second(forward.lse), second(grad_out));
  EXPECT_TRUE(same_bits(part.queries, second(whole.queries)));
  EXPECT_TRUE(same_bits(part.keys, second(whole.keys)));
  EXPECT_TRUE(same_bits(part.values, second(whole.values)));
}

/// NaN and Inf in a block that some queries see reach exactly those.
TEST_P(Bfloat16Backward, WhatIsNotFiniteReachesOnlyThoseWhoSeeIt) {
  const Shape shape{1, 1, 1, 100, 100, 20, 12};
  NarrowInputs in(shape, 76);
  auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 76).grad_out);
  const auto forward = narrow_attention(shape, in, Causal{});
  const auto gradients = [&] {
    return narrow_gradients(shape, in, Causal{}, forward.out, forward.lse, grad_out);
  };
  const auto expected = gradients();
  const bfloat16 number = in.keys(0, 0, 50, 3);
  in.keys(0, 0, 50, 3) = bfloat16(std::numeric_limits<float>::infinity());
  const auto with_key = gradients();
  grad_out(0, 0, 40, 5) = bfloat16(std::numeric_limits<float>::quiet_NaN());
  in.keys(0, 0, 50, 3) = number;
  const auto with_gradient = gradients();
  for (Index i = 0; i < 100; ++i) {
    for (Index d = 0; d < 20; ++d) {
      const float before = expected.queries(0, 0, i, d), after = with_key.queries(0, 0, i, d);
      EXPECT_TRUE(i < 50 ? before == after : d != 3 || !std::isfinite(after)) << i;
    }
    for (Index d = 0; d < 12; ++d) {
      const float value = with_gradient.values(0, 0, i, d);
      EXPECT_EQ(std::isnan(value), i <= 40 && d == 5) << i << ' ' << d;
      EXPECT_TRUE(d == 5 || value == expected.values(0, 0, i, d)) << i << ' ' << d;
    }
  }
}

TEST_P(Bfloat16Backward, MaskedMeansAbsentAndEmptyRowsAddNothing) {
  // Queries 0 … 9 see nothing; keys from 100 on are seen by nobody.
  const auto mask = masks::predicate([](Index q, Index k) { return q >= 10 && k < 100 && k <= q; });
  const Shape shape{1, 1, 1, 120, 120, 16, 8};
  NarrowInputs in(shape, 73);
  const AttentionOptions<float> options{.first_query = 0};
  auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 73).grad_out);
  const auto forward = narrow_attention(shape, in, mask, options);
  const auto gradients = [&] {
    return narrow_gradients(shape, in, mask, forward.out, forward.lse, grad_out, options);
  };
  const auto expected = gradients();
  const bfloat16 nan(std::numeric_limits<float>::quiet_NaN());
  for (Index d = 0; d < 16; ++d) in.queries(0, 0, 3, d) = in.keys(0, 0, 110, d) = nan;
  for (Index d = 0; d < 8; ++d) grad_out(0, 0, 3, d) = in.values(0, 0, 110, d) = nan;
  EXPECT_TRUE(same_bits(gradients(), expected));
}

TEST_P(Bfloat16Backward, ViewsOfAnyRankAndStride) {
  const Shape shape{1, 3, 3, 40, 40, 8, 8};
  const NarrowInputs in(shape, 74);
  const auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 74).grad_out);
  const auto forward = narrow_attention(shape, in, Causal{});
  const auto expected = narrow_gradients(shape, in, Causal{}, forward.out, forward.lse, grad_out);
  const auto reversed =
      [](const Tensor<bfloat16, 4>& tensor) {  // columns last to first, twice apart
        Tensor<bfloat16, 4> wide({1, 3, 40, 16});
        TensorView<bfloat16, 4> view(wide.data() + 15, tensor.extents(), {1920, 640, 16, -2});
        for (Index h = 0; h < 3; ++h) {
          for (Index i = 0; i < 40; ++i) {
            for (Index d = 0; d < 8; ++d) view(0, h, i, d) = tensor(0, h, i, d);
          }
        }
        return wide;
      };
  const auto queries = reversed(in.queries), gradient = reversed(grad_out);
  const auto view = [](const Tensor<bfloat16, 4>& wide) {
    return TensorView<const bfloat16, 3>(wide.data() + 15, {3, 40, 8}, {640, 16, -2});
  };
  Gradients<float> result(shape);
  attention_backward(view(queries), in.keys, in.values, Causal{}, forward.out, forward.lse,
                     view(gradient), result.queries, result.keys, result.values);
  EXPECT_TRUE(same_bits(result, expected));
}

TEST_P(Bfloat16Backward, WhatDoesNotFitIsRefusedBeforeAnythingIsWritten) {
  const Shape shape{1, 2, 1, 20, 30, 8, 8};
  NarrowInputs in(shape, 75);
  auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 75).grad_out);
  const auto forward = narrow_attention(shape, in, Causal{});
  Gradients<float> result(shape);
  const auto call = [&](auto&& grad_queries, const auto& gradient) {
    attention_backward(in.queries, in.keys, in.values, Causal{}, forward.out, forward.lse, gradient,
                       grad_queries, result.keys, result.values);
  };
  EXPECT_THROW(call(result.queries, Tensor<bfloat16, 4>({1, 2, 20, 7})), ShapeError);
  EXPECT_THROW(call(Tensor<float, 4>({1, 2, 21, 8}), grad_out), ShapeError);
  for (const float value : result.keys) EXPECT_TRUE(std::isnan(value));
  EXPECT_NO_THROW(call(result.queries, grad_out));
  for (const float value : result.keys) EXPECT_FALSE(std::isnan(value));
}

TEST(Bfloat16BackwardMemory, GradientsInTheMemoryOfTheirInputsAreRefused) {
  const Shape shape{1, 2, 1, 20, 30, 8, 8};
  const NarrowInputs in(shape, 78);
  const auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 78).grad_out);
  const auto forward = narrow_attention(shape, in, Causal{});
  Gradients<float> result(shape);
  const TensorView<bfloat16, 4> inside(reinterpret_cast<bfloat16*>(result.queries.data()),
                                       {1, 2, 20, 8});
  const auto refusal = [&](const auto& output, const auto& gradient) -> std::string {
    try {
      attention_backward(in.queries, in.keys, in.values, Causal{}, output, forward.lse, gradient,
                         result.queries, result.keys, result.values);
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(refusal(inside, grad_out), "attention_backward: grad_queries overlaps output");
  EXPECT_EQ(refusal(forward.out, inside), "attention_backward: grad_queries overlaps grad_output");
  for (const float value : result.queries) EXPECT_TRUE(std::isnan(value));
  for (const float value : result.keys) EXPECT_TRUE(std::isnan(value));
}

TEST(Bfloat16BackwardTiles, TheTwinHasTheBitsOfTheHardware) {
  const AmxForTests amx;
  if (!amx.runs()) GTEST_SKIP() << "no amx here, nor avx512_bf16 to emulate it";
  const RestoreSettings restore;
  const Shape shape{1, 2, 1, 90, 200, 36, 20};
  const NarrowInputs in(shape, 77);
  const auto grad_out = NarrowInputs::narrowed(Loss<float>(shape, 77).grad_out);
  const auto gradients = [&] {
    const auto forward = narrow_attention(shape, in, Causal{});
    return narrow_gradients(shape, in, Causal{}, forward.out, forward.lse, grad_out);
  };
  AmxForTests::use();
  const auto hardware = gradients();
  simd::use(simd::Isa::amx_twin);
  EXPECT_TRUE(same_bits(hardware, gradients()));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Bfloat16Backward, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
