// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "support/attention_cases.hpp"

namespace heed::test {

/// The instruction sets of this machine, those too that only bfloat16 tells apart.
inline std::vector<simd::Isa> bfloat16_sets() {
  auto sets = supported_sets();
  for (const auto isa : {simd::Isa::avx512_bf16, simd::Isa::amx, simd::Isa::amx_twin}) {
    if (simd::supported(isa)) sets.push_back(isa);
  }
  return sets;
}

/// The nearest bfloat16 numbers, as wide as they were.
template <class T, std::size_t Rank>
Tensor<T, Rank> rounded_to_bfloat16(Tensor<T, Rank> tensor) {
  for (T& value : tensor) value = static_cast<T>(bfloat16(static_cast<float>(value)));
  return tensor;
}

/// Random bfloat16 inputs of a shape.
struct NarrowInputs {
  NarrowInputs(const Shape& shape, std::uint64_t seed, float range = 1) {
    const Inputs<float> wide(shape, seed, range);
    queries = narrowed(wide.queries);
    keys = narrowed(wide.keys);
    values = narrowed(wide.values);
  }
  static Tensor<bfloat16, 4> narrowed(const Tensor<float, 4>& wide) {
    Tensor<bfloat16, 4> tensor(wide.extents());
    for (Index i = 0; i < wide.size(); ++i) tensor.data()[i] = bfloat16(wide.data()[i]);
    return tensor;
  }
  Tensor<bfloat16, 4> queries, keys, values;
};

struct NarrowResult {
  explicit NarrowResult(const Shape& shape)
      : out({shape.batch, shape.heads, shape.queries, shape.value_dim}),
        lse({shape.batch, shape.heads, shape.queries}) {}
  Tensor<bfloat16, 4> out;
  Tensor<float, 3> lse;
};

/// bfloat16 attention; output starts as NaN, so that what is not written shows.
template <class M>
NarrowResult narrow_attention(const Shape& shape, const NarrowInputs& in, const M& mask,
                              AttentionOptions<float> options = {}) {
  NarrowResult result(shape);
  std::fill(result.out.begin(), result.out.end(),
            bfloat16(std::numeric_limits<float>::quiet_NaN()));
  std::fill(result.lse.begin(), result.lse.end(), std::numeric_limits<float>::quiet_NaN());
  options.log_sum_exp = result.lse;
  attention(in.queries, in.keys, in.values, mask, result.out, options);
  return result;
}

/// One row by the definition in double, and what its error may be (docs/contract.md, accuracy).
struct ExactRow {
  std::vector<double> out;
  std::vector<double> deviation;  // Σ weight · |value − out|
  double lse = -std::numeric_limits<double>::infinity();
  double largest_score = 0;  // |scale| · Σ |q·k|
  double largest_value = 0;
  double visible = 0;
};

template <class M>
ExactRow exact_row(const Shape& shape, const NarrowInputs& in, const M& mask,
                   const AttentionOptions<float>& options, Index item, Index head, Index query) {
  const Index key_head = head / (shape.heads / shape.kv_heads);
  const double scale = options.scale
                           ? static_cast<double>(*options.scale)
                           : 1 / std::sqrt(std::max(1., static_cast<double>(shape.head_dim)));
  const Index at = options.first_query.value_or(shape.keys - shape.queries) + query;
  const auto number = [](bfloat16 stored) { return static_cast<double>(float{stored}); };
  const auto row_of = [](const Tensor<bfloat16, 4>& tensor, Index b, Index h, Index r) {
    return tensor.data() + ((b * tensor.extent(1) + h) * tensor.extent(2) + r) * tensor.extent(3);
  };
  struct Seen {
    const bfloat16* value;
    double weight;  // at first its score
  };
  ExactRow row;
  std::vector<Seen> all_seen;
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (Index key = 0; key < shape.keys; ++key) {
    if (!allows(mask, {item, head, at, key})) continue;
    const bfloat16* q = row_of(in.queries, item, head, query);
    const bfloat16* k = row_of(in.keys, item, key_head, key);
    double dot = 0, size = 0;
    for (Index d = 0; d < shape.head_dim; ++d) {
      const double term = number(q[d]) * number(k[d]);
      dot += term;
      size += std::fabs(term);
    }
    all_seen.push_back({row_of(in.values, item, key_head, key), scale * dot});
    maximum = std::max(maximum, scale * dot);
    row.largest_score = std::max(row.largest_score, std::fabs(scale) * size);
    ++row.visible;
  }
  row.out.resize(static_cast<std::size_t>(shape.value_dim));
  row.deviation.resize(row.out.size());
  if (row.visible == 0) return row;
  for (Seen& seen : all_seen) sum += seen.weight = std::exp(seen.weight - maximum);
  const auto for_each_value = [&](const auto& use) {
    for (const Seen& seen : all_seen) {
      for (std::size_t d = 0; d < row.out.size(); ++d) {
        use(seen.weight / sum, d, number(seen.value[d]));
      }
    }
  };
  for_each_value([&](double weight, std::size_t d, double value) {
    row.out[d] += weight * value;
    row.largest_value = std::max(row.largest_value, std::fabs(value));
  });
  for_each_value([&](double weight, std::size_t d, double value) {
    row.deviation[d] += weight * std::fabs(value - row.out[d]);
  });
  row.lse = maximum + std::log(sum);
  return row;
}

/// Within the bounds of docs/contract.md: float's, 2⁻⁸ of the result for its own rounding, and
/// where weights are rounded 1.1 · 2⁻⁸ of the weighted deviation of the values.
template <class M>
void expect_narrow_is_accurate(const Shape& shape, const M& mask, std::uint64_t seed,
                               const AttentionOptions<float>& options = {}, float range = 1) {
  SCOPED_TRACE(shape.text() + " seed " + std::to_string(seed) + " isa " +
               std::string(simd::name(simd::active())));
  const NarrowInputs in(shape, seed, range);
  const auto result = narrow_attention(shape, in, mask, options);
  constexpr double unit = 0x1p-24, narrow = 0x1p-8;
  const double root_d = std::sqrt(static_cast<double>(shape.head_dim));
  Index wrong = 0;
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.heads; ++h) {
      for (Index q = 0; q < shape.queries; ++q) {
        const auto exact = exact_row(shape, in, mask, options, b, h, q);
        if (exact.visible == 0) {
          wrong += !(result.lse(b, h, q) == -std::numeric_limits<float>::infinity());
          for (Index d = 0; d < shape.value_dim; ++d) wrong += result.out(b, h, q, d).bits != 0;
          continue;
        }
        const double of_float =
            unit * exact.largest_value *
            (8 + std::sqrt(exact.visible) / 4 + (2 + root_d / 4) * exact.largest_score);
        const double lse_bound = 1.1 * narrow + unit * (4 + 2 * std::fabs(exact.lse) +
                                                        (4 + 3 * root_d / 4) * exact.largest_score);
        wrong += !(std::fabs(static_cast<double>(result.lse(b, h, q)) - exact.lse) <= lse_bound);
        for (Index d = 0; d < shape.value_dim; ++d) {
          const auto i = static_cast<std::size_t>(d);
          const double bound = 1.01 * (of_float + 1.1 * narrow * exact.deviation[i]) +
                               narrow * std::fabs(exact.out[i]);
          const double error =
              std::fabs(static_cast<double>(float{result.out(b, h, q, d)}) - exact.out[i]);
          wrong += !(error <= bound);
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "elements beyond the accuracy bound";
}

/// Bit equality of the rows [first, first + count) of `whole` with all rows of `part`.
inline bool same_rows(const NarrowResult& part, const NarrowResult& whole, Index first) {
  const Index count = part.lse.extent(2), columns = part.out.extent(3);
  bool same = true;
  for (Index b = 0; b < part.lse.extent(0); ++b) {
    for (Index h = 0; h < part.lse.extent(1); ++h) {
      for (Index q = 0; q < count; ++q) {
        same = same && std::memcmp(&part.lse(b, h, q), &whole.lse(b, h, first + q), 4) == 0;
        for (Index d = 0; d < columns; ++d) {
          same = same && part.out(b, h, q, d).bits == whole.out(b, h, first + q, d).bits;
        }
      }
    }
  }
  return same;
}

}  // namespace heed::test
