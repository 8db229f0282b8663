// SPDX-License-Identifier: MIT
// Calls whose tensors exceed the caches, which prefetch what comes next: each item of the batch has
// the bits of a call of its own, which does not.
#include <heed/attention/backward.hpp>
#include <heed/attention/forward.hpp>

#include <heed/masks.hpp>

#include "support/attention_cases.hpp"
#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;

class LargeCalls : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// (batch, heads, tokens, dim), stored with a token's heads side by side, as layers have them.
Tensor<float, 4> stored(Index batch, Index heads, Index tokens, Index dim) {
  return Tensor<float, 4>({batch, tokens, heads, dim});
}
TensorView<float, 4> heads_of(Tensor<float, 4>& tensor) {
  return tensor.view().permute({0, 2, 1, 3});
}

/// Forward and backward over a batch, or over each item of it.
struct Run {
  Run(const Shape& s, std::uint64_t seed)
      : out(stored(s.batch, s.heads, s.queries, s.value_dim)),
        grad_queries(stored(s.batch, s.heads, s.queries, s.head_dim)),
        grad_keys(stored(s.batch, s.kv_heads, s.keys, s.head_dim)),
        grad_values(stored(s.batch, s.kv_heads, s.keys, s.value_dim)),
        lse({s.batch, s.heads, s.queries}),
        in(s, seed),
        loss(s, seed) {}

  template <class M>
  void run(const M& mask, Products products, Index first, Index end) {
    if (products == Products::exact) return run(in.queries, in.keys, in.values, mask, first, end);
    run(Tensor<bfloat16, 4>::copy_of(in.queries), Tensor<bfloat16, 4>::copy_of(in.keys),
        Tensor<bfloat16, 4>::copy_of(in.values), mask, first, end);
  }
  template <class X, class M>
  void run(const X& queries, const X& keys, const X& values, const M& mask, Index first,
           Index end) {
    const auto some = [&](const auto& view) { return view.slice(0, first, end); };
    const auto q = some(queries.view()), k = some(keys.view()), v = some(values.view());
    const auto o = some(heads_of(out));
    const auto l = some(lse.view());
    AttentionOptions<float> options;
    options.log_sum_exp = l;
    attention(q, k, v, mask, o, options);
    attention_backward(q, k, v, mask, o, l, some(loss.grad_out.view()),
                       some(heads_of(grad_queries)), some(heads_of(grad_keys)),
                       some(heads_of(grad_values)));
  }

  Tensor<float, 4> out, grad_queries, grad_keys, grad_values;
  Tensor<float, 3> lse;
  Inputs<float> in;
  Loss<float> loss;
};

template <class M>
void expect_bits_of_items(const Shape& shape, const M& mask, Products products) {
  SCOPED_TRACE(shape.text());
  const double rows = static_cast<double>(
      shape.batch * (shape.heads * shape.queries + shape.kv_heads * shape.keys));
  ASSERT_GT(rows * static_cast<double>(shape.head_dim + shape.value_dim) * 4, 8 << 20);
  Run all(shape, 907), each(shape, 907);
  all.run(mask, products, 0, shape.batch);
  for (Index item = 0; item < shape.batch; ++item) each.run(mask, products, item, item + 1);
  EXPECT_TRUE(same_bits(all.out, each.out));
  EXPECT_TRUE(same_bits(all.lse, each.lse));
  EXPECT_TRUE(same_bits(all.grad_queries, each.grad_queries));
  EXPECT_TRUE(same_bits(all.grad_keys, each.grad_keys));
  EXPECT_TRUE(same_bits(all.grad_values, each.grad_values));
}

void expect_bits_of_all_items(Products products) {
  const auto expect = [&](const Shape& shape, const auto& mask) {
    expect_bits_of_items(shape, mask, products);
  };
  expect({150, 5, 5, 17, 17, 60, 64}, Causal{});                     // one kernel call for a head
  expect({40, 3, 3, 70, 75, 64, 72}, Causal{});                      // blocks
  expect({20, 6, 2, 66, 90, 128, 64}, masks::Full{});                // heads share keys
  expect({3, 2, 2, 1700, 1700, 64, 64}, masks::SlidingWindow{300});  // several chunks
}
TEST_P(LargeCalls, HaveTheBitsOfTheirItems) { expect_bits_of_all_items(Products::exact); }
class LargeBfloat16Calls : public LargeCalls {};
TEST_P(LargeBfloat16Calls, HaveTheBitsOfTheirItems) {
  expect_bits_of_all_items(Products::bfloat16);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, LargeBfloat16Calls, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });
INSTANTIATE_TEST_SUITE_P(EveryIsa, LargeCalls, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
