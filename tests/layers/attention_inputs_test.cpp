// SPDX-License-Identifier: MIT
#include <heed/layers/attention_inputs.hpp>

#include <heed/layers/multi_head_attention.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

/// The three are computed together where queries and keys have one input, else one by one.
TEST(AttentionInputs, SameBitsTogetherAndOneByOne) {
  for (const bool fused : {false, true}) {
    for (const bool normed : {false, true}) {
      Random random(3);
      MultiHeadAttentionOptions options{.model_dim = 24, .heads = 4, .kv_heads = 2, .fused = fused};
      if (normed) options.query_key_norm = NormKind::rms;
      options.rotary = RotaryOptions{};
      const MultiHeadAttention<float> layer(options, random);
      std::mt19937_64 bits(4);
      const auto x = random_tensor<float, 3>({2, 5, 24}, bits);
      const auto same_x = x;
      const auto together = layer.inputs(x, x, x, 7), apart = layer.inputs(x, same_x, same_x, 7);
      EXPECT_TRUE(same_bits(together.queries, apart.queries)) << fused << normed;
      EXPECT_TRUE(same_bits(together.keys, apart.keys)) << fused << normed;
      EXPECT_TRUE(same_bits(together.values, apart.values)) << fused << normed;
      EXPECT_EQ(together.queries.extents(), (Extents<3>{2, 5, 24}));
      EXPECT_EQ(together.keys.extents(), (Extents<3>{2, 5, 12}));
    }
  }
}

}  // namespace
}  // namespace heed::test
