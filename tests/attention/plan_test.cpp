// SPDX-License-Identifier: MIT
// What `plan` tells, and that no plan changes a bit.
#include <heed/attention/plan.hpp>

#include <string>
#include <vector>

#include <heed/attention/detail/forward_pass.hpp>
#include <heed/masks.hpp>

#include "support/bfloat16_cases.hpp"
#include "support/score_mods.hpp"

namespace heed::test {
namespace {

using Lanes = AttentionPlan::Lanes;
using Arithmetic = AttentionPlan::Arithmetic;
using Grouping = AttentionPlan::Grouping;

TEST(Plan, CountsTilesAsTheKernelVisitsThem) {
  const Tensor<float, 4> q({2, 3, 128, 4}), k({2, 3, 192, 4});
  const auto full = plan(q, k, masks::Full{});
  EXPECT_EQ(full.full, 2 * 3 * 2 * 2);
  EXPECT_EQ(full.tiles(), full.full);
  EXPECT_EQ(full.computed_share(), 1);
  // Queries stand at 64 … 191: the first block meets the diagonal in both key blocks, and so does
  // the second one, except that key block 0 lies wholly before it.
  const auto causal = plan(q, k, masks::Causal{});
  EXPECT_EQ(causal.partial, 6 * 3);
  EXPECT_EQ(causal.full, 6 * 1);
  const auto top = plan(q, k, masks::Causal{}, {.first_query = top_left});
  EXPECT_EQ(top.skipped, 6 * 1);
  const auto lambda = plan(q, k, [](Index, Index) { return false; });
  EXPECT_EQ(lambda.partial, lambda.tiles());
}

TEST(Plan, CountsBlocksOfQueriesAStepApart) {
  const Tensor<float, 2> x({130, 4});  // 65 queries of each parity: two blocks, of 64 and 1
  const auto strided = plan(x, x, masks::Strided{2});
  EXPECT_EQ(strided.row_step, 2);
  EXPECT_EQ(strided.partial, 2 * 2 * 2);
  EXPECT_EQ(strided.tiles(), strided.partial);
  // Even queries of the first block meet keys on both sides of 96, as does query 128 alone.
  const auto causal = plan(x, x, masks::Causal{} & masks::Strided{2}, {.first_query = top_left});
  EXPECT_EQ(causal.tiles(), 8);
  EXPECT_EQ(causal.skipped, 0);
  EXPECT_EQ(plan(x, x, masks::Causal{} & masks::Strided{5}).row_step, 1) << "26 queries a block";
}

TEST(Plan, GivesAFewLastQueriesLanesOfTheirOwn) {
  RestoreSettings restore;
  set_thread_count(1);
  const bool kernels = simd::decode_kernels<float>().attend != nullptr;  // header-only, SSE2: none
  const auto last = [](Index queries, Index keys, Index heads = 2) {
    const Tensor<float, 4> q({1, heads, queries, 16}), k({1, heads, keys, 16});
    return plan(q, k, masks::Causal{}).last_queries;
  };
  EXPECT_EQ(last(64, 128), 0);
  EXPECT_EQ(last(65, 128), kernels ? 1 : 0);
  EXPECT_EQ(last(84, 128), kernels ? 4 : 0);
  EXPECT_EQ(last(85, 128), 0) << "more are faster as a vector";
  EXPECT_EQ(last(65, 65000), 0) << "memory would be read twice";
  EXPECT_EQ(last(49, 90), 0) << "one kernel call takes short sequences whole";
  const Tensor<float, 4> q({1, 2, 65, 16}), k({1, 2, 128, 16});
  EXPECT_EQ(plan(q, k, masks::Causal{}, {.softcap = 5}).last_queries, 0);
  EXPECT_EQ(plan(q, k, masks::Causal{}).tasks, 2 + 2) << "two of blocks; a chunk for each head";
  const Tensor<float, 4> shared({1, 1, 128, 16});
  EXPECT_EQ(plan(q, shared, masks::Causal{}).tasks, kernels ? 2 + 1 : 4) << "one chunk for both";
}

TEST(Plan, RefusesWhatTheCallRefuses) {
  const Tensor<double, 2> q({5, 4});
  EXPECT_THROW(plan(q, Tensor<double, 2>({5, 3}), masks::Full{}), ShapeError);
  EXPECT_THROW(plan(q, q, Tensor<double, 2>({4, 4}), masks::Full{}), ShapeError);
  EXPECT_THROW(plan(q, q, masks::Full{}, {.softcap = -1}), InvalidArgument);
  EXPECT_EQ(plan(Tensor<float, 2>({0, 4}), Tensor<float, 2>({0, 4}), masks::Full{}).tiles(), 0);
}

TEST(Plan, TellsWhichKernelsRunAndOnHowManyThreads) {
  RestoreSettings restore;
  set_thread_count(3);
  const auto of = [](Index batch, Index heads, Index queries, Index keys, const auto& mask) {
    const Tensor<float, 4> q({batch, heads, queries, 64}), k({batch, 2, keys, 64});
    return plan(q, k, mask);
  };
  const auto prefill = of(1, 8, 1000, 1000, masks::Causal{});
  EXPECT_EQ(prefill.isa, simd::active());
  EXPECT_EQ(prefill.lanes, Lanes::queries);
  EXPECT_EQ(prefill.grouping, Grouping::each_head);
  EXPECT_EQ(prefill.tasks, 8 * 16);
  EXPECT_EQ(prefill.threads, 3);
  EXPECT_EQ(prefill.arithmetic, Arithmetic::scalar);
  EXPECT_EQ(of(1, 2, 40, 100, masks::Causal{}).threads, 1) << "too little to wake others for";

  const auto asked = of(1, 8, 1000, 1000, [](Index q, Index k) { return k <= q; });
  EXPECT_EQ(asked.grouping, Grouping::shared_mask);
  EXPECT_GT(asked.heads, 1);
  EXPECT_NE(std::string(asked.why), prefill.why);

  if (!simd::supported(simd::Isa::avx2)) return;  // with sse2 alone, header-only calls prefill
  const auto brief = of(20, 8, 20, 20, masks::Causal{});
  EXPECT_EQ(brief.grouping, Grouping::one_kernel_call);
  EXPECT_EQ(brief.heads, 8);
  EXPECT_EQ(brief.tasks, 20);

  const auto step = of(1, 8, 1, 9000, masks::Causal{});
  EXPECT_EQ(step.lanes, Lanes::keys);
  EXPECT_EQ(step.grouping, Grouping::shared_keys);
  EXPECT_EQ(step.heads, 4);
  EXPECT_EQ(step.tasks, 2 * 6);
  EXPECT_EQ(step.threads, 3);
}

TEST(Plan, TellsOfCachesWhatIsKept) {
  KeyValueCache<float> cache(
      {.batch = 1, .kv_heads = 1, .head_dim = 4, .value_dim = 4, .page_size = 32, .pages = 20});
  const Tensor<float, 4> some({1, 1, 500, 4}), q({1, 1, 100, 4});
  cache.append(some, some);
  EXPECT_EQ(plan(q, cache, masks::Full{}).full, 2 * 6);
  cache.forget(0, 200);
  const auto later = plan(q, cache, masks::Full{});
  EXPECT_EQ(later.skipped, 2 * 2);
  EXPECT_EQ(later.partial, 0);
}

TEST(Plan, TellsHowBfloat16IsMultipliedAndWhy) {
  RestoreSettings restore;
  const Tensor<bfloat16, 4> x({1, 2, 70, 8});
  for (const simd::Isa isa : bfloat16_sets()) {
    simd::use(isa);
    const auto plain = plan(x, x, x, masks::Causal{});
    EXPECT_EQ(plain.arithmetic, isa == simd::Isa::avx512_bf16 ? Arithmetic::bfloat16_pairs
                                : isa >= simd::Isa::amx       ? Arithmetic::bfloat16_tiles
                                                              : Arithmetic::scalar);
    EXPECT_EQ(plan(x, x, masks::Causal{}, {.softcap = 5}).arithmetic, Arithmetic::scalar);
    EXPECT_EQ(plan(x, x, masks::Causal{}, {.scale = 0}).arithmetic, Arithmetic::scalar);
    EXPECT_FALSE(std::string(plain.why_arithmetic).empty());
  }
}

/// Every plan that fits a call: lanes, grouping, heads, threads, and how many of the last queries
/// have other lanes.
template <class T>
std::vector<AttentionPlan> plans_of(const heed::detail::AttentionArgs<T>& args,
                                    const MaskRef& mask) {
  const AttentionPlan own = heed::detail::plan_of(args, mask);
  std::vector<AttentionPlan> plans;
  const auto add = [&](Lanes lanes, Grouping grouping, Index most, Index row_step = 1,
                       Index last_queries = 0) {
    for (Index heads = 1; heads <= (mask.depends_on_head() ? std::min<Index>(1, most) : most);
         ++heads) {
      for (const Index threads : {1, 3}) {
        AttentionPlan plan = own;
        plan.lanes = lanes;
        plan.grouping = grouping;
        plan.heads = heads;
        plan.threads = threads;
        plan.row_step = row_step;
        plan.last_queries = last_queries;
        plan.tasks = 0;  // to be counted
        plans.push_back(plan);
      }
    }
  };
  add(Lanes::queries, Grouping::shared_mask, args.heads());
  for (const Index step : {2, 3, 7}) {
    if (mask.knows_steps() && !args.score_mods.any()) {
      add(Lanes::queries, Grouping::shared_mask, args.heads(), step);
    }
  }
  if (simd::decode_kernels<T>().attend != nullptr) {
    const Index sharing = args.heads() / args.keys.extent(1);
    add(Lanes::keys, Grouping::shared_keys, std::min(sharing, 64 / args.query_count()));
    for (const Index last : {Index{1}, Index{4}, args.query_count() / 2, args.query_count() - 1}) {
      if (last > 0 && last < args.query_count() && last * sharing <= 64) {
        add(Lanes::queries, Grouping::shared_mask, args.heads(), 1, last);
      }
    }
  }
  if (heed::detail::ShortForward<T>::fits(args)) {
    add(Lanes::queries, Grouping::one_kernel_call, args.heads());
  }
  return plans;
}

/// Expects every plan of a call to give the bits of its own. X: what tensors are stored as.
template <class X, class T, class M>
void expect_plans_agree(const Inputs<T>& in, const M& mask, AttentionOptions<T> options = {}) {
  const auto stored = [](const Tensor<T, 4>& tensor) {
    Tensor<X, 4> copy(tensor.extents());
    for (Index i = 0; i < copy.size(); ++i) copy.data()[i] = X(tensor.data()[i]);
    return copy;
  };
  const Tensor<X, 4> q = stored(in.queries), k = stored(in.keys), v = stored(in.values);
  const Extents<4> extents = heed::detail::with_width(q.extents(), v.extent(3));
  const MaskRef erased(mask);
  const auto run = [&](const AttentionPlan* plan, Tensor<X, 4>& out, Tensor<T, 3>& lse) {
    options.log_sum_exp = lse;
    const auto args =
        heed::detail::checked_args<T>(q.view(), k.view(), v.view(), out.view(), options);
    if (plan == nullptr) {
      heed::detail::run_attention(args, erased);
    } else {
      heed::detail::run_planned(args, erased, *plan);
    }
    return plans_of(args, erased);
  };
  Tensor<X, 4> expected(extents);
  Tensor<T, 3> expected_lse({extents[0], extents[1], extents[2]});
  const auto plans = run(nullptr, expected, expected_lse);
  for (const AttentionPlan& plan : plans) {
    Tensor<X, 4> out(extents);
    Tensor<T, 3> lse(expected_lse.extents());
    run(&plan, out, lse);
    const auto told = [&] {
      return std::string("lanes ") + (plan.lanes == Lanes::keys ? "keys" : "queries") +
             ", grouping " + std::to_string(static_cast<int>(plan.grouping)) + ", heads " +
             std::to_string(plan.heads) + ", threads " + std::to_string(plan.threads) +
             ", row step " + std::to_string(plan.row_step) + ", last queries " +
             std::to_string(plan.last_queries);
    };
    EXPECT_TRUE(same_bits(out, expected)) << told();
    EXPECT_TRUE(same_bits(lse, expected_lse)) << told();
  }
}

template <class X, class T>
void expect_plans_agree_under_masks(const Inputs<T>& in, const AttentionOptions<T>& options = {}) {
  expect_plans_agree<X>(in, masks::Full{}, options);
  expect_plans_agree<X>(in, masks::Causal{}, options);
  expect_plans_agree<X>(in, masks::SlidingWindow{.left = 30, .right = 2}, options);
  expect_plans_agree<X>(in, masks::Causal{} & masks::EveryNthKey{5}, options);
  expect_plans_agree<X>(in, masks::Causal{} & masks::Strided{2}, options);
  expect_plans_agree<X>(in, Mask(masks::Causal{}) & Mask(masks::Strided{3}), options);
  const auto odd = [](Index, Index key) { return key % 2 == 1; };
  expect_plans_agree<X>(in, masks::Strided{4} & odd & masks::last_n(40), options);
  expect_plans_agree<X>(in, masks::predicate([](Index q, Index k) { return (q + k) % 3 != 0; }),
                        options);
  expect_plans_agree<X>(in, ByHead{}, options);
}

class EveryPlan : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override {
    simd::use(GetParam());
    set_thread_count(3);
  }
  RestoreSettings restore_;
};

TEST_P(EveryPlan, GivesTheSameBits) {
  for (const Shape& shape : {Shape{2, 6, 3, 5, 90, 24, 17}, Shape{1, 4, 2, 1, 1700, 8, 9},
                             Shape{1, 4, 1, 16, 200, 33, 32}, Shape{1, 2, 2, 70, 130, 16, 16}}) {
    SCOPED_TRACE(shape.text());
    expect_plans_agree_under_masks<float>(Inputs<float>(shape, 1301));
    expect_plans_agree_under_masks<double>(Inputs<double>(shape, 1302));
    expect_plans_agree_under_masks<bfloat16>(Inputs<float>(shape, 1303));
  }
}

TEST_P(EveryPlan, KeepsLastQueriesAtTheirPositions) {
  const Inputs<float> in(Shape{2, 4, 2, 66, 130, 16, 16}, 1305);
  const std::vector<Index> counts = {100, 130}, firsts = {3, 40};
  AttentionOptions<float> options;
  options.key_counts = counts;
  expect_plans_agree_under_masks<float>(in, options);
  options.first_queries = firsts;
  expect_plans_agree_under_masks<float>(in, options);
  expect_plans_agree_under_masks<bfloat16>(in, options);
}

TEST_P(EveryPlan, GivesTheSameBitsWhereScoresChange) {
  const Shape shape{2, 4, 2, 7, 150, 20, 12};
  const Inputs<float> in(shape, 1304);
  Tensor<float, 4> bias({1, 4, 7, 150});
  for (Index i = 0; i < bias.size(); ++i) bias.data()[i] = static_cast<float>(i % 17) / 9 - 1;
  const std::vector<float> sinks = {0.5f, -1, 2, 0};
  AttentionOptions<float> options;
  options.softcap = 3;
  options.bias = bias;
  options.alibi_slopes = alibi_slopes<float>(4);
  options.sinks = sinks;
  options.dropout = {.probability = 0.2f, .seed = 5};
  expect_plans_agree_under_masks<float>(in, options);
  options.score_function = [](float score, Position at) {
    return score - 0.01f * static_cast<float>(at.key % 7);
  };
  expect_plans_agree_under_masks<float>(in, options);
  expect_plans_agree_under_masks<bfloat16>(in, options);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, EveryPlan, ::testing::ValuesIn(bfloat16_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
