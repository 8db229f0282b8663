// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <heed/attention/backward.hpp>
#include <heed/attention/reference.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {

/// What a loss says about the results of a forward call.
template <class T>
struct Loss {
  Loss(const Shape& shape, std::uint64_t seed) {
    std::mt19937_64 bits(seed + 0x10557);
    grad_out =
        random_tensor<T, 4>({shape.batch, shape.heads, shape.queries, shape.value_dim}, bits, T{1});
    grad_lse = random_tensor<T, 3>({shape.batch, shape.heads, shape.queries}, bits, T{1});
  }
  Tensor<T, 4> grad_out;
  Tensor<T, 3> grad_lse;
};

template <class T>
struct Gradients {
  explicit Gradients(const Shape& shape)
      : queries({shape.batch, shape.heads, shape.queries, shape.head_dim}),
        keys({shape.batch, shape.kv_heads, shape.keys, shape.head_dim}),
        values({shape.batch, shape.kv_heads, shape.keys, shape.value_dim}) {
    // What is not written shows.
    for (auto* tensor : {&queries, &keys, &values}) {
      std::fill(tensor->begin(), tensor->end(), std::numeric_limits<T>::quiet_NaN());
    }
  }
  Tensor<T, 4> queries, keys, values;
};

template <class T>
bool same_bits(const Gradients<T>& a, const Gradients<T>& b) {
  return same_bits(a.queries, b.queries) && same_bits(a.keys, b.keys) &&
         same_bits(a.values, b.values);
}

/// Forward and backward by the fused kernels.
template <class T, class M>
Gradients<T> fused_gradients(const Shape& shape, const Inputs<T>& in, const Loss<T>& loss,
                             const M& mask, const AttentionOptions<T>& options = {}) {
  const auto forward = fused(shape, in, mask, options);
  Gradients<T> result(shape);
  attention_backward(in.queries, in.keys, in.values, mask, forward.out, forward.lse, loss.grad_out,
                     result.queries, result.keys, result.values, options,
                     {.grad_log_sum_exp = loss.grad_lse});
  return result;
}

template <class T>
AttentionOptions<Wider<T>> widened(const AttentionOptions<T>& options) {
  AttentionOptions<Wider<T>> wide;
  if (options.scale) wide.scale = static_cast<Wider<T>>(*options.scale);
  wide.first_query = options.first_query;
  wide.first_queries = options.first_queries;
  return wide;
}

/// Forward and backward by the references in a wider type.
template <class T, class M>
Gradients<Wider<T>> exact_gradients(const Shape& shape, const Inputs<T>& in, const Loss<T>& loss,
                                    const M& mask, const AttentionOptions<T>& options = {}) {
  using W = Wider<T>;
  const auto forward = exact(shape, in, mask, options);
  Gradients<W> result(shape);
  const auto grad_lse = converted<W>(loss.grad_lse);
  reference_backward(converted<W>(in.queries), converted<W>(in.keys), converted<W>(in.values), mask,
                     forward.out, forward.lse, converted<W>(loss.grad_out), result.queries,
                     result.keys, result.values, widened(options), {.grad_log_sum_exp = grad_lse});
  return result;
}

/// What the error of every gradient may be (docs/contract.md, accuracy): the formulas of the
/// gradients with every term replaced by its absolute value and weighted by its row's factor, plus
/// `rounding`, the share by which a rounded weight or score gradient may be off.
template <class T, class M>
class GradientBounds {
 public:
  GradientBounds(const Shape& shape, const Inputs<T>& in, const Loss<T>& loss, const M& mask,
                 const AttentionOptions<T>& options, double rounding = 0)
      : bounds(shape),
        shape_(shape),
        in_(in),
        loss_(loss),
        rounding_(rounding),
        weights_(static_cast<std::size_t>(shape.keys)) {
    for (auto* tensor : {&bounds.queries, &bounds.keys, &bounds.values}) {
      std::fill(tensor->begin(), tensor->end(), 1e-30);
    }
    scale_ = options.scale ? static_cast<double>(*options.scale)
                           : 1 / std::sqrt(static_cast<double>(shape.head_dim));
    for (Index b = 0; b < shape.batch; ++b) {
      const Index first = !options.first_queries.empty()
                              ? options.first_queries[static_cast<std::size_t>(b)]
                              : options.first_query.value_or(shape.keys - shape.queries);
      for (Index h = 0; h < shape.heads; ++h) {
        for (Index q = 0; q < shape.queries; ++q) add_row(mask, b, h, q, first + q);
      }
    }
  }
  Gradients<double> bounds;

 private:
  struct Pair {
    bool seen = false;
    double weight = 0, grad_weight = 0;
  };

  void add_row(const M& mask, Index b, Index h, Index q, Index position) {
    const Index kh = h / (shape_.heads / shape_.kv_heads);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, seen = 0, absolute = 0;
    for (Index key = 0; key < shape_.keys; ++key) {
      Pair& pair = weights_[static_cast<std::size_t>(key)];
      pair = {};
      if (!allows(mask, {b, h, position, key, position - q})) continue;
      double terms = 0;
      for (Index d = 0; d < shape_.head_dim; ++d) {
        const double term = static_cast<double>(in_.queries(b, h, q, d)) *
                            static_cast<double>(in_.keys(b, kh, key, d));
        pair.weight += scale_ * term;
        terms += std::fabs(term);
      }
      for (Index d = 0; d < shape_.value_dim; ++d) {
        pair.grad_weight += std::fabs(static_cast<double>(loss_.grad_out(b, h, q, d)) *
                                      static_cast<double>(in_.values(b, kh, key, d)));
      }
      pair.seen = true;
      seen += 1;
      absolute = std::max(absolute, std::fabs(scale_) * terms);
      largest = std::max(largest, pair.weight);
    }
    double mean = std::fabs(static_cast<double>(loss_.grad_lse(b, h, q)));
    for (Pair& pair : weights_)
      sum += pair.weight = pair.seen ? std::exp(pair.weight - largest) : 0;
    for (const Pair& pair : weights_) mean += pair.weight / sum * pair.grad_weight;
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
    const double root = std::sqrt(static_cast<double>(shape_.head_dim));
    const double factor =
        (rounding_ + unit * (48 + std::sqrt(seen) / 2 + (8 + root) * absolute)) / sum;
    for (Index key = 0; key < shape_.keys; ++key) {
      const Pair& pair = weights_[static_cast<std::size_t>(key)];
      if (pair.seen) add_pair(b, h, q, key, factor * pair.weight, pair.grad_weight + mean);
    }
  }
  void add_pair(Index b, Index h, Index q, Index key, double weight, double grad_weight) {
    const Index kh = h / (shape_.heads / shape_.kv_heads);
    for (Index d = 0; d < shape_.value_dim; ++d) {
      bounds.values(b, kh, key, d) +=
          weight * std::fabs(static_cast<double>(loss_.grad_out(b, h, q, d)));
    }
    const double grad_score = std::fabs(scale_) * weight * grad_weight;
    for (Index d = 0; d < shape_.head_dim; ++d) {
      bounds.queries(b, h, q, d) +=
          grad_score * std::fabs(static_cast<double>(in_.keys(b, kh, key, d)));
      bounds.keys(b, kh, key, d) +=
          grad_score * std::fabs(static_cast<double>(in_.queries(b, h, q, d)));
    }
  }

  const Shape& shape_;
  const Inputs<T>& in_;
  const Loss<T>& loss_;
  double rounding_;
  std::vector<Pair> weights_;
  double scale_ = 0;
};

template <class T, class W>
Index beyond(const Tensor<T, 4>& result, const Tensor<W, 4>& expected,
             const Tensor<double, 4>& bounds) {
  Index wrong = 0;
  for (Index i = 0; i < result.size(); ++i) {
    const auto error = static_cast<double>(static_cast<W>(result.data()[i]) - expected.data()[i]);
    wrong += !(std::fabs(error) <= bounds.data()[i]);
  }
  return wrong;
}

/// The largest error as a share of the largest expected value.
template <class T, class W>
double relative_error(const Tensor<T, 4>& result, const Tensor<W, 4>& expected) {
  double worst = 0, largest = 0;
  for (Index i = 0; i < result.size(); ++i) {
    const auto error =
        std::fabs(static_cast<double>(static_cast<W>(result.data()[i]) - expected.data()[i]));
    if (!(error <= worst)) worst = error;
    largest = std::max(largest, std::fabs(static_cast<double>(expected.data()[i])));
  }
  return worst == 0 ? 0 : worst / largest;
}

/// Fused = reference within the contract's accuracy, for every element.
template <class T, class M>
void expect_gradients_match(const Shape& shape, const M& mask, std::uint64_t seed,
                            const AttentionOptions<T>& options = {}, Sets sets = Sets::active) {
  SCOPED_TRACE(shape.text() + " seed " + std::to_string(seed) + " isa " +
               std::string(simd::name(simd::active())) + (sizeof(T) == 4 ? " float" : " double"));
  const Inputs<T> in(shape, seed);
  const Loss<T> loss(shape, seed);
  const auto expected = exact_gradients(shape, in, loss, mask, options);
  const GradientBounds<T, M> allowed(shape, in, loss, mask, options);
  on_sets(sets, [&] {
    const auto result = fused_gradients(shape, in, loss, mask, options);
    EXPECT_EQ(beyond(result.queries, expected.queries, allowed.bounds.queries), 0) << "queries";
    EXPECT_EQ(beyond(result.keys, expected.keys, allowed.bounds.keys), 0) << "keys";
    EXPECT_EQ(beyond(result.values, expected.values, allowed.bounds.values), 0) << "values";
    if (sizeof(T) == 8 && shape.keys > 1) {
      EXPECT_LE(relative_error(result.queries, expected.queries), 1e-12);
      EXPECT_LE(relative_error(result.keys, expected.keys), 1e-12);
      EXPECT_LE(relative_error(result.values, expected.values), 1e-12);
    }
  });
}

}  // namespace heed::test
