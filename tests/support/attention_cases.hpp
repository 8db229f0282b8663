// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <heed/attention/forward.hpp>
#include <heed/attention/reference.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/isa.hpp>

namespace heed::test {

/// Uniform values in [-range, range), the same on every platform.
template <class T, std::size_t Rank>
Tensor<T, Rank> random_tensor(const Extents<Rank>& extents, std::mt19937_64& bits, T range = 1) {
  Tensor<T, Rank> tensor(extents);
  for (T& value : tensor) {
    value = range * (static_cast<T>(bits() >> 11) * static_cast<T>(0x1p-52) - T{1});
  }
  return tensor;
}

template <class T>
Tensor<T, 2> random_matrix(Index rows, Index columns, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  return random_tensor<T, 2>({rows, columns}, bits);
}

template <class To, class From, std::size_t Rank>
Tensor<To, Rank> converted(const Tensor<From, Rank>& from) {
  Tensor<To, Rank> to(from.extents());
  for (Index i = 0; i < to.size(); ++i) to.data()[i] = static_cast<To>(from.data()[i]);
  return to;
}

/// Bit equality, so that -0 differs from +0 and a NaN equals itself.
template <class T, std::size_t Rank>
bool same_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return a.extents() == b.extents() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0);
}

/// Every head another mask.
struct ByHead {
  bool allows(Position at) const { return at.key <= at.query && at.key % (at.head + 2) != 1; }
};

/// The instruction sets of this machine, slowest first.
inline std::vector<simd::Isa> supported_sets() {
  std::vector<simd::Isa> sets;
  for (const auto isa :
       {simd::Isa::scalar, simd::Isa::neon, simd::Isa::sse2, simd::Isa::avx2, simd::Isa::avx512}) {
    if (simd::supported(isa)) sets.push_back(isa);
  }
  return sets;
}

/// Puts instruction set and thread count back at the end of a test.
class RestoreSettings {
 public:
  RestoreSettings() : isa_(simd::active()), threads_(thread_count()) {}
  RestoreSettings(const RestoreSettings&) = delete;
  RestoreSettings& operator=(const RestoreSettings&) = delete;
  ~RestoreSettings() {
    simd::use(isa_);
    set_thread_count(threads_);
  }

 private:
  simd::Isa isa_;
  Index threads_;
};

enum class Sets { active, all };

/// Calls check() with the active instruction set, or with each one.
template <class Check>
void on_sets(Sets sets, const Check& check) {
  if (sets == Sets::active) return check();
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    SCOPED_TRACE(simd::name(isa));
    simd::use(isa);
    check();
  }
}

/// The shape of one attention call.
struct Shape {
  Index batch = 1;
  Index heads = 1;
  Index kv_heads = 1;
  Index queries = 1;
  Index keys = 1;
  Index head_dim = 1;
  Index value_dim = 1;

  std::string text() const {
    return "batch " + std::to_string(batch) + " heads " + std::to_string(heads) + "/" +
           std::to_string(kv_heads) + " queries " + std::to_string(queries) + " keys " +
           std::to_string(keys) + " head_dim " + std::to_string(head_dim) + " value_dim " +
           std::to_string(value_dim);
  }
};

/// Random inputs of a shape.
template <class T>
struct Inputs {
  Inputs(const Shape& shape, std::uint64_t seed, T range = 1) {
    std::mt19937_64 bits(seed);
    queries =
        random_tensor<T, 4>({shape.batch, shape.heads, shape.queries, shape.head_dim}, bits, range);
    keys =
        random_tensor<T, 4>({shape.batch, shape.kv_heads, shape.keys, shape.head_dim}, bits, range);
    values = random_tensor<T, 4>({shape.batch, shape.kv_heads, shape.keys, shape.value_dim}, bits,
                                 range);
  }
  Tensor<T, 4> queries, keys, values;
};

template <class T>
struct Result {
  explicit Result(const Shape& shape)
      : out({shape.batch, shape.heads, shape.queries, shape.value_dim}),
        lse({shape.batch, shape.heads, shape.queries}) {}
  Tensor<T, 4> out;
  Tensor<T, 3> lse;
};

/// The fused kernel on these inputs. Output starts as NaN, so that what is not written shows.
template <class T, class M>
Result<T> fused(const Shape& shape, const Inputs<T>& in, const M& mask,
                AttentionOptions<T> options = {}) {
  Result<T> result(shape);
  std::fill(result.out.begin(), result.out.end(), std::numeric_limits<T>::quiet_NaN());
  std::fill(result.lse.begin(), result.lse.end(), std::numeric_limits<T>::quiet_NaN());
  options.log_sum_exp = result.lse;
  attention(in.queries, in.keys, in.values, mask, result.out, options);
  return result;
}

template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// The reference in a wider type on the same inputs.
template <class T, class M>
Result<Wider<T>> exact(const Shape& shape, const Inputs<T>& in, const M& mask,
                       const AttentionOptions<T>& options = {}) {
  using W = Wider<T>;
  Result<W> result(shape);
  AttentionOptions<W> wide;
  if (options.scale) wide.scale = static_cast<W>(*options.scale);
  wide.first_query = options.first_query;
  wide.first_queries = options.first_queries;
  wide.log_sum_exp = result.lse;
  reference_attention(converted<W>(in.queries), converted<W>(in.keys), converted<W>(in.values),
                      mask, result.out, wide);
  return result;
}

/// What the error of one row may be, from what the row sees (docs/contract.md, accuracy: the bounds
/// of random inputs).
struct RowBounds {
  double out = 0;
  double lse = 0;
};

template <class T, class M>
RowBounds row_bounds(const Shape& shape, const Inputs<T>& in, const M& mask,
                     const AttentionOptions<T>& options, Index item, Index head, Index query,
                     double lse) {
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const Index key_head = head / (shape.heads / shape.kv_heads);
  const double scale = options.scale ? static_cast<double>(*options.scale)
                                     : 1 / std::sqrt(static_cast<double>(shape.head_dim));
  const Index first = !options.first_queries.empty()
                          ? options.first_queries[static_cast<std::size_t>(item)]
                          : options.first_query.value_or(shape.keys - shape.queries);
  double largest_score = 0, largest_value = 0, visible = 0;
  for (Index key = 0; key < shape.keys; ++key) {
    if (!allows(mask, {item, head, first + query, key, first})) continue;
    ++visible;
    double sum = 0;
    for (Index d = 0; d < shape.head_dim; ++d) {
      sum += std::fabs(static_cast<double>(in.queries(item, head, query, d)) *
                       static_cast<double>(in.keys(item, key_head, key, d)));
    }
    largest_score = std::max(largest_score, std::fabs(scale) * sum);
    for (Index d = 0; d < shape.value_dim; ++d) {
      largest_value = std::max(largest_value,
                               std::fabs(static_cast<double>(in.values(item, key_head, key, d))));
    }
  }
  const double root_d = std::sqrt(static_cast<double>(shape.head_dim));
  return {unit * largest_value * (8 + std::sqrt(visible) / 4 + (2 + root_d / 4) * largest_score),
          unit * (4 + 2 * std::fabs(lse) + (4 + 3 * root_d / 4) * largest_score)};
}

/// Fused = reference within the contract's accuracy on random inputs, for every row; empty rows
/// exactly.
template <class T, class M>
void expect_matches_reference(const Shape& shape, const M& mask, std::uint64_t seed,
                              const AttentionOptions<T>& options = {}, Sets sets = Sets::active) {
  SCOPED_TRACE(shape.text() + " seed " + std::to_string(seed) + " isa " +
               std::string(simd::name(simd::active())));
  const Inputs<T> in(shape, seed);
  const auto expected = exact(shape, in, mask, options);
  on_sets(sets, [&] {
    const auto result = fused(shape, in, mask, options);
    Index wrong = 0;
    for (Index b = 0; b < shape.batch; ++b) {
      for (Index h = 0; h < shape.heads; ++h) {
        for (Index q = 0; q < shape.queries; ++q) {
          const auto lse = static_cast<double>(expected.lse(b, h, q));
          if (std::isinf(lse)) {
            wrong += !(result.lse(b, h, q) == static_cast<T>(lse));
            for (Index d = 0; d < shape.value_dim; ++d) {
              const T value = result.out(b, h, q, d);
              wrong += value != T{0} || std::signbit(value);
            }
            continue;
          }
          const auto bounds = row_bounds(shape, in, mask, options, b, h, q, lse);
          wrong += !(std::fabs(static_cast<double>(result.lse(b, h, q)) - lse) <= bounds.lse);
          for (Index d = 0; d < shape.value_dim; ++d) {
            const double error = std::fabs(static_cast<double>(result.out(b, h, q, d)) -
                                           static_cast<double>(expected.out(b, h, q, d)));
            wrong += !(error <= bounds.out);
          }
        }
      }
    }
    EXPECT_EQ(wrong, 0) << "elements beyond the accuracy bound";
  });
}

}  // namespace heed::test
