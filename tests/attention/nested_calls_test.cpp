// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "support/backward_cases.hpp"
#include "support/bfloat16_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;

/// Attention of another shape, which a mask or score function computes on its way: 0, if it is
/// right.
class OnTheWay {
 public:
  float operator()() const {
    const auto out = attention(in_.queries, in_.keys, in_.values, Causal{});
    return same_bits(out, expected_) ? 0.f : NAN;
  }

 private:
  Inputs<float> in_{Shape{1, 2, 2, 70, 130, 24, 8}, 91};
  Tensor<float, 4> expected_ = attention(in_.queries, in_.keys, in_.values, Causal{});
};

/// Causal, after some calls.
struct BusyMask {
  const OnTheWay* other;
  bool allows(Position at) const {
    return at.key <= at.query && (at.key % 50 != 3 || (*other)() == 0);
  }
};

/// Twice the score, after some calls.
struct BusyScores {
  const OnTheWay* other;
  float value(float score, Position at) const {
    return 2 * score + (at.key % 50 == 3 ? (*other)() : 0.f);
  }
  float derivative(float, Position at) const { return 2 + (at.key % 50 == 3 ? (*other)() : 0.f); }
};

const Shape shapes[] = {
    {1, 2, 1, 40, 150, 16, 16}, {2, 2, 2, 12, 12, 8, 8}, {1, 4, 2, 2, 300, 32, 32}};

TEST(NestedCalls, OfMasksAndScoreFunctionsChangeNothing) {
  const OnTheWay other;
  const RestoreSettings restore;
  for (const Index threads : {1, 2}) {
    set_thread_count(threads);
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(shape.text());
      const Inputs<float> in(shape, 92);
      const auto with = [&](const auto& mask, AttentionOptions<float> options = {}) {
        return attention(in.queries, in.keys, in.values, mask, options);
      };
      EXPECT_TRUE(same_bits(with(BusyMask{&other}), with(Causal{})));
      const auto twice =
          with(Causal{}, {.score_function = [](float s, Position) { return 2 * s; }});
      EXPECT_TRUE(same_bits(with(Causal{}, {.score_function = BusyScores{&other}}), twice));
      EXPECT_TRUE(same_bits(with(BusyMask{&other}, {.score_function = BusyScores{&other}}), twice));
    }
  }
}

TEST(NestedCalls, NorInTheBackwardPass) {
  struct Twice {
    float value(float score, Position) const { return 2 * score; }
    float derivative(float, Position) const { return 2; }
  };
  const OnTheWay other;
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.text());
    const Inputs<float> in(shape, 93);
    const Loss<float> loss(shape, 93);
    const auto gradients = [&](const auto& mask, AttentionOptions<float> options) {
      Tensor<float, 3> lse({shape.batch, shape.heads, shape.queries});
      options.log_sum_exp = lse;
      const auto out = attention(in.queries, in.keys, in.values, mask, options);
      options.log_sum_exp = {};
      return attention_backward(in.queries, in.keys, in.values, mask, out, lse, loss.grad_out,
                                {.scale = options.scale, .score_function = options.score_function});
    };
    const auto expected = gradients(Causal{}, {.score_function = Twice{}});
    const auto busy = gradients(BusyMask{&other}, {.score_function = BusyScores{&other}});
    EXPECT_TRUE(same_bits(busy.queries, expected.queries));
    EXPECT_TRUE(same_bits(busy.keys, expected.keys));
    EXPECT_TRUE(same_bits(busy.values, expected.values));
  }
}

TEST(NestedCalls, OfBfloat16Too) {
  const RestoreSettings restore;
  for (const auto isa : bfloat16_sets()) {
    simd::use(isa);
    const OnTheWay here;
    const Shape shape{1, 2, 1, 40, 150, 16, 16};
    const NarrowInputs in(shape, 94);
    EXPECT_TRUE(same_bits(narrow_attention(shape, in, BusyMask{&here}).out,
                          narrow_attention(shape, in, Causal{}).out))
        << simd::name(isa);
  }
}

/// A mask that calls attention under itself, so often.
struct Within {
  int* left;
  bool allows(Position) const {
    if (*left == 0) return true;
    --*left;
    const Tensor<float, 2> x(4, 4);
    const auto out = attention(x, x, x, *this);
    return out(0, 0) == 0;
  }
};

TEST(NestedCalls, AreLimited) {
  const Tensor<float, 2> x(4, 4);
  int left = 3;
  attention(x, x, x, Within{&left});
  left = 100;
  EXPECT_THROW(attention(x, x, x, Within{&left}), InvalidArgument);
  left = 3;
  attention(x, x, x, Within{&left});
}

}  // namespace
}  // namespace heed::test
