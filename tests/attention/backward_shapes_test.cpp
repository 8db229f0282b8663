// SPDX-License-Identifier: MIT
// attention_backward on shapes, masks and changes of scores drawn at random, and on every policy
// with every pair of changes.
#include <heed/masks.hpp>

#include "support/changed_gradients.hpp"
#include "support/own_masks.hpp"

namespace heed::test {
namespace {

/// A call drawn from a seed.
struct Draw {
  explicit Draw(std::uint64_t seed) : bits(seed) {
    const Index kv_heads = below(3) + 1;
    shape = {below(2) + 1, kv_heads * (below(3) + 1), kv_heads, length(), length(), dim(), dim()};
    if (shape.batch * shape.heads * shape.queries * shape.keys > 40000) {
      shape.batch = shape.heads = shape.kv_heads = 1;
    }
    which = below(3) == 0 ? 0 : below(2) == 0 ? 1u << below(7) : static_cast<unsigned>(below(128));
    bias = {shape.batch, shape.heads, shape.queries, shape.keys};
    for (Index& extent : bias) {
      if (below(3) == 0) extent = 1;
    }
  }
  Index below(Index count) {
    return static_cast<Index>(bits() % static_cast<std::uint64_t>(count));
  }
  Index length() {
    constexpr Index edges[] = {1,  5,  6,  7,  15, 16, 17,  47,  48, 49,
                               63, 64, 65, 95, 96, 97, 191, 192, 193};
    return below(4) == 0 ? below(220) + 1 : edges[below(19)];
  }
  Index dim() {
    constexpr Index edges[] = {1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 72, 104, 111, 255};
    return below(3) == 0 ? below(70) + 1 : edges[below(15)];
  }

  std::mt19937_64 bits;
  Shape shape;
  unsigned which = 0;
  Extents<4> bias;
};

template <class T>
void expect_drawn_calls_match(std::uint64_t seed, std::uint64_t count) {
  const RestoreSettings restore;
  const auto sets = supported_sets();
  for (const std::uint64_t end = seed + count; seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    simd::use(sets[static_cast<std::size_t>(draw.below(static_cast<Index>(sets.size())))]);
    set_thread_count(draw.below(4) + 1);
    const auto check = [&](const auto& mask) {
      if (draw.which == 0) return expect_gradients_match<T>(draw.shape, mask, seed);
      expect_changed_gradients<T>(draw.shape, mask, draw.which, draw.bias);
    };
    switch (draw.below(7)) {
      case 0:
        check(masks::Full{});
        break;
      case 1:
        check(masks::Causal{});
        break;
      case 2:
        check(Irregular{});
        break;
      case 3:
        check(EverySeventhKey{});
        break;
      case 4:
        check(masks::last_n(draw.below(40) + 1));
        break;
      case 5:
        check(predicate([](Index q, Index k) { return (q * 3 + k * 5) % 7 < 3; }));
        break;
      default:
        check(~masks::last_n(9));
    }
  }
}

TEST(BackwardShapes, DrawnCallsInDouble) { expect_drawn_calls_match<double>(1, 60); }
TEST(BackwardShapes, DrawnCallsInFloat) { expect_drawn_calls_match<float>(1001, 60); }

TEST(BackwardShapes, EveryPolicyWithEveryPairOfChanges) {
  constexpr Index length = 33;
  const Shape shape{2, 2, 1, length, length, 5, 7};
  for_each_mask(length, [&](const auto& named) {
    SCOPED_TRACE(named.name);
    for (unsigned a = 0; a < 7; ++a) {
      for (unsigned b = a; b < 7; ++b) {
        expect_changed_gradients<double>(shape, named.mask, 1u << a | 1u << b,
                                         {2, 2, length, length});
      }
    }
  });
}

/// Gradients of everything, into views of every kind.
TEST(BackwardShapes, EveryViewOfEveryGradient) {
  const Shape shape{2, 4, 2, 70, 110, 12, 9};
  constexpr unsigned which = Changes<double>::all;
  const Inputs<double> in(shape, 3);
  const Loss<double> loss(shape, 3);
  const Changes<double> score_mods(shape, 3);
  const auto expected = fused_changed(shape, in, loss, masks::Causal{}, score_mods, which);
  const auto forward = fused(shape, in, masks::Causal{}, score_mods.options(which));
  Tensor<double, 4> bias({110, 70, 4, 2}), queries({70, 2, 4, 24}), keys({110, 12, 2, 2}),
      values({2, 2, 110, 9});
  Tensor<double, 2> relative({19, 8});
  const auto bias_view = bias.view().permute({3, 2, 1, 0});
  const TensorView<double, 2> relative_view(relative.data() + 7, {4, 19}, {-2, 8});
  const auto query_view = queries.view().permute({1, 2, 0, 3}).slice(3, 0, 24, 2).reverse(3);
  const auto key_view = keys.view().permute({3, 2, 0, 1});
  const auto value_view = values.view().reverse(2);
  ChangedGradients<double> rest(shape, score_mods);
  auto wanted = rest.options(which, loss);
  wanted.grad_bias = bias_view;
  wanted.grad_relative_bias = relative_view;
  attention_backward(in.queries, in.keys, in.values, masks::Causal{}, forward.out, forward.lse,
                     loss.grad_out, query_view, key_view, value_view, score_mods.options(which),
                     wanted);
  const auto same = [](const auto& view, const Tensor<double, 4>& tensor) {
    return same_bits(Tensor<double, 4>::copy_of(view), tensor);
  };
  EXPECT_TRUE(same(bias_view, expected.bias));
  EXPECT_TRUE(same(query_view, expected.tensors.queries));
  EXPECT_TRUE(same(key_view, expected.tensors.keys));
  EXPECT_TRUE(same(value_view, expected.tensors.values));
  for (Index h = 0; h < 4; ++h) {
    for (Index i = 0; i < 19; ++i) EXPECT_EQ(relative_view(h, i), expected.relative(h, i));
  }
}

}  // namespace
}  // namespace heed::test
