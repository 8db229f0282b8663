// SPDX-License-Identifier: MIT
// The promises of docs/contract.md on gradients, by number.
#include <algorithm>
#include <limits>
#include <vector>

#include <heed/attention/backward.hpp>
#include <heed/masks.hpp>

#include "support/backward_cases.hpp"
#include "support/own_masks.hpp"

namespace heed::test {
namespace {

using masks::Causal;
using masks::Full;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class BackwardContract : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(BackwardContract, R1MaskedMeansAbsent) {
  const Shape shape{1, 2, 1, 100, 300, 16, 12};
  const Inputs<float> clean(shape, 31);
  const Loss<float> loss(shape, 31);
  const auto check = [&](const auto& mask) {
    const auto expected = fused_gradients(shape, clean, loss, mask);
    for_each_poison_where_masked(shape, clean, mask, [&](const auto& in, float poison) {
      EXPECT_TRUE(same_bits(fused_gradients(shape, in, loss, mask), expected)) << poison;
    });
  };
  check(Sparse{});
  check(NotTheFirst{130});
  check(~NotTheFirst{201});
}

TEST_P(BackwardContract, R1WhatALaterTokenHoldsCannotReachAnEarlierQuery) {
  // Keys seen by some queries of a tile and masked for others.
  const Shape shape{1, 1, 1, 130, 130, 8, 7};
  const Inputs<float> clean(shape, 32);
  const Loss<float> loss(shape, 32);
  const auto expected = fused_gradients(shape, clean, loss, Causal{});
  for (const Index from : {1, 40, 63, 64, 100, 129}) {
    for (const float poison : {nan, infinity, 1e38f}) {
      Inputs<float> in = clean;
      for (Index token = from; token < shape.keys; ++token) {
        for (Index d = 0; d < 8; ++d) in.keys(0, 0, token, d) = poison;
        for (Index d = 0; d < 7; ++d) in.values(0, 0, token, d) = poison;
      }
      const auto result = fused_gradients(shape, in, loss, Causal{});
      EXPECT_EQ(std::memcmp(result.queries.data(), expected.queries.data(),
                            sizeof(float) * static_cast<std::size_t>(from * 8)),
                0)
          << "from " << from << " poison " << poison;
    }
  }
}

TEST_P(BackwardContract, R1WhatAnEarlierQueryHoldsCannotReachALaterKey) {
  const Shape shape{1, 1, 1, 130, 130, 8, 7};
  const Inputs<float> clean(shape, 33);
  const Loss<float> calm(shape, 33);
  const auto expected = fused_gradients(shape, clean, calm, Causal{});
  for (const Index until : {1, 40, 63, 64, 100, 129}) {
    for (const float poison : {nan, infinity, 1e38f}) {
      for (const bool in_loss : {false, true}) {
        Inputs<float> in = clean;
        Loss<float> loss = calm;
        for (Index token = 0; token < until; ++token) {
          for (Index d = 0; d < 7; ++d) {
            (in_loss ? loss.grad_out(0, 0, token, d) : in.queries(0, 0, token, d)) = poison;
          }
        }
        const auto result = fused_gradients(shape, in, loss, Causal{});
        const auto same_from = [&](const Tensor<float, 4>& a, const Tensor<float, 4>& b,
                                   Index dim) {
          return std::memcmp(a.data() + until * dim, b.data() + until * dim,
                             sizeof(float) * static_cast<std::size_t>((130 - until) * dim)) == 0;
        };
        EXPECT_TRUE(same_from(result.keys, expected.keys, 8)) << until << " " << poison;
        EXPECT_TRUE(same_from(result.values, expected.values, 7)) << until << " " << poison;
        EXPECT_TRUE(same_from(result.queries, expected.queries, 8)) << until << " " << poison;
      }
    }
  }
}

TEST_P(BackwardContract, R2ARowThatSeesNothingAddsNothing) {
  const Shape shape{1, 1, 1, 100, 300, 16, 12};
  const Inputs<float> clean(shape, 34);
  const Loss<float> calm(shape, 34);
  const AttentionOptions<float> options{.first_query = 0};
  const auto empty = [](Index q) { return q <= 3 || q % 10 == 0; };
  const auto expected = fused_gradients(shape, clean, calm, Sparse{}, options);
  for (const float poison : {nan, infinity, 1e38f}) {
    Inputs<float> in = clean;
    Loss<float> loss = calm;
    for (Index q = 0; q < shape.queries; ++q) {
      if (!empty(q)) continue;
      for (Index d = 0; d < 12; ++d) loss.grad_out(0, 0, q, d) = poison;
      for (Index d = 0; d < 16; ++d) in.queries(0, 0, q, d) = poison;
      loss.grad_lse(0, 0, q) = poison;
    }
    const auto result = fused_gradients(shape, in, loss, Sparse{}, options);
    EXPECT_TRUE(same_bits(result, expected)) << poison;
    for (Index q = 0; q < shape.queries; ++q) {
      for (Index d = 0; empty(q) && d < 16; ++d) {
        const float value = result.queries(0, 0, q, d);
        EXPECT_TRUE(value == 0 && !std::signbit(value)) << q;
      }
    }
  }
}

TEST_P(BackwardContract, R2TheLogSumExpAloneTakesARowAway) {
  // Under no mask at all: what a caller marks as having seen nothing, or rows whose scores all
  // overflowed to −inf.
  const Shape shape{1, 1, 1, 70, 200, 8, 6};
  Inputs<float> in(shape, 35);
  Loss<float> loss(shape, 35);
  auto forward = fused(shape, in, Full{});
  for (const Index q : {0, 5, 63, 64, 69}) {
    forward.lse(0, 0, q) = -infinity;
    for (Index d = 0; d < 6; ++d) loss.grad_out(0, 0, q, d) = nan;
  }
  Gradients<float> result(shape), expected(shape);
  attention_backward(in.queries, in.keys, in.values, Full{}, forward.out, forward.lse,
                     loss.grad_out, result.queries, result.keys, result.values);
  reference_backward(in.queries, in.keys, in.values, Full{}, forward.out, forward.lse,
                     loss.grad_out, expected.queries, expected.keys, expected.values);
  EXPECT_LT(relative_error(result.queries, expected.queries), 1e-5);
  EXPECT_LT(relative_error(result.keys, expected.keys), 1e-5);
  EXPECT_LT(relative_error(result.values, expected.values), 1e-5);
}

/// Fused gradients are finite exactly where the reference's are, and where the reference's bits
/// are those of clean data, so are the fused kernel's.
template <class M>
void expect_reaches_like_the_reference(const Shape& shape, const Inputs<float>& in,
                                       const Loss<float>& loss, const Gradients<float>& clean,
                                       const Gradients<float>& clean_reference, const M& mask) {
  const auto result = fused_gradients(shape, in, loss, mask);
  Result<float> forward(shape);
  reference_attention(in.queries, in.keys, in.values, mask, forward.out,
                      {.log_sum_exp = forward.lse});
  Gradients<float> reference(shape);
  reference_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     reference.queries, reference.keys, reference.values, {},
                     {.grad_log_sum_exp = loss.grad_lse});
  const auto check = [](const char* name, const Tensor<float, 4>& got, const Tensor<float, 4>& want,
                        const Tensor<float, 4>& got_clean, const Tensor<float, 4>& want_clean) {
    Index hidden = 0, spread = 0;
    for (Index i = 0; i < got.size(); ++i) {
      hidden += std::isfinite(got.data()[i]) && !std::isfinite(want.data()[i]);
      const bool untouched = std::memcmp(want.data() + i, want_clean.data() + i, 4) == 0;
      spread += untouched && std::memcmp(got.data() + i, got_clean.data() + i, 4) != 0;
    }
    EXPECT_EQ(hidden, 0) << name << ": elements that should not be finite";
    EXPECT_EQ(spread, 0) << name << ": elements that should not have changed";
  };
  check("queries", result.queries, reference.queries, clean.queries, clean_reference.queries);
  check("keys", result.keys, reference.keys, clean.keys, clean_reference.keys);
  check("values", result.values, reference.values, clean.values, clean_reference.values);
}

TEST_P(BackwardContract, R3NothingHidesNaNAndNothingSpreadsIt) {
  const Shape shape{1, 2, 1, 110, 130, 8, 5};
  const Inputs<float> calm(shape, 36);
  const Loss<float> even(shape, 36);
  const auto check = [&](const auto& mask) {
    const auto clean = fused_gradients(shape, calm, even, mask);
    Result<float> forward(shape);
    reference_attention(calm.queries, calm.keys, calm.values, mask, forward.out,
                        {.log_sum_exp = forward.lse});
    Gradients<float> reference(shape);
    reference_backward(calm.queries, calm.keys, calm.values, mask, forward.out, forward.lse,
                       even.grad_out, reference.queries, reference.keys, reference.values, {},
                       {.grad_log_sum_exp = even.grad_lse});
    for (const float poison : {nan, infinity}) {
      for (const Index at : {0, 30, 63, 64, 95, 96, 109}) {
        for (int where = 0; where < 5; ++where) {
          SCOPED_TRACE("at " + std::to_string(at) + " in " + std::to_string(where));
          Inputs<float> in = calm;
          Loss<float> loss = even;
          float* const places[] = {&in.queries(0, 1, at, 3), &in.keys(0, 0, at, 7),
                                   &in.values(0, 0, at, 0), &loss.grad_out(0, 0, at, 2),
                                   &loss.grad_lse(0, 1, at)};
          *places[where] = poison;
          expect_reaches_like_the_reference(shape, in, loss, clean, reference, mask);
        }
      }
    }
  };
  check(masks::last_n(3));
  check(Causal{});
  check(Sparse{});
  check(Full{});
}

TEST_P(BackwardContract, R6ThreadsAndRunsChangeNoBit) {
  // One head, few heads and many; lengths that are split over threads and that are not.
  for (const Shape& shape : {Shape{1, 1, 1, 200, 700, 16, 12}, Shape{2, 4, 2, 90, 400, 8, 8}}) {
    const Inputs<float> in(shape, 37);
    const Loss<float> loss(shape, 37);
    set_thread_count(1);
    const auto expected = fused_gradients(shape, in, loss, Causal{});
    for (int run = 0; run < 50; ++run) {
      for (const Index threads : {1, 2, 3, 7, 8}) {
        set_thread_count(threads);
        ASSERT_TRUE(same_bits(fused_gradients(shape, in, loss, Causal{}), expected))
            << "run " << run << " threads " << threads;
      }
    }
  }
}

TEST_P(BackwardContract, R6AnswersSharedByHeadsChangeNoBit) {
  struct EachHead {
    bool allows(Position at) const { return Sparse{}.allows(at); }
  };
  const auto together = masks::predicate([](Index query, Index key) {
    return Sparse{}.allows({0, 0, query, key});
  });
  ASSERT_TRUE(MaskRef(together).shares_lane_words());
  ASSERT_FALSE(MaskRef(EachHead{}).shares_lane_words());
  // Heads that share a key head; more heads than are split; items whose last heads are split.
  for (const Shape& many : {Shape{2, 6, 3, 150, 290, 12, 7}, Shape{1, 3, 1, 130, 200, 8, 8},
                            Shape{3, 7, 7, 100, 390, 8, 8}}) {
    const Inputs<float> in(many, 66);
    const Loss<float> loss(many, 66);
    set_thread_count(1);
    const auto expected = fused_gradients(many, in, loss, EachHead{});
    for (const Index threads : {1, 2, 3, 5}) {
      set_thread_count(threads);
      EXPECT_TRUE(same_bits(fused_gradients(many, in, loss, together), expected)) << threads;
    }
  }
}

TEST_P(BackwardContract, R6NeitherBatchNorHeadsBesideItChangeABit) {
  const Shape shape{3, 4, 2, 90, 210, 10, 6};
  const Inputs<float> in(shape, 38);
  const Loss<float> loss(shape, 38);
  const auto whole = fused_gradients(shape, in, loss, Causal{});
  const auto forward = fused(shape, in, Causal{});
  // Item 1, key head 1, query heads 2 and 3, as a call of its own.
  const auto part = [](auto& tensor, Index first, Index last) {
    return tensor.view().slice(0, 1, 2).slice(1, first, last);
  };
  Gradients<float> alone(Shape{1, 2, 1, 90, 210, 10, 6});
  attention_backward(part(in.queries, 2, 4), part(in.keys, 1, 2), part(in.values, 1, 2), Causal{},
                     part(forward.out, 2, 4), part(forward.lse, 2, 4), part(loss.grad_out, 2, 4),
                     alone.queries, alone.keys, alone.values, {},
                     {.grad_log_sum_exp = part(loss.grad_lse, 2, 4)});
  EXPECT_TRUE(same_bits(alone.queries, Tensor<float, 4>::copy_of(part(whole.queries, 2, 4))));
  EXPECT_TRUE(same_bits(alone.keys, Tensor<float, 4>::copy_of(part(whole.keys, 1, 2))));
  EXPECT_TRUE(same_bits(alone.values, Tensor<float, 4>::copy_of(part(whole.values, 1, 2))));
}

TEST_P(BackwardContract, R6AlignmentChangesNoBit) {
  const Index length = 70, dim = 16;
  const Shape shape{1, 1, 1, length, length, dim, dim};
  const Inputs<float> in(shape, 39);
  const Loss<float> loss(shape, 39);
  const auto forward = fused(shape, in, Causal{});
  Gradients<float> expected(shape);
  attention_backward(in.queries, in.keys, in.values, Causal{}, forward.out, forward.lse,
                     loss.grad_out, expected.queries, expected.keys, expected.values);
  const Index size = length * dim;
  for (Index offset = 0; offset < 16; ++offset) {
    std::vector<float> memory(static_cast<std::size_t>(8 * size + 128));
    const auto place = [&](Index slot) {
      return TensorView<float, 4>(memory.data() + offset + slot * (size + 1 + offset % 3),
                                  {1, 1, length, dim});
    };
    const auto copy_to = [&](Index slot, const Tensor<float, 4>& from) {
      std::copy(from.begin(), from.end(), place(slot).data_handle());
      return place(slot);
    };
    attention_backward(copy_to(0, in.queries), copy_to(1, in.keys), copy_to(2, in.values), Causal{},
                       copy_to(3, forward.out), forward.lse, copy_to(4, loss.grad_out), place(5),
                       place(6), place(7));
    EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(place(5)), expected.queries)) << offset;
    EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(place(6)), expected.keys)) << offset;
    EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(place(7)), expected.values)) << offset;
  }
}

TEST_P(BackwardContract, IdentitiesOfTheSums) {
  const Shape shape{1, 1, 1, 150, 290, 12, 7};
  Inputs<double> in(shape, 40);
  Loss<double> loss(shape, 40);
  std::fill(loss.grad_lse.begin(), loss.grad_lse.end(), 0.0);
  const AttentionOptions<double> options{.first_query = 0};
  const auto result = fused_gradients(shape, in, loss, Sparse{}, options);
  // Every row of weights adds up to 1: Σ_j dV_j = Σ dO of the rows that see something.
  for (Index d = 0; d < 7; ++d) {
    double given = 0, received = 0;
    for (Index q = 0; q < shape.queries; ++q) {
      if (q > 3 && q % 10 != 0) given += loss.grad_out(0, 0, q, d);
    }
    for (Index key = 0; key < shape.keys; ++key) received += result.values(0, 0, key, d);
    EXPECT_NEAR(received, given, 1e-13 * 150);
  }
  // Every row of dS adds up to 0: Σ_j dK_j = 0, and dQ = 0 where all keys are equal.
  for (Index d = 0; d < 12; ++d) {
    double sum = 0;
    for (Index key = 0; key < shape.keys; ++key) sum += result.keys(0, 0, key, d);
    EXPECT_NEAR(sum, 0, 1e-13);
  }
  std::fill(in.keys.begin(), in.keys.end(), 1.0);
  const auto equal = fused_gradients(shape, in, loss, Sparse{}, options);
  for (const double value : equal.queries) EXPECT_NEAR(value, 0, 1e-14);
  // A query with one key has nothing to choose.
  const auto only = fused_gradients(shape, Inputs<double>(shape, 41), loss, masks::last_n(1));
  for (const double value : only.queries) EXPECT_NEAR(value, 0, 1e-14);
}

TEST_P(BackwardContract, DirectionalDerivativesInDouble) {
  // The fused forward pass along random directions, by 4-point central differences.
  const Shape shape{2, 4, 2, 70, 110, 9, 11};
  const Inputs<double> in(shape, 42), direction(shape, 43);
  const Loss<double> loss(shape, 42);
  const auto mask = Causal{} & masks::last_n(40);
  const auto gradients = fused_gradients(shape, in, loss, mask);
  const auto loss_at = [&](double step) {
    Inputs<double> moved = in;
    const auto move = [&](Tensor<double, 4>& tensor, const Tensor<double, 4>& along) {
      for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] += step * along.data()[i];
    };
    move(moved.queries, direction.queries);
    move(moved.keys, direction.keys);
    move(moved.values, direction.values);
    const auto result = fused(shape, moved, mask);
    double sum = 0;
    for (Index i = 0; i < result.out.size(); ++i) {
      sum += result.out.data()[i] * loss.grad_out.data()[i];
    }
    for (Index i = 0; i < result.lse.size(); ++i) {
      sum += result.lse.data()[i] * loss.grad_lse.data()[i];
    }
    return sum;
  };
  const double h = 1e-3;
  const double difference =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  double slope = 0, norm = 0;
  const auto take = [&](const Tensor<double, 4>& gradient, const Tensor<double, 4>& along) {
    for (Index i = 0; i < gradient.size(); ++i) {
      slope += gradient.data()[i] * along.data()[i];
      norm += gradient.data()[i] * gradient.data()[i];
    }
  };
  take(gradients.queries, direction.queries);
  take(gradients.keys, direction.keys);
  take(gradients.values, direction.values);
  EXPECT_NEAR(difference, slope, 1e-9 * std::sqrt(norm));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, BackwardContract, ::testing::ValuesIn(supported_sets()),
                         [](const auto& isa) { return std::string(simd::name(isa.param)); });

}  // namespace
}  // namespace heed::test
