// SPDX-License-Identifier: MIT
// The fused kernel under every mask policy and many pairs of them equals the reference.
#include <heed/attention/forward.hpp>
#include <heed/attention/plan.hpp>
#include <heed/masks.hpp>

#include "support/own_masks.hpp"
#include "support/sanitizers.hpp"

namespace heed::test {
namespace {

constexpr Index length = 141;
const Shape shape{2, 2, 1, length, length, 12, 7};

TEST(FusedMasks, EveryPolicyOnEveryInstructionSet) {
  const Sets sets = threads_sanitized ? Sets::active : Sets::all;
  for_each_mask(length, [&](const auto& named) {
    SCOPED_TRACE(named.name);
    expect_matches_reference<float>(shape, Mask(named.mask), 50, {}, sets);
    expect_matches_reference<double>(shape, Mask(named.mask), 50, {}, sets);
  });
}

TEST(FusedMasks, PairsAndNegations) {
  for_each_pair_of_masks(length, 51, threads_sanitized ? 1 : 4, [](const Mask& mask) {
    expect_matches_reference<float>(shape, mask, 52);
  });
}

TEST(FusedMasks, AMaskAndItsDenseFormGiveTheSameBits) {
  const Inputs<float> in(shape, 53);
  for_each_mask(length, [&](const auto& named) {
    const auto direct = fused(shape, in, named.mask);
    const auto written =
        fused(shape, in, masks::dense(named.mask, {shape.batch, shape.heads, length, length}));
    EXPECT_TRUE(same_bits(direct.out, written.out)) << named.name;
    EXPECT_TRUE(same_bits(direct.lse, written.lse)) << named.name;
  });
}

TEST(FusedMasks, ALambdaIsAMaskWhereverOneIsTaken) {
  const std::vector<Index> turn = {0, 0, 1, 1, 1, 0, 2, 2};  // captured: such a lambda has no =
  const auto same_turn = [turn](Index query, Index key) {
    return turn[static_cast<std::size_t>(query)] == turn[static_cast<std::size_t>(key)];
  };
  const auto mask = predicate(same_turn);
  const Shape eight{1, 2, 2, 8, 8, 4, 4};
  const Inputs<float> in(eight, 57);
  const auto wanted = fused(eight, in, mask);
  EXPECT_TRUE(same_bits(fused(eight, in, same_turn).out, wanted.out));
  EXPECT_TRUE(same_bits(fused(eight, in, Mask(same_turn)).out, wanted.out));
  EXPECT_TRUE(same_bits(fused(eight, in, masks::Causal{} & same_turn).out,
                        fused(eight, in, masks::Causal{} & mask).out));
  EXPECT_TRUE(same_bits(fused(eight, in, ~(same_turn | masks::Causal{})).out,
                        fused(eight, in, ~(mask | masks::Causal{})).out));
  const auto of_head = [](Position at) { return at.head == 0 || at.key == at.query; };
  EXPECT_TRUE(same_bits(fused(eight, in, of_head).out, fused(eight, in, predicate(of_head)).out));
  EXPECT_EQ(describe(same_turn, 8, 8), describe(mask, 8, 8));
}

TEST(FusedMasks, AnswersSharedByHeadsChangeNoBit) {
  const Shape many{2, 6, 3, 300, 300, 12, 7};
  const Inputs<float> in(many, 56);
  const auto holes = [](Index query, Index key) {
    return key <= query && (key * 5 + query) % 9 < 4 && key % 3 != 1;
  };
  struct EachHead {
    bool allows(Position at) const { return ask(at.query, at.key); }
    bool (*ask)(Index, Index);
  };
  const EachHead each{+holes};
  const auto together = predicate(holes);
  ASSERT_TRUE(MaskRef(together).shares_lane_words());
  ASSERT_FALSE(MaskRef(each).shares_lane_words());
  const RestoreSettings restore;
  for (const Index threads : {1, 2, 5}) {
    set_thread_count(threads);
    EXPECT_TRUE(same_bits(fused(many, in, together).out, fused(many, in, each).out)) << threads;
  }
}

TEST(FusedMasks, SkippedTilesAreNotTouched) {
  // Keys that no query sees point to memory that must not be read: a view over a null page would
  // fault, a NaN that is multiplied would show.
  const Shape wide{1, 1, 1, 64, 4096, 8, 8};
  Inputs<float> in(wide, 54);
  for (Index key = 0; key < 4000; ++key) {
    for (Index d = 0; d < 8; ++d) in.keys(0, 0, key, d) = in.values(0, 0, key, d) = NAN;
  }
  const auto result = fused(wide, in, masks::last_n(30));
  for (const float value : result.out) ASSERT_TRUE(std::isfinite(value));
  const auto counted = plan(in.queries, in.keys, masks::last_n(30));
  EXPECT_EQ(counted.tiles(), (4096 + 95) / 96);
  EXPECT_GE(counted.skipped, 41);
}

TEST(FusedMasks, MasksThatDoNotFitAreRefused) {
  const Inputs<float> in(shape, 55);
  Tensor<float, 4> out({2, 2, length, 7});
  std::fill(out.begin(), out.end(), -7.f);
  const auto refuse = [&](const auto& mask, const char* what) {
    try {
      attention(in.queries, in.keys, in.values, mask, out);
      ADD_FAILURE() << "accepted: " << what;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  refuse(masks::SlidingWindow{.left = -2}, "SlidingWindow: left -2");
  refuse(masks::Padding({3}), "Padding: 1 lengths for a batch of 2");
  refuse(masks::Padding({3, length + 1}), "Padding: item 1");
  refuse(masks::Causal{} & masks::Padding({3, 4, 5}), "Padding: 3 lengths");
  refuse(~masks::ValidKeys(2, 5, [](Index, Index) { return true; }), "ValidKeys");
  refuse(masks::PerHead({masks::Causal{}}), "PerHead: 1 masks for 2 heads");
  refuse(masks::Prefix(std::vector<Index>{1}), "Prefix: 1 lengths");
  refuse(masks::Strided{0}, "Strided: step 0");
  refuse(masks::Chunked{0}, "Chunked: size 0");
  refuse(Mask(masks::dense(masks::Causal{}, {2, 2, length, length - 1})), "Dense: mask of");
  const auto all = [](Index, Index) { return true; };
  refuse(masks::BlockSparse(1, 2, length - 1, all), "BlockSparse: describes 140 queries");
  EXPECT_THROW(attention(in.queries, in.keys, in.values, masks::BlockSparse(1, 2, length, all), out,
                         {.first_query = 5}),
               ShapeError);
  refuse(masks::Groups(std::vector<Index>(length - 1)), "Groups: describes 140 tokens");
  refuse(masks::Causal{} & ~masks::Segments({0, 9}), "Segments: describes 9 tokens");
  refuse(masks::PerHead({masks::Causal{}, masks::Prefix(length + 1)}), "Prefix: names 142 tokens");
  for (const float value : out) ASSERT_EQ(value, -7.f) << "the output was touched";
}

}  // namespace
}  // namespace heed::test
