// SPDX-License-Identifier: MIT
// attention_backward of bfloat16 tensors: float gradients.
#include <heed/attention/backward.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"

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
    const detail::WidenedTensor<float> out(forward.out), gradient(grad_out);
    Gradients<float> expected(shape);
    attention_backward(wide.queries, wide.keys, wide.values, mask, out.view(), forward.lse,
                       gradient.view(), expected.queries, expected.keys, expected.values, options);
    for (const Index threads : {1, 3}) {
      set_thread_count(threads);
      EXPECT_TRUE(
          same_bits(narrow_gradients(shape, in, mask, forward.out, forward.lse, grad_out, options),
                    expected));
      EXPECT_TRUE(same_bits(
          narrow_gradients(shape, in, mask, out.view(), forward.lse, gradient.view(), options),
          expected));
    }
  };
  check(masks::Full{}, {});
  check(Causal{}, {});
  check(masks::last_n(17) | masks::Prefix(5), {.softcap = 3.f});
}

TEST_P(Bfloat16Backward, IsCloseToTheDefinition) {
  for (const Shape& shape : {Shape{1, 2, 1, 70, 130, 16, 24}, Shape{1, 1, 1, 200, 200, 64, 64}}) {
    const NarrowInputs in(shape, 72);
    const auto wide = widened_inputs(shape, in);
    Loss<float> loss(shape, 72);
    std::fill(loss.grad_lse.begin(), loss.grad_lse.end(), 0.f);
    const auto grad_out = NarrowInputs::narrowed(loss.grad_out);
    for (Index i = 0; i < grad_out.size(); ++i) loss.grad_out.data()[i] = grad_out.data()[i];
    const auto exact = exact_gradients(shape, wide, loss, Causal{});
    const auto forward = narrow_attention(shape, in, Causal{});
    const auto result = narrow_gradients(shape, in, Causal{}, forward.out, forward.lse, grad_out);
    EXPECT_LT(relative_error(result.queries, exact.queries), 0x1p-7);
    EXPECT_LT(relative_error(result.keys, exact.keys), 0x1p-7);
    EXPECT_LT(relative_error(result.values, exact.values), 0x1p-7);
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
  // The gradient of the queries, in the memory of what is read.
  Tensor<float, 4> shared({1, 2, 20, 8});
  const TensorView<bfloat16, 4> inside(reinterpret_cast<bfloat16*>(shared.data()), {1, 2, 20, 8});
  EXPECT_THROW(call(shared, inside), ShapeError);
  for (const float value : result.keys) EXPECT_TRUE(std::isnan(value));
  EXPECT_NO_THROW(call(result.queries, grad_out));
  for (const float value : result.keys) EXPECT_FALSE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Bfloat16Backward, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
