// SPDX-License-Identifier: MIT
#include <heed/attention/detail/backward_call.hpp>

#include <functional>

#include <heed/masks/intervals.hpp>

#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;

/// A call that is fine until a test replaces one of its views.
struct Call {
  Tensor<float, 4> memory = Tensor<float, 4>({11, 1, 2, 48});
  TensorView<float, 4> at(Index slot, Index heads, Index length, Index dim) {
    return {&memory(slot, 0, 0, 0), {1, heads, length, dim}};
  }
  TensorView<float, 4> queries = at(0, 2, 3, 4), keys = at(1, 1, 5, 4), values = at(2, 1, 5, 2);
  TensorView<float, 4> output = at(3, 2, 3, 2), grad_output = at(4, 2, 3, 2);
  TensorView<float, 3> lse = at(5, 1, 2, 3).select(1, 0), grad_lse = at(6, 1, 2, 3).select(1, 0);
  TensorView<float, 4> grad_queries = at(7, 2, 3, 4), grad_keys = at(8, 1, 5, 4),
                       grad_values = at(9, 1, 5, 2);
  AttentionOptions<float> options;

  template <class M = Causal>
  void run(const M& mask = {}) const {
    attention_backward(queries, keys, values, mask, output, lse, grad_output, grad_queries,
                       grad_keys, grad_values, options, {.grad_log_sum_exp = grad_lse});
  }
};

/// Changes a good call and expects a ShapeError that says `what` before anything is written, of the
/// fused kernel and of the reference.
void refuse(const std::string& what, const std::function<void(Call&)>& change) {
  Call call;
  std::fill(call.memory.begin(), call.memory.end(), 0.5f);
  const auto before = call.memory;
  change(call);
  const auto expect_refusal = [&](const auto& run) {
    try {
      run();
      ADD_FAILURE() << "accepted: " << what;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
    EXPECT_TRUE(same_bits(before, call.memory)) << what;
  };
  expect_refusal([&] { call.run(); });
  expect_refusal([&] {
    reference_backward(call.queries, call.keys, call.values, Causal{}, call.output, call.lse,
                       call.grad_output, call.grad_queries, call.grad_keys, call.grad_values,
                       call.options, GradientOptions<float>{.grad_log_sum_exp = call.grad_lse});
  });
}

TEST(BackwardArgs, AGoodCallIsTaken) {
  Call call;
  std::fill(call.memory.begin(), call.memory.end(), 0.5f);
  call.run();
  // Inputs may be one tensor.
  call.grad_output = call.output;
  call.grad_lse = call.lse;
  call.run();
}

TEST(BackwardArgs, ShapesThatDoNotFit) {
  refuse("queries have a batch of 1, keys of 2", [](Call& call) {
    call.keys = {call.keys.data_handle(), {2, 1, 5, 4}};
  });
  refuse("queries have head_dim 4, keys 3", [](Call& call) { call.keys = call.at(1, 1, 5, 3); });
  refuse("keys have 5 tokens, values 6", [](Call& call) { call.values = call.at(2, 1, 6, 2); });
  refuse("output is (1, 2, 3, 3), expected (batch, heads, queries, value_dim) = (1, 2, 3, 2)",
         [](Call& call) { call.output = call.at(3, 2, 3, 3); });
  refuse("grad_output is (1, 2, 4, 2), output is (1, 2, 3, 2)",
         [](Call& call) { call.grad_output = call.at(4, 2, 4, 2); });
  refuse("log_sum_exp is (1, 2, 2), expected (batch, heads, queries) = (1, 2, 3)",
         [](Call& call) { call.lse = call.lse.slice(2, 0, 2); });
  refuse("grad_log_sum_exp is (1, 1, 3), log_sum_exp is (1, 2, 3)",
         [](Call& call) { call.grad_lse = call.grad_lse.slice(1, 0, 1); });
  refuse("grad_queries is (1, 2, 3, 5), queries are (1, 2, 3, 4)",
         [](Call& call) { call.grad_queries = call.at(7, 2, 3, 5); });
  refuse("grad_keys is (1, 2, 5, 4), keys are (1, 1, 5, 4)",
         [](Call& call) { call.grad_keys = call.at(8, 2, 5, 4); });
  refuse("grad_values is (1, 1, 4, 2), values are (1, 1, 5, 2)",
         [](Call& call) { call.grad_values = call.at(9, 1, 4, 2); });
}

TEST(BackwardArgs, ValuesThatDoNotFit) {
  refuse("scale must be finite, not NaN", [](Call& call) { call.options.scale = NAN; });
  refuse("first_query",
         [](Call& call) { call.options.first_query = std::numeric_limits<Index>::max(); });
  Call call;
  EXPECT_THROW(call.run(masks::Padding({1, 2})), ShapeError);
}

TEST(BackwardArgs, GradientsOfWhatWasNotGivenAreRefused) {
  const Inputs<float> in({1, 2, 1, 3, 5, 4, 2}, 1);
  const Loss<float> loss({1, 2, 1, 3, 5, 4, 2}, 1);
  const auto message = [&](const AttentionOptions<float>& options,
                           const GradientOptions<float>& gradients) -> std::string {
    Gradients<float> result({1, 2, 1, 3, 5, 4, 2});
    const auto before = result.keys;
    try {
      attention_backward(in.queries, in.keys, in.values, Causal{}, loss.grad_out, loss.grad_lse,
                         loss.grad_out, result.queries, result.keys, result.values, options,
                         gradients);
    } catch (const InvalidArgument& error) {
      EXPECT_TRUE(same_bits(before, result.keys));
      return error.what();
    }
    return "accepted";
  };
  Tensor<float, 2> scores({3, 5}), table({2, 5}), other({1, 5});
  std::vector<float> two(2), three(3);
  EXPECT_EQ(message({.bias = scores}, {.grad_bias = scores}),
            "attention_backward: grad_bias overlaps bias");
  Tensor<float, 2> keys({1, 5});
  EXPECT_EQ(message({.bias = scores}, {.grad_bias = keys}),
            "attention_backward: grad_bias is (1, 1, 1, 5), bias is (1, 1, 3, 5)");
  EXPECT_EQ(message({}, {.grad_bias = keys}),
            "attention_backward: grad_bias is (1, 1, 1, 5), bias is (0, 0, 0, 0)");
  EXPECT_EQ(message({.relative_bias = table.view()}, {.grad_relative_bias = other.view()}),
            "attention_backward: grad_relative_bias is (1, 5), relative_bias is (2, 5)");
  EXPECT_EQ(message({.alibi_slopes = two}, {.grad_alibi_slopes = three}),
            "attention_backward: 3 grad_alibi_slopes for 2 of the call");
  EXPECT_EQ(message({}, {.grad_sinks = two}), "attention_backward: 2 grad_sinks for 0 of the call");
  EXPECT_EQ(message({.sinks = OwnedArray<float>::borrowed(two)}, {.grad_sinks = two}),
            "attention_backward: grad_sinks overlaps sinks");
  const auto plain = [](float score, Position) { return score; };
  EXPECT_EQ(message({.score_function = plain}, {}),
            "attention_backward: score_function has no derivative(score, position)");
}

TEST(BackwardArgs, GradientsThatShareMemoryAreRefused) {
  const auto grad_queries_on = [](auto place) {
    return [=](Call& call) { call.grad_queries = {place(call), {1, 2, 3, 4}}; };
  };
  refuse("grad_queries overlaps queries",
         grad_queries_on([](Call& call) { return call.queries.data_handle(); }));
  refuse("grad_queries overlaps keys",
         grad_queries_on([](Call& call) { return call.keys.data_handle() + 2; }));
  refuse("grad_queries overlaps values",
         grad_queries_on([](Call& call) { return call.values.data_handle(); }));
  refuse("grad_queries overlaps output",
         grad_queries_on([](Call& call) { return call.output.data_handle(); }));
  refuse("grad_queries overlaps log_sum_exp",
         grad_queries_on([](Call& call) { return call.lse.data_handle(); }));
  refuse("grad_queries overlaps grad_output",
         grad_queries_on([](Call& call) { return call.grad_output.data_handle(); }));
  refuse("grad_queries overlaps grad_log_sum_exp",
         grad_queries_on([](Call& call) { return call.grad_lse.data_handle(); }));
  refuse("grad_keys overlaps keys", [](Call& call) { call.grad_keys = call.keys; });
  refuse("grad_values overlaps values", [](Call& call) { call.grad_values = call.values; });
  refuse("grad_keys overlaps grad_values", [](Call& call) {
    call.grad_values = {call.grad_keys.data_handle(), {1, 1, 5, 2}};
  });
  refuse("grad_queries overlaps grad_values",
         grad_queries_on([](Call& call) { return call.grad_values.data_handle(); }));
  refuse("elements of grad_keys share memory",
         [](Call& call) { call.grad_keys = call.grad_keys.slice(2, 0, 1).broadcast(2, 5); });
  refuse("elements of grad_queries share memory",
         [](Call& call) { call.grad_queries = call.grad_queries.slice(1, 0, 1).broadcast(1, 2); });
}

TEST(BackwardArgs, GradientsMayBeColumnsOfOneMatrix) {
  std::mt19937_64 bits(5);
  for (const Index dim : {3, 32}) {
    for (const auto products : {Products::exact, Products::bfloat16}) {
      const auto x = [&] { return random_tensor<float, 4>({2, 2, 70, dim}, bits); };
      const auto q = x(), k = x(), v = x(), grad = x();
      Tensor<float, 3> lse({2, 2, 70});
      AttentionOptions<float> options{.log_sum_exp = lse};
      options.products = products;
      const auto out = attention(q, k, v, Causal{}, options);
      Tensor<float, 4> queries(q.extents()), keys(q.extents()), values(q.extents());
      options.log_sum_exp = {};
      attention_backward(q, k, v, Causal{}, out, lse, grad, queries, keys, values, options);
      Tensor<float, 3> memory({2, 70, 6 * dim});
      const auto part = [&](Index i) {
        return memory.view()
            .slice(2, 2 * i * dim, 2 * (i + 1) * dim)
            .split(2, dim)
            .permute({0, 2, 1, 3});
      };
      attention_backward(q, k, v, Causal{}, out, lse, grad, part(0), part(1), part(2), options);
      EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(part(0)), queries)) << dim;
      EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(part(1)), keys)) << dim;
      EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(part(2)), values)) << dim;
    }
  }
}

TEST(BackwardArgs, NewTensorsHaveTheBitsOfGivenOnes) {
  std::mt19937_64 bits(6);
  const auto q = random_tensor<float, 4>({2, 4, 9, 5}, bits), grad = q;
  const auto k = random_tensor<float, 4>({2, 2, 11, 5}, bits), v = k;
  Tensor<float, 3> lse({2, 4, 9});
  const auto out = attention(q, k, v, Causal{}, {.scale = 0.3f, .log_sum_exp = lse});
  Tensor<float, 4> queries(q.extents()), keys(k.extents()), values(k.extents());
  attention_backward(q, k, v, Causal{}, out, lse, grad, queries, keys, values, {.scale = 0.3f});
  const auto [grad_q, grad_k, grad_v] =
      attention_backward(q, k, v, Causal{}, out, lse, grad, {.scale = 0.3f});
  EXPECT_TRUE(same_bits(grad_q, queries) && same_bits(grad_k, keys) && same_bits(grad_v, values));
  attention_backward(q, k, v, out, lse, grad, queries, keys, values);
  EXPECT_TRUE(same_bits(attention_backward(q, k, v, out, lse, grad).queries, queries));
}

}  // namespace
}  // namespace heed::test
