// SPDX-License-Identifier: MIT
// Blocks equal what PyTorch and transformers compute in float64 for the same numbers, forward and
// gradients, with every instruction set. Files by tools/make_layer_goldens.py.
#include <heed/io/safetensors.hpp>
#include <heed/layers/blocks.hpp>
#include <heed/masks.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

template <class T>
inline constexpr double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-10;

/// Relative to the norm of the tensor, or to 1 for gradients that cancel to 0 (a bias of keys).
template <class T, std::size_t Rank>
void expect_near(const std::string& name, const Tensor<T, Rank>& found, const Safetensors& file) {
  const auto expected = file.tensor<double, Rank>(name);
  ASSERT_EQ(found.extents(), expected.extents()) << name;
  const double norm = norm_of(expected.data(), expected.size());
  EXPECT_LE(distance(found.data(), expected.data(), found.size()),
            tolerance<T> * std::max(norm, 1.))
      << name;
}

template <class L>
void read_parameters(const Safetensors& file, L& layer) {
  for_each_parameter(
      [&](std::string_view name, auto& parameter) {
        using P = std::remove_reference_t<decltype(parameter)>;
        const auto value = file.tensor<typename P::value_type, P::rank()>(name);
        ASSERT_EQ(value.extents(), parameter.extents()) << name;
        parameter = value;
      },
      layer);
}

template <class L>
void expect_parameters_near(const Safetensors& file, const L& gradients) {
  for_each_parameter(
      [&](std::string_view name, const auto& parameter) {
        expect_near("grad." + std::string(name), parameter, file);
      },
      gradients);
}

Safetensors golden(const std::string& name) {
  return load_safetensors(HEED_TEST_DATA "/layers/" + name + ".safetensors");
}

template <class T>
void check_block(const std::string& name, const BlockOptions& options, const Mask& mask) {
  const auto file = golden(name);
  Random random(1);
  SelfAttentionBlock<T> block(options, random);
  read_parameters(file, block);
  typename SelfAttentionBlock<T>::Saved saved;
  const auto x = file.tensor<T, 3>("input");
  expect_near("output", block.forward(x, mask, saved), file);
  expect_near("output", block.forward(x, mask), file);
  auto gradients = zeros_like(block);
  expect_near("grad.input", block.backward(file.tensor<T, 3>("grad_output"), saved, gradients),
              file);
  expect_parameters_near(file, gradients);
}

template <class T>
void check_decoder() {
  const auto file = golden("decoder");
  Random random(1);
  CrossAttentionBlock<T> block({.model_dim = 12,
                                .heads = 3,
                                .hidden_dim = 20,
                                .activation = ActivationKind::relu,
                                .norm_before = false},
                               random);
  read_parameters(file, block);
  typename CrossAttentionBlock<T>::Saved saved;
  const auto x = file.tensor<T, 3>("input"), memory = file.tensor<T, 3>("memory");
  const Mask causal = masks::Causal{}, padding = masks::Padding({6, 2});
  expect_near("output", block.forward(x, memory, causal, padding, saved), file);
  expect_near("output", block.forward(x, memory, causal, padding), file);
  auto gradients = zeros_like(block);
  Tensor<T, 3> grad_memory(memory.extents());
  expect_near("grad.input",
              block.backward(file.tensor<T, 3>("grad_output"), saved, gradients, grad_memory),
              file);
  expect_near("grad.memory", grad_memory, file);
  expect_parameters_near(file, gradients);
}

class LayerGolden : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  void check(const std::string& name, const BlockOptions& options, const Mask& mask) {
    check_block<float>(name, options, mask);
    check_block<double>(name, options, mask);
  }
  RestoreSettings restore_;
};

TEST_P(LayerGolden, EncoderLayerNormAfter) {
  check("encoder_post_norm",
        {.model_dim = 12,
         .heads = 3,
         .hidden_dim = 20,
         .activation = ActivationKind::gelu,
         .norm_before = false,
         .fused_projection = true},
        masks::Padding({5, 3}));
}

TEST_P(LayerGolden, EncoderLayerNormBefore) {
  check("encoder_pre_norm",
        {.model_dim = 12,
         .heads = 3,
         .hidden_dim = 20,
         .activation = ActivationKind::relu,
         .fused_projection = true},
        masks::Padding({5, 3}));
}

TEST_P(LayerGolden, DecoderLayerWithMemoryAndPadding) {
  check_decoder<float>();
  check_decoder<double>();
}

TEST_P(LayerGolden, GPTBlock) {
  check("gpt", {.model_dim = 12, .heads = 3, .hidden_dim = 20, .fused_projection = true},
        masks::Causal{});
}

TEST_P(LayerGolden, LlamaBlock) {
  check("llama",
        {.model_dim = 12,
         .heads = 6,
         .kv_heads = 2,
         .head_dim = 4,
         .hidden_dim = 20,
         .activation = ActivationKind::silu,
         .gated = true,
         .norm = NormKind::rms,
         .bias = false,
         .positions = PositionKind::rotary},
        masks::Causal{});
}

INSTANTIATE_TEST_SUITE_P(Sets, LayerGolden, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
