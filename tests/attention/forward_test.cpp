// SPDX-License-Identifier: MIT
#include <heed/attention/forward.hpp>

#include <heed/masks/intervals.hpp>

#include "support/own_masks.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

template <class T>
class Forward : public ::testing::Test {
 protected:
  RestoreSettings restore_;
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Forward, Scalars);

TYPED_TEST(Forward, EqualsTheReferenceOnEveryInstructionSet) {
  for_each_shape_and_mask(1700, [](const Shape& shape, const auto& mask, std::uint64_t seed) {
    expect_matches_reference<TypeParam>(shape, mask, seed, {}, Sets::all);
  });
}

TYPED_TEST(Forward, EveryHeadDimension) {
  for (Index dim = 1; dim <= 70; ++dim) {
    expect_matches_reference<TypeParam>({1, 1, 1, 19, 23, dim, dim}, Causal{}, 100 + dim);
  }
  for (const Index dim : {72, 104, 111, 255, 257}) {
    expect_matches_reference<TypeParam>({1, 1, 1, 19, 23, dim, dim}, Causal{}, 100 + dim);
  }
}

TYPED_TEST(Forward, LengthsAroundEveryTileEdge) {
  for (const Index length : {1,  2,  3,  5,  6,  7,   15,  16,  17,  31,   32,   33,  63,
                             64, 65, 95, 96, 97, 128, 191, 192, 193, 1535, 1536, 1537}) {
    expect_matches_reference<TypeParam>({1, 1, 1, 3, length, 5, 4}, Causal{}, 200 + length);
    expect_matches_reference<TypeParam>({1, 1, 1, std::min<Index>(length, 200), length, 5, 4},
                                        Irregular{}, 300 + length);
  }
}

TYPED_TEST(Forward, LargeScoresMoveTheMaximumLane) {
  // Scores rise along the keys, so that later blocks overflow the lazy limit in some lanes only.
  const Shape shape{1, 1, 1, 70, 500, 4, 3};
  Inputs<TypeParam> in(shape, 11);
  for (Index key = 0; key < shape.keys; ++key) {
    in.keys(0, 0, key, 0) = static_cast<TypeParam>(key);
  }
  for (Index query = 0; query < shape.queries; ++query) {
    in.queries(0, 0, query, 0) = static_cast<TypeParam>((query % 3) - 1);
  }
  const AttentionOptions<TypeParam> options{.scale = TypeParam{1}};
  for (const auto isa : supported_sets()) {
    simd::use(isa);
    const auto result = fused(shape, in, Causal{}, options);
    const auto expected = exact(shape, in, Causal{}, options);
    for (Index q = 0; q < shape.queries; ++q) {
      const auto bounds = row_bounds(shape, in, Causal{}, options, 0, 0, q,
                                     static_cast<double>(expected.lse(0, 0, q)));
      for (Index d = 0; d < shape.value_dim; ++d) {
        EXPECT_NEAR(static_cast<double>(result.out(0, 0, q, d)),
                    static_cast<double>(expected.out(0, 0, q, d)), bounds.out)
            << "query " << q << " isa " << simd::name(isa);
      }
    }
  }
}

TYPED_TEST(Forward, ScaleMayBeZeroNegativeOrSubnormal) {
  const Shape shape{1, 2, 1, 20, 30, 8, 6};
  for (const double scale : {0.0, -0.0, -0.5, 1e-40, 3.0, -40.0}) {
    expect_matches_reference<TypeParam>(shape, Causal{}, 7,
                                        {.scale = static_cast<TypeParam>(scale)});
  }
}

TYPED_TEST(Forward, PositionsAreAbsolute) {
  const Shape shape{2, 2, 1, 70, 150, 6, 5};
  for (const Index first : {-30, -1, 0, 1, 40, 80, 149, 1000}) {
    expect_matches_reference<TypeParam>(shape, Causal{}, 5, {.first_query = first});
  }
  const std::vector<Index> firsts = {3, 77};
  expect_matches_reference<TypeParam>(shape, Causal{}, 5, {.first_queries = firsts});
  // More queries than keys: by default the last ones line up, the first ones see nothing.
  expect_matches_reference<TypeParam>({1, 1, 1, 90, 20, 6, 5}, Causal{}, 6);
  expect_matches_reference<TypeParam>({1, 1, 1, 90, 20, 6, 5}, Causal{}, 6,
                                      {.first_query = top_left});
}

TYPED_TEST(Forward, EveryViewGivesTheBitsOfAContiguousCopy) {
  using T = TypeParam;
  const Shape shape{2, 4, 2, 37, 45, 11, 9};
  const Inputs<T> in(shape, 21);
  const auto plain = fused(shape, in, Causal{});
  const auto expect_same = [&](const TensorView<const T, 4>& q, const TensorView<const T, 4>& k,
                               const TensorView<const T, 4>& v, const char* what) {
    Tensor<T, 4> out(plain.out.extents());
    attention(q, k, v, Causal{}, out);
    EXPECT_TRUE(same_bits(out, plain.out)) << what;
  };
  // (batch, length, heads, dim) memory, as projections leave it.
  const auto q = Tensor<T, 4>::copy_of(view_of(in.queries).permute({0, 2, 1, 3}));
  const auto k = Tensor<T, 4>::copy_of(view_of(in.keys).permute({0, 2, 1, 3}));
  const auto v = Tensor<T, 4>::copy_of(view_of(in.values).permute({0, 2, 1, 3}));
  expect_same(q.view().permute({0, 2, 1, 3}), k.view().permute({0, 2, 1, 3}),
              v.view().permute({0, 2, 1, 3}), "heads inside");
  // Dim outermost: no axis that kernels like is contiguous.
  const auto qt = Tensor<T, 4>::copy_of(view_of(in.queries).permute({3, 0, 1, 2}));
  const auto kt = Tensor<T, 4>::copy_of(view_of(in.keys).permute({3, 0, 1, 2}));
  const auto vt = Tensor<T, 4>::copy_of(view_of(in.values).permute({3, 0, 1, 2}));
  expect_same(qt.view().permute({1, 2, 3, 0}), kt.view().permute({1, 2, 3, 0}),
              vt.view().permute({1, 2, 3, 0}), "dim outermost");
  // Back to front twice: negative strides.
  const auto qr = Tensor<T, 4>::copy_of(view_of(in.queries).reverse(2).reverse(3));
  const auto kr = Tensor<T, 4>::copy_of(view_of(in.keys).reverse(2).reverse(3));
  const auto vr = Tensor<T, 4>::copy_of(view_of(in.values).reverse(2).reverse(3));
  expect_same(qr.view().reverse(2).reverse(3), kr.view().reverse(2).reverse(3),
              vr.view().reverse(2).reverse(3), "reversed");
}

TYPED_TEST(Forward, OutputMayHaveAnyStrides) {
  using T = TypeParam;
  const Shape shape{1, 2, 2, 37, 45, 11, 21};
  const Inputs<T> in(shape, 22);
  const auto plain = fused(shape, in, Causal{});
  Tensor<T, 4> memory({21, 37, 2, 1});
  const auto out = memory.view().permute({3, 2, 1, 0}).reverse(2);
  attention(in.queries, in.keys, in.values, Causal{}, out);
  EXPECT_TRUE(same_bits(Tensor<T, 4>::copy_of(out), plain.out));
}

TYPED_TEST(Forward, BroadcastKeysAndValuesEqualTheirCopies) {
  using T = TypeParam;
  for (Index keys = 1; keys <= 130; keys += 3) {
    const Shape shape{3, 2, 2, 9, keys, 6, 5};
    const Inputs<T> in(shape, 23);
    const auto k = view_of(in.keys).slice(0, 0, 1).broadcast(0, 3);
    const auto v = view_of(in.values).slice(2, 0, 1).broadcast(2, keys);
    Tensor<T, 4> out({3, 2, 9, 5}), expected({3, 2, 9, 5});
    attention(in.queries, k, v, Causal{}, out);
    attention(in.queries, Tensor<T, 4>::copy_of(k), Tensor<T, 4>::copy_of(v), Causal{}, expected);
    EXPECT_TRUE(same_bits(out, expected)) << "keys " << keys;
  }
}

TYPED_TEST(Forward, RanksTwoAndThreeAreTheSameCall) {
  using T = TypeParam;
  const Shape shape{1, 2, 1, 10, 12, 6, 5};
  const Inputs<T> in(shape, 24);
  const auto whole = fused(shape, in, Causal{});
  const auto three = attention(view_of(in.queries).select(0, 0), view_of(in.keys).select(0, 0),
                               view_of(in.values).select(0, 0), Causal{});
  static_assert(std::is_same_v<decltype(three), const Tensor<T, 3>>);
  EXPECT_EQ(std::memcmp(three.data(), whole.out.data(), 2 * 10 * 5 * sizeof(T)), 0);
  Tensor<T, 1> lse({10});
  const auto two = attention(
      view_of(in.queries).select(0, 0).select(0, 1), view_of(in.keys).select(0, 0).select(0, 0),
      view_of(in.values).select(0, 0).select(0, 0), Causal{}, {.log_sum_exp = lse});
  EXPECT_EQ(std::memcmp(two.data(), whole.out.data() + 10 * 5, 10 * 5 * sizeof(T)), 0);
  EXPECT_EQ(std::memcmp(lse.data(), whole.lse.data() + 10, 10 * sizeof(T)), 0);
}

TYPED_TEST(Forward, EmptyExtents) {
  using T = TypeParam;
  for (int axis = 0; axis < 7; ++axis) {
    Shape shape{2, 2, 2, 3, 4, 5, 6};
    Index* extents[] = {&shape.batch, &shape.heads,    &shape.kv_heads, &shape.queries,
                        &shape.keys,  &shape.head_dim, &shape.value_dim};
    *extents[axis] = 0;
    if (axis == 1 || axis == 2) shape.heads = 0;
    const Inputs<T> in(shape, 25);
    const auto result = fused(shape, in, Full{});
    if (shape.keys == 0) {
      for (const T value : result.out) EXPECT_EQ(value, T{0});
      for (const T value : result.lse) EXPECT_EQ(value, -std::numeric_limits<T>::infinity());
    } else if (shape.head_dim == 0) {
      expect_matches_reference<T>(shape, Full{}, 25);
    }
  }
}

TEST(ForwardMemory, DoesNotGrowWithTheScores) {
  // 50,000 queries × 50,000 keys in float would be 10 GB of scores; the window keeps it quick.
  struct Window {
    bool allows(Position at) const { return at.key <= at.query && at.key > at.query - 4; }
    Coverage coverage(Tile tile) const {
      return tile.first_key > tile.last_query || tile.last_key <= tile.first_query - 4
                 ? Coverage::none
                 : Coverage::partial;
    }
  };
  const Shape shape{1, 1, 1, 50000, 50000, 1, 1};
  Inputs<float> in(shape, 1);
  std::fill(in.values.begin(), in.values.end(), 3.f);
  const auto result = fused(shape, in, Window{});
  for (const float value : result.out) ASSERT_FLOAT_EQ(value, 3.f);
}

}  // namespace
}  // namespace heed::test
