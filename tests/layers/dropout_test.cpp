// SPDX-License-Identifier: MIT
#include <heed/layers/dropout.hpp>

#include "laws/any_rank.hpp"

namespace heed::test {
namespace {

constexpr std::uint64_t seed = 99;

Tensor<float, 3> dropped(const Dropout<float>& layer, const Tensor<float, 3>& x) {
  Noise saved;
  return layer.forward(x, Noise{seed}, saved);
}

TEST(Dropout, WithoutASeedOrWithProbabilityZeroNoBitChanges) {
  std::mt19937_64 bits(1);
  const auto x = random_tensor<float, 3>({2, 3, 11}, bits);
  Random random(1);
  Noise saved;
  EXPECT_TRUE(same_bits(Dropout<float>(0, random).forward(x, Noise{seed}, saved), x));
  EXPECT_TRUE(same_bits(Dropout<float>(0.5, random).forward(x, Noise{}, saved), x));
  EXPECT_TRUE(same_bits(Dropout<float>(0.5, random).forward(x), x));
}

TEST(Dropout, KeepsTheRightShareAndScalesIt) {
  Random random(2);
  const Dropout<float> layer(0.3, random);
  Tensor<float, 3> x({10, 100, 100});
  for (float& value : x) value = 7;
  const auto y = dropped(layer, x);
  Index kept = 0;
  for (Index i = 0; i < y.size(); ++i) {
    ASSERT_EQ(layer.keeps(seed, i), y.data()[i] != 0);
    ASSERT_TRUE(y.data()[i] == 0 || std::fabs(y.data()[i] - 10) < 1e-5);
    kept += y.data()[i] != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 1e5, 0.7, 0.007);  // 5 standard deviations
}

// Every length of a last vector, with all bits of what is kept.
template <class T>
void expect_elements_of_keeps(double probability) {
  std::mt19937_64 bits(7);
  Random random(7);
  const Dropout<T> layer(probability, random);
  for (const Index width : {1, 2, 3, 5, 17, 31, 33, 63, 64, 130, 259, 4099, 70001}) {
    const auto x = random_tensor<T, 3>({1, 1, width}, bits);
    Noise saved;
    const auto y = layer.forward(x, Noise{(std::uint64_t{77} << 32) + 5}, saved);
    Tensor<T, 3> expected({1, 1, width});
    const T scale = static_cast<T>(1 / (1 - probability));
    for (Index i = 0; i < width; ++i) {
      if (layer.keeps(*saved.seed, i)) expected.data()[i] = x.data()[i] * scale;
    }
    ASSERT_TRUE(same_bits(y, expected)) << width;
  }
}

TEST(Dropout, KeepsSaysWhatEveryElementBecomes) {
  for (const double probability : {1e-12, 0.2, 0.5, 0.9}) {
    expect_elements_of_keeps<float>(probability);
    expect_elements_of_keeps<double>(probability);
  }
}

TEST(Dropout, BackwardDropsTheSame) {
  Random random(3);
  const Dropout<float> layer(0.5, random);
  Tensor<float, 3> ones({1, 9, 9});
  for (float& value : ones) value = 1;
  Noise saved;
  const auto y = layer.forward(ones, Noise{seed}, saved);
  Dropout<float> none;
  EXPECT_TRUE(same_bits(layer.backward(ones, saved, none), y));
}

TEST(Dropout, TakesAnyRank) {
  Random random(5);
  const Dropout<float> layer(0.5, random);
  expect_any_rank(layer, 9);
  std::mt19937_64 bits(6);
  const auto x = random_tensor<float, 3>({2, 3, 5}, bits);
  Noise saved;
  const Tensor<float, 2> flat =
      layer.forward(TensorView<const float, 2>(x.data(), {6, 5}), Noise{seed}, saved);
  EXPECT_EQ(std::memcmp(flat.data(), dropped(layer, x).data(), 30 * sizeof(float)), 0);
}

TEST(Dropout, SeedsAndLayersDiffer) {
  Random random(4);
  const Dropout<float> a(0.5, random), b(0.5, random);
  int other_layer = 0, other_seed = 0;
  for (Index i = 0; i < 1000; ++i) {
    other_layer += a.keeps(seed, i) != b.keeps(seed, i);
    other_seed += a.keeps(seed, i) != a.keeps(seed + 1, i);
  }
  EXPECT_NEAR(other_layer, 500, 80);
  EXPECT_NEAR(other_seed, 500, 80);
}

TEST(Dropout, ProbabilityOneDropsAll) {
  Random random(5);
  Tensor<float, 3> x({1, 1, 3}, {1, std::numeric_limits<float>::infinity(), -2});
  for (const float value : dropped(Dropout<float>(1, random), x)) EXPECT_EQ(value, 0);
}

TEST(Dropout, RefusesOtherProbabilities) {
  Random random(6);
  for (const double bad : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(Dropout<float>(bad, random), InvalidArgument);
  }
}

}  // namespace
}  // namespace heed::test
