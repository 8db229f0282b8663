// SPDX-License-Identifier: MIT
// Gradients equal what PyTorch's autograd computes in float64 for the same numbers. Files by
// tools/make_goldens.py.
#include <heed/attention/backward.hpp>
#include <heed/io/npy.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"

namespace heed::test {
namespace {

std::string path_of(const std::string& name, const char* part) {
  return HEED_TEST_DATA "/torch/backward_" + name + "_" + part + ".npy";
}
/// Inputs are stored in half precision, so float and double hold the very same numbers.
template <class T, std::size_t Rank>
Tensor<T, Rank> golden(const std::string& name, const char* part) {
  return converted<T>(load_npy<float, Rank>(path_of(name, part)));
}
Tensor<double, 4> gradient(const std::string& name, const char* part) {
  return load_npy<double, 4>(path_of(name, part));
}

template <class T, class M>
void expect_type_agrees(const std::string& name, const M& mask, AttentionOptions<T> options,
                        bool biased, double tolerance) {
  Inputs<T> in({}, 0);
  in.queries = golden<T, 4>(name, "queries");
  in.keys = golden<T, 4>(name, "keys");
  in.values = golden<T, 4>(name, "values");
  const auto grad_out = golden<T, 4>(name, "grad_out");
  const auto grad_lse = golden<T, 3>(name, "grad_lse");
  const Shape shape{in.queries.extent(0), in.queries.extent(1), in.keys.extent(1),
                    in.queries.extent(2), in.keys.extent(2),    in.keys.extent(3),
                    in.values.extent(3)};
  Tensor<T, 4> bias, grad_bias;
  GradientOptions<T> gradients{.grad_log_sum_exp = grad_lse};
  if (biased) {
    bias = golden<T, 4>(name, "bias");
    grad_bias = Tensor<T, 4>(bias.extents());
    options.bias = bias;
    gradients.grad_bias = grad_bias;
  }
  const auto forward = fused(shape, in, mask, options);
  Gradients<T> result(shape);
  const auto expect = [&](const char* how) {
    SCOPED_TRACE(name + " " + how + (sizeof(T) == 4 ? " float" : " double"));
    EXPECT_LE(relative_error(result.queries, gradient(name, "grad_queries")), tolerance);
    EXPECT_LE(relative_error(result.keys, gradient(name, "grad_keys")), tolerance);
    EXPECT_LE(relative_error(result.values, gradient(name, "grad_values")), tolerance);
    if (!biased) return;
    EXPECT_LE(relative_error(grad_bias, gradient(name, "grad_bias")), tolerance);
  };
  attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, grad_out,
                     result.queries, result.keys, result.values, options, gradients);
  expect(simd::name(simd::active()).data());
  reference_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, grad_out,
                     result.queries, result.keys, result.values, options, gradients);
  expect("reference");
}

/// Float and double, on every instruction set, and the reference.
template <class M>
void expect_agrees(const std::string& name, const M& mask, bool biased = false,
                   std::optional<float> scale = {}) {
  const RestoreSettings restore;
  AttentionOptions<float> narrow;
  AttentionOptions<double> wide;
  if (scale) {
    narrow.scale = *scale;
    wide.scale = -0.7;  // in double it is another number than in float
  }
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    expect_type_agrees<float>(name, mask, narrow, biased, 4e-6);
    expect_type_agrees<double>(name, mask, wide, biased, 1e-14);
  }
}

TEST(TorchGoldenBackward, Shapes) { expect_agrees("odd", masks::Full{}); }
TEST(TorchGoldenBackward, GroupedHeads) { expect_agrees("grouped", masks::Causal{}); }
TEST(TorchGoldenBackward, WindowAndNegativeScale) {
  expect_agrees("window", masks::SlidingWindow{.left = 20, .right = 3}, false, -0.7f);
}
TEST(TorchGoldenBackward, Biases) {
  expect_agrees("bias", masks::Causal{}, true);
  expect_agrees("bias_of_keys", masks::Full{}, true);
}

}  // namespace
}  // namespace heed::test
