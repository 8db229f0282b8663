// SPDX-License-Identifier: MIT
// The fused backward pass under every mask policy and many pairs of them equals the reference.
#include <heed/attention/backward.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/own_masks.hpp"

namespace heed::test {
namespace {

constexpr Index length = 141;
const Shape shape{2, 2, 1, length, length, 12, 7};

TEST(BackwardMasks, EveryPolicyOnEveryInstructionSet) {
  for_each_mask(length, [](const auto& named) {
    SCOPED_TRACE(named.name);
    expect_gradients_match<float>(shape, Mask(named.mask), 60, {}, Sets::all);
    expect_gradients_match<double>(shape, Mask(named.mask), 60, {}, Sets::all);
  });
}

TEST(BackwardMasks, PairsAndNegations) {
  for_each_pair_of_masks(length, 61, 4,
                         [](const Mask& mask) { expect_gradients_match<float>(shape, mask, 62); });
}

TEST(BackwardMasks, AMaskAndItsDenseFormGiveTheSameBits) {
  const Inputs<float> in(shape, 63);
  const Loss<float> loss(shape, 63);
  for_each_mask(length, [&](const auto& named) {
    const auto direct = fused_gradients(shape, in, loss, named.mask);
    const auto written = fused_gradients(
        shape, in, loss, masks::dense(named.mask, {shape.batch, shape.heads, length, length}));
    EXPECT_TRUE(same_bits(direct, written)) << named.name;
  });
}

TEST(BackwardMasks, AMaskThatThrowsIsHeardOnEveryThreadCount) {
  struct Broken {
    bool allows(Position at) const {
      if (at.key == 700) throw std::runtime_error("broken mask");
      return true;
    }
  };
  const Shape wide{1, 1, 1, 100, 800, 8, 8};
  const Inputs<float> in(wide, 64);
  const Loss<float> loss(wide, 64);
  const auto forward = fused(wide, in, masks::Full{});
  Gradients<float> result(wide);
  const RestoreSettings restore;
  for (const Index threads : {1, 2, 5}) {
    set_thread_count(threads);
    EXPECT_THROW(
        attention_backward(in.queries, in.keys, in.values, Broken{}, forward.out, forward.lse,
                           loss.grad_out, result.queries, result.keys, result.values),
        std::runtime_error);
  }
}

/// With holes and rows that see nothing.
bool sees_holes(Index query, Index key) {
  return key <= query && (key * 5 + query) % 9 < 4 && key % 3 != 1;
}

TEST(BackwardMasks, APredicateIsAskedOnceForAllHeads) {
  const Shape many{2, 6, 3, 200, 200, 8, 8};
  const Inputs<float> in(many, 67);
  const Loss<float> loss(many, 67);
  const auto forward = fused(many, in, masks::predicate(sees_holes));
  Index asked = 0;
  const auto counted = masks::predicate([&asked](Index query, Index key) {
    ++asked;
    return sees_holes(query, key);
  });
  Gradients<float> result(many);
  const RestoreSettings restore;
  set_thread_count(1);
  attention_backward(in.queries, in.keys, in.values, counted, forward.out, forward.lse,
                     loss.grad_out, result.queries, result.keys, result.values);
  EXPECT_EQ(asked, many.batch * many.queries * many.keys);
}

TEST(BackwardMasks, SkippedTilesAreNotTouched) {
  const Shape wide{1, 1, 1, 64, 4096, 8, 8};
  Inputs<float> in(wide, 65);
  for (Index key = 0; key < 4000; ++key) {
    for (Index d = 0; d < 8; ++d) in.keys(0, 0, key, d) = in.values(0, 0, key, d) = NAN;
  }
  const auto result = fused_gradients(wide, in, Loss<float>(wide, 65), masks::last_n(30));
  for (const auto* tensor : {&result.queries, &result.keys, &result.values}) {
    for (const float value : *tensor) ASSERT_TRUE(std::isfinite(value));
  }
  EXPECT_EQ(result.keys(0, 0, 3999, 0), 0.f);
  EXPECT_NE(result.keys(0, 0, 4095, 0), 0.f);
}

}  // namespace
}  // namespace heed::test
