// SPDX-License-Identifier: MIT
// Gradients under changes of scores: softcap, biases, a user's function, sinks, dropout.

#include <heed/masks.hpp>

#include "support/changed_gradients.hpp"
#include "support/own_masks.hpp"

namespace heed::test {
namespace {

using masks::Causal;

template <class T>
class ScoreGradients : public ::testing::Test {
 protected:
  void check(const Shape& shape, const auto& mask, unsigned which) {
    check(shape, mask, which, {shape.batch, shape.heads, shape.queries, shape.keys});
  }
  void check(const Shape& shape, const auto& mask, unsigned which, const Extents<4>& bias) {
    expect_changed_gradients<T>(shape, mask, which, bias);
  }
  RestoreSettings restore_;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ScoreGradients, Scalars);

TYPED_TEST(ScoreGradients, EveryChangeAndEveryPairOfThem) {
  const Shape shape{2, 2, 1, 70, 100, 6, 5};
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    for (unsigned a = 0; a < 7; ++a) {
      for (unsigned b = a; b < 7; ++b) {
        this->check(shape, Causal{}, 1u << a | 1u << b);
      }
    }
    this->check(shape, Causal{}, Changes<TypeParam>::all);
  }
}

TYPED_TEST(ScoreGradients, UnderMasksWithHolesAndEmptyRows) {
  const Shape shape{1, 2, 1, 70, 130, 7, 9};
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    for (unsigned which : {1u, 6u, 8u, 16u, 17u, 32u, 64u, unsigned{Changes<float>::all}}) {
      this->check(shape, Irregular{}, which);
      this->check(shape, masks::Full{}, which);
      this->check(shape, masks::last_n(20), which);
    }
  }
}

TYPED_TEST(ScoreGradients, BiasesThatHoldForAllOfAnAxis) {
  const Shape shape{2, 2, 2, 70, 200, 6, 5};
  for (unsigned axes = 0; axes < 16; ++axes) {
    Extents<4> bias{shape.batch, shape.heads, shape.queries, shape.keys};
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (axes >> axis & 1) bias[axis] = 1;
    }
    this->check(shape, Causal{}, Changes<TypeParam>::bias, bias);
    this->check(shape, Irregular{}, Changes<TypeParam>::all, bias);
  }
}

TYPED_TEST(ScoreGradients, LengthsAroundTileEdges) {
  for (const Index length : {1, 5, 16, 17, 48, 49, 63, 64, 65, 95, 96, 97, 192, 193}) {
    this->check({1, 1, 1, length, length, 5, 4}, Causal{}, Changes<TypeParam>::all);
    this->check({1, 1, 1, length, 33, 5, 4}, Irregular{}, Changes<TypeParam>::all);
  }
}

TYPED_TEST(ScoreGradients, BiasesOfHeadsThatShareKeysOverOddLengths) {
  using C = Changes<TypeParam>;
  const unsigned sums = C::bias | C::relative | C::alibi;
  for (const Index queries : {1, 63, 65, 130}) {
    for (const Index keys : {1, 65, 200}) {
      const Shape shape{3, 4, 2, queries, keys, 5, 4};
      for (const Extents<4>& bias : {Extents<4>{3, 4, queries, keys}, {1, 4, queries, keys}}) {
        this->check(shape, masks::Full{}, sums, bias);
        this->check(shape, Causal{}, sums | C::softcap | C::function, bias);
        this->check(shape, EverySeventhKey{}, sums, bias);
        this->check(shape, EverySeventhKey{}, C::all, bias);
      }
    }
  }
}

TYPED_TEST(ScoreGradients, SharedByItemsIsTheSumOverThem) {
  using T = TypeParam;
  const Shape shape{3, 2, 2, 70, 250, 6, 5};
  const Inputs<T> in(shape, 4);
  const Loss<T> loss(shape, 4);
  Changes<T> changes(shape, 4, {1, 2, 70, 250});
  const unsigned bias = Changes<T>::bias;
  for (const Index threads : {1, 5}) {  // in the pass, and after it
    set_thread_count(threads);
    const auto one = fused_changed(shape, in, loss, Causal{}, changes, bias);
    auto each = changes;
    each.bias_table = Tensor<T, 4>({3, 2, 70, 250});
    for (Index item = 0; item < 3; ++item) {
      std::copy_n(changes.bias_table.data(), changes.bias_table.size(),
                  each.bias_table.data() + item * changes.bias_table.size());
    }
    const auto all = fused_changed(shape, in, loss, Causal{}, each, bias);
    for (Index i = 0; i < one.bias.size(); ++i) {
      double sum = 0;
      for (Index item = 0; item < 3; ++item) {
        sum += static_cast<double>(all.bias.data()[item * one.bias.size() + i]);
      }
      ASSERT_EQ(one.bias.data()[i], static_cast<T>(sum)) << i;
    }
  }
}

TYPED_TEST(ScoreGradients, AnyStridesOfABiasAndItsGradient) {
  using T = TypeParam;
  const Shape shape{2, 2, 1, 70, 130, 6, 5};
  const Inputs<T> in(shape, 5);
  const Loss<T> loss(shape, 5);
  const unsigned which = Changes<T>::bias;
  const Changes<T> changes(shape, 5, {1, 2, 70, 130});
  const auto& table = changes.bias_table;
  const TensorView<const T, 4> wide(table.data(), {2, 2, 70, 130}, {0, 70 * 130, 130, 1});
  auto copied = changes;
  copied.bias_table = Tensor<T, 4>::copy_of(wide);
  for (const auto& mask : {Mask(Causal{}), Mask(Irregular{}), Mask(EverySeventhKey{})}) {
    const auto expected = fused_changed(shape, in, loss, mask, copied, which);
    auto options = changes.options(which);
    options.bias = wide;
    const auto forward = fused(shape, in, mask, options);
    ChangedGradients<T> result(shape, changes);
    Tensor<T, 4> turned({2, 2, 130, 70});
    turned.fill(std::numeric_limits<T>::quiet_NaN());
    attention_backward(
        in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
        result.tensors.queries, result.tensors.keys, result.tensors.values, options,
        {.grad_log_sum_exp = loss.grad_lse, .grad_bias = turned.view().transpose(2, 3)});
    EXPECT_TRUE(same_bits(Tensor<T, 4>::copy_of(turned.view().transpose(2, 3)), expected.bias));
  }
}

TYPED_TEST(ScoreGradients, ThreadsChangeNoBit) {
  using T = TypeParam;
  const Shape shape{2, 4, 2, 150, 500, 8, 8};
  const Inputs<T> in(shape, 9);
  const Loss<T> loss(shape, 9);
  const unsigned all = Changes<T>::all;
  for (const Extents<4>& bias : {Extents<4>{1, 4, 150, 500}, Extents<4>{1, 1, 1, 500}}) {
    const Changes<T> score_mods(shape, 9, bias);
    set_thread_count(1);
    const auto expected = fused_changed(shape, in, loss, Causal{}, score_mods, all);
    for (const Index threads : {2, 3, 7, 8}) {
      set_thread_count(threads);
      fused_changed(shape, in, loss, Causal{}, score_mods, all)
          .with(expected, all, [&](const char* name, const auto& got, const auto& want) {
            EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)), 0)
                << name << " threads " << threads;
          });
    }
  }
}

TYPED_TEST(ScoreGradients, MaskedAndBlindDataReachNoGradient) {
  using T = TypeParam;
  // With sinks a row that sees no key has a finite log-sum-exp.
  const Shape shape{1, 2, 1, 100, 150, 8, 5};
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const unsigned all = Changes<T>::all;
  struct Some {
    bool allows(Position at) const {
      return at.key % 3 == 1 && at.query > 60 && at.query % 10 != 0 && at.key <= at.query;
    }
  };
  Inputs<T> in(shape, 10);
  Loss<T> loss(shape, 10);
  Changes<T> score_mods(shape, 10);
  const auto expected = fused_changed(shape, in, loss, Some{}, score_mods, all);
  for (Index key = 0; key < shape.keys; ++key) {
    for (Index q = 0; q < shape.queries; ++q) {
      // By default query 99 stands on key 149.
      if (Some{}.allows({0, 0, q + 50, key})) continue;
      for (Index h = 0; h < 2; ++h) score_mods.bias_table(0, h, q, key) = nan;
    }
    if (key % 3 == 1) continue;
    for (Index d = 0; d < 8; ++d) in.keys(0, 0, key, d) = nan;
    for (Index d = 0; d < 5; ++d) in.values(0, 0, key, d) = nan;
  }
  for (Index q = 0; q < shape.queries; ++q) {
    if (q + 50 > 60 && (q + 50) % 10 != 0) continue;
    for (Index h = 0; h < 2; ++h) {
      for (Index d = 0; d < 8; ++d) in.queries(0, h, q, d) = nan;
      for (Index d = 0; d < 5; ++d) loss.grad_out(0, h, q, d) = nan;
    }
  }
  fused_changed(shape, in, loss, Some{}, score_mods, all)
      .with(expected, all, [&](const char* name, const auto& got, const auto& want) {
        EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)), 0) << name;
      });
}

TEST(ScoreGradientsSums, RowsOfTheBiasGradientAddUpToTheGradientOfTheLogSumExp) {
  const Shape shape{1, 1, 1, 80, 130, 8, 5};
  const Inputs<double> in(shape, 11);
  const Loss<double> loss(shape, 11);
  const Changes<double> score_mods(shape, 11);
  const auto result = fused_changed(shape, in, loss, Causal{}, score_mods, Changes<double>::bias);
  for (Index q = 0; q < shape.queries; ++q) {
    double sum = 0;
    for (Index key = 0; key < shape.keys; ++key) sum += result.bias(0, 0, q, key);
    EXPECT_NEAR(sum, loss.grad_lse(0, 0, q), 1e-13);
  }
}

}  // namespace
}  // namespace heed::test
