// SPDX-License-Identifier: MIT
#include <heed/attention/packed.hpp>

#include <algorithm>

#include <heed/masks.hpp>

#include "support/changed_gradients.hpp"

namespace heed::test {
namespace {

/// A mask that knows which sequence it is in.
struct ByNumber {
  bool allows(Position at) const { return at.key <= at.query && at.key % 4 != at.batch % 4; }
};

/// Packed: everything but a bias tensor, which belongs to scores and not to sequences.
struct Packed {
  explicit Packed(std::vector<Index> borders)
      : offsets(std::move(borders)),
        shape{1, 4, 2, offsets.back(), offsets.back(), 12, 10},
        in(shape, 811),
        loss(shape, 811),
        score_mods(shape, 812) {}

  template <class M>
  ChangedGradients<double> gradients(const M& mask, unsigned which) const {
    Result<double> forward(shape);
    auto options = score_mods.options(which);
    options.log_sum_exp = forward.lse;
    packed_attention(in.queries, in.keys, in.values, offsets, mask, forward.out, options);
    ChangedGradients<double> result(shape, score_mods);
    packed_attention_backward(in.queries, in.keys, in.values, offsets, mask, forward.out,
                              forward.lse, loss.grad_out, result.tensors.queries,
                              result.tensors.keys, result.tensors.values, options,
                              result.options(which, loss));
    return result;
  }

  std::vector<Index> offsets;
  Shape shape;
  Inputs<double> in;
  Loss<double> loss;
  Changes<double> score_mods;
};

/// Every sequence as a call of its own; what sequences share is added up.
template <class MaskOf>
ChangedGradients<double> one_by_one(const Packed& packed, const MaskOf& mask_of, unsigned which) {
  ChangedGradients<double> whole(packed.shape, packed.score_mods);
  std::fill(whole.slopes.begin(), whole.slopes.end(), 0);
  std::fill(whole.sinks.begin(), whole.sinks.end(), 0);
  std::fill(whole.relative.begin(), whole.relative.end(), 0);
  for (std::size_t s = 0; s + 1 < packed.offsets.size(); ++s) {
    const auto of = [&](auto& tensor) {
      return tensor.view().slice(2, packed.offsets[s], packed.offsets[s + 1]);
    };
    const auto copy = [&](const auto& tensor) {
      return std::remove_cvref_t<decltype(tensor)>::copy_of(of(tensor));
    };
    const Index length = packed.offsets[s + 1] - packed.offsets[s];
    const Shape shape{1, 4, 2, length, length, 12, 10};
    const auto mask = mask_of(static_cast<Index>(s));
    Inputs<double> in(shape, 0);
    in.queries = copy(packed.in.queries);
    in.keys = copy(packed.in.keys);
    in.values = copy(packed.in.values);
    Loss<double> loss(shape, 0);
    loss.grad_out = copy(packed.loss.grad_out);
    loss.grad_lse = copy(packed.loss.grad_lse);
    const auto one = fused_changed(shape, in, loss, mask, packed.score_mods, which);
    const auto put = [&](const Tensor<double, 4>& from, Tensor<double, 4>& to) {
      const auto part = of(to);
      for (Index h = 0; h < part.extent(1); ++h) {
        for (Index i = 0; i < length; ++i) {
          for (Index d = 0; d < part.extent(3); ++d) part(0, h, i, d) = from(0, h, i, d);
        }
      }
    };
    put(one.tensors.queries, whole.tensors.queries);
    put(one.tensors.keys, whole.tensors.keys);
    put(one.tensors.values, whole.tensors.values);
    for (std::size_t h = 0; h < 4; ++h) {
      whole.slopes[h] += one.slopes[h];
      whole.sinks.data()[h] += one.sinks.data()[h];
    }
    for (Index i = 0; i < whole.relative.size(); ++i) {
      whole.relative.data()[i] += one.relative.data()[i];
    }
  }
  return whole;
}

template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST(PackedBackward, EverySequenceIsAsAlone) {
  using C = Changes<double>;
  const Packed packed({0, 5, 5, 6, 140, 203, 300});
  const auto mask_of = [](Index number) {
    return predicate([=](Index q, Index k) { return k <= q && k % 4 != number % 4; });
  };
  const RestoreSettings restore;
  for (const unsigned which :
       {0u, +C::softcap, C::alibi | C::relative, C::softcap | C::alibi | C::relative | C::sinks}) {
    const auto expected = one_by_one(packed, mask_of, which);
    for (const Index threads : {1, 3}) {
      set_thread_count(threads);
      packed.gradients(ByNumber{}, which)
          .with(expected, which, [&](const char* name, const auto& got, const auto& want) {
            EXPECT_TRUE(same_numbers(got, want)) << name << " changes " << which;
          });
    }
  }
}

TEST(PackedBackward, ManySequencesOnManyThreadsGiveTheSameBits) {
  std::vector<Index> borders = {0};
  for (Index i = 0; i < 60; ++i) borders.push_back(borders.back() + i * 7 % 23);
  const Packed packed(borders);
  const RestoreSettings restore;
  set_thread_count(1);
  const auto expected = packed.gradients(masks::Causal{}, 0);
  for (const Index threads : {2, 3, 8}) {
    set_thread_count(threads);
    EXPECT_TRUE(same_bits(packed.gradients(masks::Causal{}, 0).tensors, expected.tensors));
  }
}

TEST(PackedBackward, UserFunctionsAndDropoutSeeTheSequenceAsForward) {
  // By central differences of the packed forward call along random directions.
  const Packed packed({0, 40, 71, 130});
  const unsigned which = Changes<double>::function | Changes<double>::dropout;
  const Inputs<double> direction(packed.shape, 813);
  const auto loss_at = [&](double step) {
    Inputs<double> moved = packed.in;
    const auto move = [&](Tensor<double, 4>& tensor, const Tensor<double, 4>& along) {
      for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] += step * along.data()[i];
    };
    move(moved.queries, direction.queries);
    move(moved.keys, direction.keys);
    move(moved.values, direction.values);
    Result<double> forward(packed.shape);
    auto options = packed.score_mods.options(which);
    options.log_sum_exp = forward.lse;
    packed_attention(moved.queries, moved.keys, moved.values, packed.offsets, ByNumber{},
                     forward.out, options);
    double sum = 0;
    for (Index i = 0; i < forward.out.size(); ++i) {
      sum += forward.out.data()[i] * packed.loss.grad_out.data()[i];
    }
    for (Index i = 0; i < forward.lse.size(); ++i) {
      const double lse = forward.lse.data()[i];
      if (std::isfinite(lse)) sum += lse * packed.loss.grad_lse.data()[i];
    }
    return sum;
  };
  const double h = 1e-3;
  const double difference =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  const auto gradients = packed.gradients(ByNumber{}, which).tensors;
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

TEST(PackedBackward, RefusesWhatDoesNotFit) {
  Tensor<float, 3> x({1, 10, 4}), grad({1, 10, 4}), keys({1, 10, 4}), values({1, 10, 4});
  const Tensor<float, 2> lse({1, 10});
  std::fill(grad.begin(), grad.end(), 5.f);
  const auto refused = [&](std::vector<Index> offsets,
                           const AttentionOptions<float>& options = {}) {
    EXPECT_THROW(packed_attention_backward(x, x, x, offsets, masks::Full{}, x, lse, x, grad, keys,
                                           values, options),
                 ShapeError);
  };
  refused({0, 9});
  refused({0, 7, 5, 10});
  const Tensor<float, 2> bias({10, 10});
  refused({0, 10}, {.bias = bias});
  EXPECT_THROW(packed_attention_backward(x, x, x, std::vector<Index>{0, 10}, masks::Full{}, x, lse,
                                         x, x, keys, values),
               ShapeError);
  for (const float value : grad) EXPECT_EQ(value, 5.f);
}

}  // namespace
}  // namespace heed::test
