// SPDX-License-Identifier: MIT
// Gradients of short sequences, a head in one call, beside the pass over chunks of keys.
#include <heed/attention/detail/backward_pass.hpp>

#include <heed/attention/backward.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;

class ShortBackward : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

/// Inputs, outputs and what came back for them.
template <class T>
struct Step {
  Step(const Shape& shape, std::uint64_t seed, T range = 1) : in(shape, seed, range), made(shape) {
    std::mt19937_64 bits(seed + 1);
    grad = random_tensor<T, 4>(made.out.extents(), bits);
  }
  template <class M>
  void run_forward(const Shape& shape, const M& mask, const AttentionOptions<T>& options) {
    made = fused(shape, in, mask, options);
  }
  Inputs<T> in;
  Result<T> made;
  Tensor<T, 4> grad;
};

template <class T>
struct Gradients {
  explicit Gradients(const Inputs<T>& in)
      : queries(in.queries.extents()), keys(in.keys.extents()), values(in.values.extents()) {
    for (auto* tensor : {&queries, &keys, &values}) {
      std::fill(tensor->begin(), tensor->end(), std::numeric_limits<T>::quiet_NaN());
    }
  }
  Tensor<T, 4> queries, keys, values;
};

template <class T>
bool same_but_for_nans(Tensor<T, 4> a, Tensor<T, 4> b) {
  for (auto* tensor : {&a, &b}) {
    for (T& value : *tensor) {
      if (value != value) value = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return same_bits(a, b);
}

/// The gradients, and that they have the bits of gradients whose columns lie apart, which the pass
/// over chunks of keys computes.
template <class T, class M>
Gradients<T> expect_the_bits_of_chunks(const Step<T>& step, const M& mask,
                                       const AttentionOptions<T>& options = {}) {
  const auto turned = [](const Tensor<T, 4>& x) {
    return Tensor<T, 4>({x.extent(0), x.extent(1), x.extent(3), x.extent(2)});
  };
  const auto back = [](Tensor<T, 4>& x) { return x.view().permute({0, 1, 3, 2}); };
  Gradients<T> to(step.in);
  auto queries = turned(to.queries), keys = turned(to.keys), values = turned(to.values);
  const auto& [in, made, grad] = step;
  attention_backward(in.queries, in.keys, in.values, mask, made.out, made.lse, grad, to.queries,
                     to.keys, to.values, options);
  attention_backward(in.queries, in.keys, in.values, mask, made.out, made.lse, grad, back(queries),
                     back(keys), back(values), options);
  EXPECT_TRUE(same_but_for_nans(to.queries, Tensor<T, 4>::copy_of(back(queries))));
  EXPECT_TRUE(same_but_for_nans(to.keys, Tensor<T, 4>::copy_of(back(keys))));
  EXPECT_TRUE(same_but_for_nans(to.values, Tensor<T, 4>::copy_of(back(values))));
  return to;
}

template <class T>
void expect_the_bits_under_masks(const Shape& shape, std::uint64_t seed, T range) {
  SCOPED_TRACE(shape.text() + " seed " + std::to_string(seed));
  Step<T> step(shape, seed, range);
  const auto check = [&](const auto& mask, const AttentionOptions<T>& options = {}) {
    step.run_forward(shape, mask, options);
    expect_the_bits_of_chunks(step, mask, options);
  };
  check(masks::Full{});
  check(Causal{});
  check(ByHead{});
  check(masks::SlidingWindow{.left = 5, .right = 3});
  check(masks::SlidingWindow{.left = 20, .right = 0});
  check(masks::EveryNthKey{3});
  check(masks::Full{}, {.scale = T{0}});
  std::vector<Index> counts;
  for (Index i = 0; i < shape.batch; ++i) counts.push_back((shape.keys * (i + 1)) / (i + 2));
  check(Causal{}, {.key_counts = counts});
}

TEST_P(ShortBackward, HaveTheBitsOfChunks) {
  std::mt19937_64 bits(1301);
  for (int i = 0; i < 25; ++i) {
    const auto upto = [&](Index n) {
      return static_cast<Index>(bits() % static_cast<unsigned>(n));
    };
    const Index heads = 1 + upto(5);
    const Shape shape{1 + upto(3),  heads,         heads,        1 + upto(64),
                      1 + upto(96), 1 + upto(100), 1 + upto(100)};
    expect_the_bits_under_masks<float>(shape, bits() % 1000, 1);
    expect_the_bits_under_masks<double>(shape, bits() % 1000, 20);
  }
  expect_the_bits_under_masks<float>({2, 3, 3, 64, 64, 64, 64}, 7, 1);
}

TEST_P(ShortBackward, NaNReachesWhoSeesItAndNobodyElse) {
  const Shape shape{1, 2, 2, 20, 20, 8, 16};
  for (const float value : {NAN, INFINITY}) {
    for (int which = 0; which < 4; ++which) {
      Step<float> step(shape, 1302);
      auto& poisoned = which == 0   ? step.in.keys
                       : which == 1 ? step.in.values
                       : which == 2 ? step.in.queries
                                    : step.grad;
      poisoned(0, 1, 12, 3) = value;
      step.run_forward(shape, Causal{}, {});
      const auto to = expect_the_bits_of_chunks(step, Causal{});
      const bool of_a_key = which < 2;
      for (Index row = 0; row < 20; ++row) {
        EXPECT_TRUE(std::isfinite(to.queries(0, 0, row, 3))) << "another head";
        // Query 12 or key 12 meets the queries from 12 on, and the keys up to 12.
        if (of_a_key && row < 12) {
          EXPECT_TRUE(std::isfinite(to.queries(0, 1, row, 3)));
        }
        if (!of_a_key && row != 12) {
          EXPECT_TRUE(std::isfinite(to.queries(0, 1, row, 3)));
        }
        if (!of_a_key && row > 12) {
          EXPECT_TRUE(std::isfinite(to.values(0, 1, row, 3)));
        }
      }
    }
  }
}

TEST_P(ShortBackward, RowsThatSawNothingByTheirScores) {
  const Shape shape{1, 1, 1, 6, 9, 4, 8};
  Step<float> step(shape, 1303);
  for (Index d = 0; d < 4; ++d) step.in.queries(0, 0, 2, d) = -1e30f;
  for (float& key : step.in.keys) key = 1e30f;
  step.run_forward(shape, masks::Full{}, {});
  const auto to = expect_the_bits_of_chunks(step, masks::Full{});
  for (Index d = 0; d < 4; ++d) EXPECT_EQ(to.queries(0, 0, 2, d), 0.0f);
}

TEST_P(ShortBackward, LeaveTheRestToOthers) {
  const auto takes = [](const Shape& shape, const AttentionOptions<float>& options = {}) {
    const Step<float> step(shape, 1);
    Gradients<float> to(step.in);
    return heed::detail::ShortBackward<float>::fits(heed::detail::checked_backward_args<float>(
        step.in.queries, step.in.keys, step.in.values, step.made.out, step.made.lse, step.grad,
        to.queries, to.keys, to.values, options, GradientOptions<float>{}));
  };
  EXPECT_TRUE(takes({1, 2, 2, 64, 96, 8, 8}));
  EXPECT_FALSE(takes({1, 2, 2, 65, 96, 8, 8}));
  EXPECT_FALSE(takes({1, 2, 2, 64, 97, 8, 8}));
  EXPECT_FALSE(takes({1, 2, 1, 64, 96, 8, 8}));
  EXPECT_FALSE(takes({1, 2, 2, 64, 96, 8, 8}, {.softcap = 3}));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, ShortBackward, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
