// SPDX-License-Identifier: MIT
// Real data: queries, keys and values of all-MiniLM-L6-v2 over two sentences, the first padded.
// Weights and outputs equal PyTorch's under four masks. Files by tools/capture_minilm.py.
#include <heed/attention.hpp>
#include <heed/io/npy.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

constexpr Index layers[] = {0, 2, 5};

Tensor<float, 4> captured(Index layer, const char* part) {
  return load_npy<float, 4>(HEED_EXAMPLE_DATA "/layer" + std::to_string(layer) + "_" + part +
                            ".npy");
}

Tensor<float, 4> golden(Index layer, const std::string& mask, const char* part) {
  return load_npy<float, 4>(HEED_TEST_DATA "/minilm/layer" + std::to_string(layer) + "_" + mask +
                            "_" + part + ".npy");
}

/// The four masks by the names of the golden files.
std::vector<std::pair<std::string, Mask>> four_masks() {
  const masks::Padding padding({11, 15});
  return {{"none", masks::Full{}},
          {"causal", masks::Causal{}},
          {"padding", padding},
          {"combined", masks::Causal{} & padding}};
}

double largest_difference(const Tensor<float, 4>& a, const Tensor<float, 4>& b) {
  EXPECT_EQ(a.extents(), b.extents());
  if (a.extents() != b.extents()) return INFINITY;
  double largest = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a.data()[i]) - b.data()[i]);
    if (!(difference <= largest)) largest = difference;  // NaN counts as a difference
  }
  return largest;
}

TEST(MiniLmGolden, WeightsEqualPyTorchOnEveryInstructionSet) {
  const RestoreSettings restore;
  for (const Index layer : layers) {
    const auto queries = captured(layer, "queries");
    const auto keys = captured(layer, "keys");
    ASSERT_EQ(queries.extents(), (Extents<4>{2, 4, 15, 32}));
    for (const auto& [name, mask] : four_masks()) {
      const auto expected = golden(layer, name, "weights");
      for (const auto isa : supported_sets()) {
        simd::use(isa);
        SCOPED_TRACE(name + " layer " + std::to_string(layer) + " " + std::string(simd::name(isa)));
        const auto weights = attention_weights(queries, keys, mask);
        EXPECT_LE(largest_difference(weights, expected), 1e-6);
        Index seen_though_masked = 0;
        for (Index i = 0; i < weights.size(); ++i) {
          seen_though_masked += expected.data()[i] == 0 && weights.data()[i] != 0;
        }
        EXPECT_EQ(seen_though_masked, 0);
      }
    }
  }
}

TEST(MiniLmGolden, OutputsEqualPyTorch) {
  for (const auto& [name, mask] : four_masks()) {
    SCOPED_TRACE(name);
    const auto queries = captured(0, "queries"), keys = captured(0, "keys");
    const auto values = captured(0, "values");
    const auto expected = golden(0, name, "out");
    EXPECT_LE(largest_difference(attention(queries, keys, values, mask), expected), 2e-6);
    Tensor<float, 4> out(expected.extents());
    reference_attention(queries, keys, values, mask, out);
    EXPECT_LE(largest_difference(out, expected), 2e-6);
  }
}

TEST(MiniLmGolden, WhatStandsInThePaddingChangesNoBit) {
  const auto queries = captured(2, "queries");
  auto keys = captured(2, "keys"), values = captured(2, "values");
  const masks::Padding padding({11, 15});
  const auto before = attention(queries, keys, values, padding);
  for (Index head = 0; head < 4; ++head) {
    for (Index key = 11; key < 15; ++key) {
      for (Index d = 0; d < 32; ++d) keys(0, head, key, d) = values(0, head, key, d) = NAN;
    }
  }
  EXPECT_TRUE(same_bits(before, attention(queries, keys, values, padding)));
}

}  // namespace
}  // namespace heed::test
