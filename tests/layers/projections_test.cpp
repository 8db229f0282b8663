// SPDX-License-Identifier: MIT
#include <heed/layers/projections.hpp>

#include "laws/layer_laws.hpp"

namespace heed::test {
namespace {

Projections<float> made(bool fused) {
  Random random(1);
  return {detail::completed({.model_dim = 8, .heads = 4, .kv_heads = 2, .fused = fused}), random};
}

void expect_fused_is_the_three(Products products) {
  auto separate = made(false), fused = made(true);
  set_products(separate, products);
  set_products(fused, products);
  auto& whole = *fused.query_key_value;
  ASSERT_EQ(whole.weight.extents(), (Extents<2>{8 + 4 + 4, 8}));
  Index row = 0;
  for (const Linear<float>* part : {&*separate.query, &*separate.key, &*separate.value}) {
    for (Index i = 0; i < part->weight.extent(0); ++i, ++row) {
      for (Index j = 0; j < 8; ++j) whole.weight(row, j) = part->weight(i, j);
      (*whole.bias)[row] = (*part->bias)[i];
    }
  }
  std::mt19937_64 bits(2);
  const auto x = random_tensor<float, 3>({2, 3, 8}, bits);
  for (const auto which : {Projection::query, Projection::key, Projection::value}) {
    const auto expected = separate.forward(which, x);
    EXPECT_TRUE(same_bits(fused.forward(which, x), expected));
    auto packed = fused;
    packed.pack();
    EXPECT_TRUE(same_bits(packed.forward(which, x), expected));
    auto gradients = zeros_like(separate), fused_gradients = zeros_like(fused);
    Tensor<float, 3> grad_x(x.extents()), fused_x(x.extents());
    separate.backward(which, expected, x, gradients, grad_x);
    fused.backward(which, expected, x, fused_gradients, fused_x);
    EXPECT_TRUE(same_bits(grad_x, fused_x));
    const auto& layer = which == Projection::query ? separate.query
                        : which == Projection::key ? separate.key
                                                   : separate.value;
    auto alone = zeros_like(*layer);
    EXPECT_TRUE(same_bits(grad_x, layer->backward(expected, x, alone)));
    double sum = 0, fused_sum = 0;
    for (const auto& p : flat_parameters<float>(gradients)) {
      for (Index i = 0; i < p.size; ++i) sum += static_cast<double>(p.data[i]);
    }
    for (const auto& p : flat_parameters<float>(fused_gradients)) {
      for (Index i = 0; i < p.size; ++i) fused_sum += static_cast<double>(p.data[i]);
    }
    EXPECT_NEAR(sum, fused_sum, 1e-4);
  }
}

TEST(Projections, FusedIsTheThreeSideBySide) {
  expect_fused_is_the_three(Products::exact);
  expect_fused_is_the_three(Products::bfloat16);
}

TEST(Projections, AllThreeHaveTheBitsOfEach) {
  std::mt19937_64 bits(2);
  const auto x = random_tensor<float, 3>({2, 3, 8}, bits);
  for (const bool fused : {false, true}) {
    auto layer = made(fused);
    for (const bool packed : {false, true}) {
      if (packed) layer.pack();
      const auto [queries, keys, values] = layer.forward(x);
      EXPECT_TRUE(same_bits(queries, layer.forward(Projection::query, x)));
      EXPECT_TRUE(same_bits(keys, layer.forward(Projection::key, x)));
      EXPECT_TRUE(same_bits(values, layer.forward(Projection::value, x)));
    }
    EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 7})), ShapeError);
  }
}

TEST(Projections, PackedPartsDoNotOutliveAStep) {
  auto fused = made(true);
  fused.pack();
  EXPECT_EQ(fused.query_key_value->packed_parts.size(), 3u);
  set_zero(fused);
  EXPECT_TRUE(fused.query_key_value->packed_parts.empty());
}

TEST(Projections, PackedPartsDoNotOutliveAStepOfTheFusedLayerAlone) {
  auto fused = made(true);
  fused.pack();
  set_zero(*fused.query_key_value);
  std::mt19937_64 bits(3);
  for (const auto& y : fused.forward(random_tensor<float, 3>({2, 3, 8}, bits))) {
    for (const float value : y) EXPECT_EQ(value, 0);
  }
}

TEST(Projections, RefusesWhatDoesNotFit) {
  EXPECT_THROW(made(true).forward(Projection::key, Tensor<float, 3>({1, 2, 7})), ShapeError);
  EXPECT_THROW(made(false).forward(Projection::key, Tensor<float, 3>({1, 2, 7})), ShapeError);
}

}  // namespace
}  // namespace heed::test
