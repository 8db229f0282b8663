// SPDX-License-Identifier: MIT
#include <heed/attention/backward.hpp>

#include <heed/masks/combine.hpp>
#include <heed/masks/intervals.hpp>

#include "support/backward_cases.hpp"
#include "support/own_masks.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

template <class T>
class Backward : public ::testing::Test {
 protected:
  RestoreSettings restore_;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Backward, Scalars);

TYPED_TEST(Backward, EqualsTheReferenceOnEveryInstructionSet) {
  for_each_shape_and_mask(900, [](const Shape& shape, const auto& mask, std::uint64_t seed) {
    expect_gradients_match<TypeParam>(shape, mask, seed, {}, Sets::all);
  });
}

TYPED_TEST(Backward, EveryHeadDimension) {
  for (Index dim = 1; dim <= 70; ++dim) {
    expect_gradients_match<TypeParam>({1, 1, 1, 19, 23, dim, dim}, Causal{}, 100 + dim);
  }
  for (const Index dim : {72, 104, 111, 128, 255, 257}) {
    expect_gradients_match<TypeParam>({1, 1, 1, 19, 23, dim, dim}, Causal{}, 100 + dim);
  }
}

TYPED_TEST(Backward, LengthsAroundEveryTileEdge) {
  for (const Index length : {1,  2,  3,  5,  6,  7,  15,  16,  17,  31,  32,  33, 47,
                             63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193}) {
    expect_gradients_match<TypeParam>({1, 1, 1, 3, length, 5, 4}, Causal{}, 200 + length);
    expect_gradients_match<TypeParam>({1, 1, 1, length, length, 5, 4}, Causal{}, 250 + length);
    expect_gradients_match<TypeParam>({1, 1, 1, length, 33, 5, 4}, Irregular{}, 300 + length);
    expect_gradients_match<TypeParam>({1, 1, 1, length, length, 5, 4}, Irregular{}, 350 + length);
  }
}

TYPED_TEST(Backward, ScaleMayBeZeroNegativeOrSubnormal) {
  const Shape shape{1, 2, 1, 20, 30, 8, 6};
  for (const double scale : {0.0, -0.5, 1e-40, 3.0, -40.0}) {
    expect_gradients_match<TypeParam>(shape, Causal{}, 7, {.scale = static_cast<TypeParam>(scale)});
  }
}

TYPED_TEST(Backward, PositionsAreAbsolute) {
  const Shape shape{2, 2, 1, 70, 150, 6, 5};
  for (const Index first : {-30, -1, 0, 1, 40, 80, 149, 1000}) {
    expect_gradients_match<TypeParam>(shape, Causal{}, 5, {.first_query = first});
  }
  const std::vector<Index> firsts = {3, 77};
  expect_gradients_match<TypeParam>(shape, Causal{}, 5, {.first_queries = firsts});
  // More queries than keys: by default the last ones line up, the first ones see nothing.
  expect_gradients_match<TypeParam>({1, 1, 1, 90, 20, 6, 5}, Causal{}, 6);
}

TYPED_TEST(Backward, KeysBeyondAnItemsCountAreNotThere) {
  using T = TypeParam;
  const Shape shape{3, 4, 2, 70, 250, 8, 6};
  const Inputs<T> in(shape, 9);
  const Loss<T> loss(shape, 9);
  const std::vector<Index> counts = {250, 0, 101}, firsts = {180, -70, 31};
  const auto expected = fused_gradients(shape, in, loss, Causal{} & masks::Padding(counts),
                                        AttentionOptions<T>{.first_queries = firsts});
  Inputs<T> poisoned = in;
  for (const Index item : {1, 2}) {
    for (Index key = counts[static_cast<std::size_t>(item)]; key < 250; ++key) {
      poisoned.keys(item, 0, key, 3) = poisoned.values(item, 1, key, 2) = T{NAN};
    }
  }
  const AttentionOptions<T> options{.key_counts = counts};
  EXPECT_TRUE(same_bits(fused_gradients(shape, poisoned, loss, Causal{}, options), expected));
  const auto forward = fused(shape, poisoned, Causal{}, options);
  Gradients<T> reference(shape);
  reference_backward(poisoned.queries, poisoned.keys, poisoned.values, Causal{}, forward.out,
                     forward.lse, loss.grad_out, reference.queries, reference.keys,
                     reference.values, options, {.grad_log_sum_exp = loss.grad_lse});
  EXPECT_LE(relative_error(expected.queries, reference.queries), 1e-5);
  EXPECT_LE(relative_error(expected.keys, reference.keys), 1e-5);
  EXPECT_LE(relative_error(expected.values, reference.values), 1e-5);
}

TYPED_TEST(Backward, TheGradientOfTheLogSumExpIsOptional) {
  using T = TypeParam;
  const Shape shape{2, 4, 2, 70, 110, 12, 9};
  const Inputs<T> in(shape, 8);
  Loss<T> loss(shape, 8);
  std::fill(loss.grad_lse.begin(), loss.grad_lse.end(), T{0});
  const auto expected = fused_gradients(shape, in, loss, Causal{});
  const auto forward = fused(shape, in, Causal{});
  Gradients<T> result(shape);
  attention_backward(in.queries, in.keys, in.values, Causal{}, forward.out, forward.lse,
                     loss.grad_out, result.queries, result.keys, result.values);
  EXPECT_TRUE(same_bits(result, expected));
}

TYPED_TEST(Backward, EveryViewGivesTheBitsOfAContiguousCopy) {
  using T = TypeParam;
  const Shape shape{2, 4, 2, 70, 110, 19, 9};
  const Inputs<T> in(shape, 21);
  const Loss<T> loss(shape, 21);
  const auto forward = fused(shape, in, Causal{});
  const auto plain = fused_gradients(shape, in, loss, Causal{});
  using View = TensorView<const T, 4>;
  const auto check = [&](const char* what, auto there, auto back) {
    SCOPED_TRACE(what);
    const auto copied = [&](const View& view) { return Tensor<T, 4>::copy_of(there(view)); };
    const auto q = copied(in.queries.view()), k = copied(in.keys.view()),
               v = copied(in.values.view()), out = copied(forward.out.view()),
               grad = copied(loss.grad_out.view());
    Tensor<T, 4> gq(q.extents()), gk(k.extents()), gv(v.extents());
    attention_backward(back(q.view()), back(k.view()), back(v.view()), Causal{}, back(out.view()),
                       forward.lse, back(grad.view()), back(gq.view()), back(gk.view()),
                       back(gv.view()), {}, {.grad_log_sum_exp = loss.grad_lse});
    EXPECT_TRUE(same_bits(Tensor<T, 4>::copy_of(back(gq.view())), plain.queries));
    EXPECT_TRUE(same_bits(Tensor<T, 4>::copy_of(back(gk.view())), plain.keys));
    EXPECT_TRUE(same_bits(Tensor<T, 4>::copy_of(back(gv.view())), plain.values));
  };
  check(
      "heads inside",
      [](const auto& view) {
        return view.permute({0, 2, 1, 3});
      },
      [](const auto& view) {
        return view.permute({0, 2, 1, 3});
      });
  check(
      "dim outermost",
      [](const auto& view) {
        return view.permute({3, 0, 1, 2});
      },
      [](const auto& view) {
        return view.permute({1, 2, 3, 0});
      });
  check(
      "reversed", [](const auto& view) { return view.reverse(2).reverse(3); },
      [](const auto& view) { return view.reverse(2).reverse(3); });
}

TYPED_TEST(Backward, BroadcastInputsEqualTheirCopies) {
  using T = TypeParam;
  const Shape shape{3, 2, 2, 70, 130, 6, 5};
  const Inputs<T> in(shape, 23);
  const auto k = view_of(in.keys).slice(0, 0, 1).broadcast(0, 3);
  const auto v = view_of(in.values).slice(2, 0, 1).broadcast(2, 130);
  Tensor<T, 4> out({3, 2, 70, 5});
  Tensor<T, 3> lse({3, 2, 70});
  attention(in.queries, k, v, Causal{}, out, {.log_sum_exp = lse});
  // As the gradient of a sum comes: one number everywhere.
  Tensor<T, 4> one({1, 1, 1, 1});
  *one.data() = T{1};
  const auto grad = one.view().broadcast(0, 3).broadcast(1, 2).broadcast(2, 70).broadcast(3, 5);
  Gradients<T> result(shape), expected(shape);
  attention_backward(in.queries, k, v, Causal{}, out, lse, grad, result.queries, result.keys,
                     result.values);
  attention_backward(in.queries, Tensor<T, 4>::copy_of(k), Tensor<T, 4>::copy_of(v), Causal{}, out,
                     lse, Tensor<T, 4>::copy_of(grad), expected.queries, expected.keys,
                     expected.values);
  EXPECT_TRUE(same_bits(result, expected));
}

TYPED_TEST(Backward, RanksTwoAndThreeAreTheSameCall) {
  using T = TypeParam;
  const Shape shape{1, 2, 1, 10, 12, 6, 5};
  const Inputs<T> in(shape, 24);
  const Loss<T> loss(shape, 24);
  const auto forward = fused(shape, in, Causal{});
  const auto whole = fused_gradients(shape, in, loss, Causal{});
  const auto first = [](auto& tensor) { return tensor.view().select(0, 0); };
  Gradients<T> three(shape);
  attention_backward(first(in.queries), first(in.keys), first(in.values), Causal{},
                     first(forward.out), first(forward.lse), first(loss.grad_out),
                     first(three.queries), first(three.keys), first(three.values), {},
                     {.grad_log_sum_exp = first(loss.grad_lse)});
  EXPECT_TRUE(same_bits(three, whole));
  Tensor<T, 2> gq({10, 6}), gk({12, 6}), gv({12, 5});
  attention_backward(first(in.queries).select(0, 1), first(in.keys).select(0, 0),
                     first(in.values).select(0, 0), Causal{}, first(forward.out).select(0, 1),
                     first(forward.lse).select(0, 1), first(loss.grad_out).select(0, 1), gq, gk, gv,
                     {}, {.grad_log_sum_exp = first(loss.grad_lse).select(0, 1)});
  EXPECT_EQ(std::memcmp(gq.data(), whole.queries.data() + 10 * 6, 10 * 6 * sizeof(T)), 0);
}

TYPED_TEST(Backward, EmptyExtents) {
  using T = TypeParam;
  // So large that the pass of a head prefetches the next one.
  const Shape large{1, 300, 300, 3, 65, 8, 8};
  for (int each = 0; each < 14; ++each) {
    Shape shape = each < 7 ? Shape{2, 2, 2, 3, 4, 5, 6} : large;
    const int axis = each % 7;
    Index* extents[] = {&shape.batch, &shape.heads,    &shape.kv_heads, &shape.queries,
                        &shape.keys,  &shape.head_dim, &shape.value_dim};
    *extents[axis] = 0;
    if (axis == 2) shape.heads = 0;
    const Inputs<T> in(shape, 25);
    const auto result = fused_gradients(shape, in, Loss<T>(shape, 25), Full{});
    if (axis >= 5) {
      expect_gradients_match<T>(shape, Full{}, 25);
      continue;
    }
    // Nothing meets anything: what gradients there are, are 0.
    for (const auto* tensor : {&result.queries, &result.keys, &result.values}) {
      for (const T value : *tensor) EXPECT_EQ(value, T{0}) << axis;
    }
  }
}

TYPED_TEST(Backward, SplitHeadsAndWholeHeadsGiveTheSameBits) {
  using T = TypeParam;
  // 5 chunks of keys; as many threads as make every way of cutting the call up happen.
  for (const Shape& shape : {Shape{1, 1, 1, 200, 900, 16, 12}, Shape{1, 4, 1, 130, 500, 7, 20},
                             Shape{1, 6, 3, 150, 400, 16, 16}, Shape{3, 3, 3, 90, 300, 16, 16}}) {
    const Inputs<T> in(shape, 26);
    const Loss<T> loss(shape, 26);
    for (const auto isa : supported_sets()) {
      simd::use(isa);
      set_thread_count(1);
      const auto alone = fused_gradients(shape, in, loss, Irregular{});
      for (const Index threads : {2, 3, 7, 8}) {
        set_thread_count(threads);
        EXPECT_TRUE(same_bits(fused_gradients(shape, in, loss, Irregular{}), alone))
            << shape.text() << " threads " << threads << " isa " << simd::name(isa);
      }
    }
  }
}

TEST(BackwardMemory, DoesNotGrowWithTheScores) {
  // 40,000 queries × 40,000 keys in float would be 6 GB of scores; the window keeps it quick.
  struct Window {
    bool allows(Position at) const { return at.key <= at.query && at.key > at.query - 4; }
    Coverage coverage(Tile tile) const {
      return tile.first_key > tile.last_query || tile.last_key <= tile.first_query - 4
                 ? Coverage::none
                 : Coverage::partial;
    }
  };
  const Shape shape{1, 1, 1, 40000, 40000, 1, 1};
  Inputs<float> in(shape, 1);
  const auto forward = fused(shape, in, Window{});
  Tensor<float, 4> ones(forward.out.extents());
  std::fill(ones.begin(), ones.end(), 1.f);
  Gradients<float> result(shape);
  attention_backward(in.queries, in.keys, in.values, Window{}, forward.out, forward.lse, ones,
                     result.queries, result.keys, result.values);
  double sum = 0;
  for (const float value : result.values) sum += static_cast<double>(value);
  EXPECT_NEAR(sum, 40000, 0.01);
}

}  // namespace
}  // namespace heed::test
