// SPDX-License-Identifier: MIT
#include <heed/layers/linear.hpp>

#include "laws/any_rank.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

auto maker(const LinearOptions& options) {
  return [options](auto scalar) {
    Random random(1);
    return Linear<decltype(scalar)>(options, random);
  };
}

TEST(Linear, KeepsTheLaws) {
  check_layer_laws(maker({5, 7}), {2, 3, 5}, {"weight", "bias"});
  check_layer_laws(maker({3, 1, false}), {1, 2, 3}, {"weight"});
}

TEST(Linear, TakesRowsOfAnyRank) {
  Random random(7);
  Linear<float> layer(37, 20, random);
  expect_any_rank(layer, 37);
  layer.pack();
  expect_any_rank(layer, 37);
}

TEST(Linear, ClassifiesWhatAUserHas) {
  Random random(8), same(8);
  const Linear<float> layer(3, 2, random);
  const Linear<float> spelled({.inputs = 3, .outputs = 2}, same);
  EXPECT_TRUE(same_bits(layer.weight, spelled.weight));
  const std::vector<float> features{1, -2, 3};
  const Tensor<float, 1> logits = layer.forward(features);
  EXPECT_TRUE(same_bits(logits, layer.forward(Tensor<float, 1>({1, -2, 3}))));
  EXPECT_EQ(layer.forward(Tensor<float, 2>({5, 3})).extents(), (Extents<2>{5, 2}));
  EXPECT_EQ(layer.forward(Tensor<float, 4>({2, 1, 5, 3})).extents(), (Extents<4>{2, 1, 5, 2}));
}

TEST(Linear, IsTheFormula) {
  Random random(2);
  Linear<double> layer({3, 2}, random);
  const Tensor<double, 3> x({1, 1, 3}, {1, -2, 3});
  const auto y = layer.forward(x);
  for (Index i = 0; i < 2; ++i) {
    const double expected =
        (*layer.bias)[i] + layer.weight(i, 0) - 2 * layer.weight(i, 1) + 3 * layer.weight(i, 2);
    EXPECT_NEAR(y(0, 0, i), expected, 1e-15);
  }
}

TEST(Linear, StartsUniformWithinOneOverTheRootOfInputs) {
  Random random(3);
  const Linear<float> layer({100, 50}, random);
  float low = 0, high = 0;
  for (const float value : layer.weight) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_TRUE(low < -0.099f && low >= -0.1f && high > 0.099f && high <= 0.1f) << low << " " << high;
}

TEST(Linear, PackedWeightsGiveTheSameBitsAndDoNotOutliveAStep) {
  Random random(4);
  Linear<float> layer({70, 90}, random);
  std::mt19937_64 bits(5);
  const auto x = random_tensor<float, 3>({2, 3, 70}, bits);
  const auto plain = layer.forward(x);
  layer.pack();
  EXPECT_FALSE(layer.packed.empty());
  EXPECT_TRUE(same_bits(layer.forward(x), plain));
  const auto copy = zeros_like(layer);
  EXPECT_TRUE(copy.packed.empty());
  for_each_parameter([](std::string_view, auto& p) { p.data()[0] += 1; }, layer);
  EXPECT_TRUE(layer.packed.empty());
  EXPECT_FALSE(same_bits(layer.forward(x), plain));
}

TEST(Linear, Bfloat16ProductsAreThoseOfRoundedFactors) {
  const RestoreSettings restore;
  if (simd::active() >= simd::Isa::amx) simd::use(simd::Isa::avx512);  // tiles have another order
  Random random(9);
  Linear<float> layer(37, 70, random);
  const auto exact = layer;
  auto twin = layer;
  twin.weight = rounded_to_bfloat16(layer.weight);
  set_products(layer, Products::bfloat16);
  std::mt19937_64 bits(10);
  const auto x = random_tensor<float, 3>({2, 53, 37}, bits);
  const auto grad = random_tensor<float, 3>({2, 53, 70}, bits);
  Linear<float>::Saved saved;
  EXPECT_TRUE(same_bits(layer.forward(x, saved), twin.forward(rounded_to_bfloat16(x))));
  EXPECT_TRUE(same_bits(saved.input, Tensor<float, 3>(x).reshaped(Extents<2>{106, 37})));
  auto gradients = zeros_like(layer), of_twin = zeros_like(twin), of_exact = zeros_like(twin);
  EXPECT_TRUE(same_bits(layer.backward(grad, saved, gradients),
                        twin.backward(rounded_to_bfloat16(grad), rounded_to_bfloat16(x), of_twin)));
  EXPECT_TRUE(same_bits(gradients.weight, of_twin.weight));
  exact.backward(grad, x, of_exact);
  EXPECT_FALSE(same_bits(gradients.weight, of_exact.weight));
  EXPECT_TRUE(same_bits(*gradients.bias, *of_exact.bias)) << "a sum has no factors";
  const auto unpacked = layer.forward(x);
  layer.pack();
  EXPECT_TRUE(same_bits(layer.forward(x), unpacked));
  auto floats = exact;
  floats.pack();
  EXPECT_LT(layer.packed.byte_count(), floats.packed.byte_count());
  set_products(layer, Products::exact);
  EXPECT_TRUE(layer.packed.empty());
}

TEST(Linear, RefusesProductsThatItsWeightHasNot) {
  Random random(11);
  Linear<double> wide(3, 2, random);
  Linear<float> narrow(3, 2, random);
  try {
    set_products(wide, Products::bfloat16);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(
        error.what(),
        "products in bfloat16 of double; those in bfloat16 are of float, those in int16 of "
        "quantized weights");
  }
  EXPECT_THROW(set_products(narrow, Products::int16), InvalidArgument);
  EXPECT_TRUE(wide.products == Products::exact && narrow.products == Products::exact);
  set_products(wide, Products::exact);
}

TEST(Linear, JoinsAGroupOfProducts) {
  Random random(3);
  Linear<float> first({6, 5}, random);
  const Linear<float> second({6, 70, false}, random);
  std::mt19937_64 bits(4);
  const auto x = random_tensor<float, 3>({2, 3, 6}, bits);
  for (const bool packed : {false, true}) {
    if (packed) first.pack();
    ProductGroup<float> group(detail::as_rows(x));
    const auto y = first.join(group, x), z = second.join(group, x);
    group.run();
    EXPECT_TRUE(same_bits(y, first.forward(x)));
    EXPECT_TRUE(same_bits(z, second.forward(x)));
  }
}

TEST(Linear, KnowsItsWidthsWithAPackedWeightAlone) {
  Random random(4);
  Linear<float> layer(6, 5, random);
  layer.pack();
  layer.weight = {};
  EXPECT_EQ(layer.inputs(), 6);
  EXPECT_EQ(layer.outputs(), 5);
  EXPECT_EQ(layer.forward(Tensor<float, 2>(2, 6)).extents(), (Extents<2>{2, 5}));
  EXPECT_EQ(Linear<float>().inputs(), 0);
}

TEST(Linear, RefusesWhatDoesNotFit) {
  Random random(6);
  const Linear<float> layer({4, 2}, random);
  EXPECT_THROW(layer.forward(Tensor<float, 3>({1, 2, 3})), ShapeError);
  EXPECT_THROW(layer.forward(Tensor<float, 1>({3})), ShapeError);
  EXPECT_THROW((Linear<float>(4, 0, random)), ShapeError);
  EXPECT_THROW((Linear<float>({0, 2}, random)), ShapeError);
}

TEST(Linear, RefusesItselfAsItsGradients) {
  Random random(7);
  Linear<float> layer({4, 2}, random);
  const auto before = layer.weight;
  Linear<float>::Saved saved;
  layer.forward(Tensor<float, 2>({3, 4}, 0.5f), saved);
  EXPECT_THROW(layer.backward(Tensor<float, 2>({3, 2}), saved, layer), InvalidArgument);
  EXPECT_EQ(layer.weight, before);
}

}  // namespace
}  // namespace heed::test
