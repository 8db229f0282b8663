// SPDX-License-Identifier: MIT
// Attention equals what PyTorch computes in float64 for the same numbers: a second opinion beside
// our own reference, so that a shared mistake shows. Files by tools/make_goldens.py.
#include <heed/attention.hpp>
#include <heed/io/npy.hpp>
#include <heed/masks.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

template <std::size_t Rank>
Tensor<double, Rank> golden(const std::string& name, const char* part) {
  return load_npy<double, Rank>(HEED_TEST_DATA "/torch/" + name + "_" + part + ".npy");
}

/// The inputs are stored in half precision, so float and double hold the very same numbers.
template <class T>
Inputs<T> golden_inputs(const std::string& name) {
  Inputs<T> in({}, 0);
  const auto read = [&](const char* part) {
    const auto tensor = load_npy<float, 4>(HEED_TEST_DATA "/torch/" + name + "_" + part + ".npy");
    return converted<T>(tensor);
  };
  in.queries = read("queries");
  in.keys = read("keys");
  in.values = read("values");
  return in;
}

template <class T>
Shape shape_of(const Inputs<T>& in) {
  return {in.queries.extent(0), in.queries.extent(1), in.keys.extent(1),  in.queries.extent(2),
          in.keys.extent(2),    in.keys.extent(3),    in.values.extent(3)};
}

/// Every row of `result` against the files, within the accuracy the contract gives type T.
template <class T, class M>
void expect_golden(const std::string& name, const Inputs<T>& in, const M& mask,
                   const Result<T>& result, const AttentionOptions<T>& options) {
  const auto out = golden<4>(name, "out");
  const auto lse = golden<3>(name, "lse");
  const Shape shape = shape_of(in);
  ASSERT_EQ(out.extents(), result.out.extents());
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.heads; ++h) {
      for (Index q = 0; q < shape.queries; ++q) {
        const std::string at =
            "(" + std::to_string(b) + ", " + std::to_string(h) + ", " + std::to_string(q) + ")";
        if (std::isinf(lse(b, h, q))) {
          EXPECT_EQ(static_cast<double>(result.lse(b, h, q)), lse(b, h, q)) << at;
          for (Index d = 0; d < shape.value_dim; ++d) EXPECT_EQ(result.out(b, h, q, d), T{0}) << at;
          continue;
        }
        const RowBounds bounds = row_bounds(shape, in, mask, options, b, h, q, lse(b, h, q));
        // The file itself is PyTorch's float64, off by as much as any double kernel.
        const double slack = std::is_same_v<T, double> ? 2 : 1;
        EXPECT_NEAR(static_cast<double>(result.lse(b, h, q)), lse(b, h, q), slack * bounds.lse)
            << at;
        for (Index d = 0; d < shape.value_dim; ++d) {
          EXPECT_NEAR(static_cast<double>(result.out(b, h, q, d)), out(b, h, q, d),
                      slack * bounds.out)
              << at << " element " << d;
        }
      }
    }
  }
}

template <class T, class M>
void expect_type_agrees(const std::string& name, const M& mask, AttentionOptions<T> options) {
  const Inputs<T> in = golden_inputs<T>(name);
  const RestoreSettings restore;
  for (const auto isa : supported_sets()) {
    SCOPED_TRACE(std::string(simd::name(isa)) + (sizeof(T) == 4 ? " float" : " double"));
    simd::use(isa);
    expect_golden(name, in, mask, fused(shape_of(in), in, mask, options), options);
  }
  SCOPED_TRACE(sizeof(T) == 4 ? "reference float" : "reference double");
  Result<T> result(shape_of(in));
  auto asked = options;
  asked.log_sum_exp = result.lse;
  reference_attention(in.queries, in.keys, in.values, mask, result.out, asked);
  expect_golden(name, in, mask, result, options);
}

/// Reference and fused kernel, float and double, on every instruction set.
template <class M>
void expect_agrees(const std::string& name, const M& mask, std::optional<float> scale = {},
                   std::optional<Index> first_query = {}) {
  SCOPED_TRACE(name);
  AttentionOptions<float> narrow;
  AttentionOptions<double> wide;
  narrow.scale = scale;
  if (scale) wide.scale = static_cast<double>(*scale);
  narrow.first_query = wide.first_query = first_query;
  expect_type_agrees<float>(name, mask, narrow);
  expect_type_agrees<double>(name, mask, wide);
}

TEST(TorchGolden, UnmaskedShapes) {
  expect_agrees("one", masks::Full{});
  expect_agrees("odd", masks::Full{});
  expect_agrees("single_key_head", masks::Full{});
}

TEST(TorchGolden, CausalBothWaysOfLiningUp) {
  expect_agrees("grouped", masks::Causal{});
  expect_agrees("causal_top_left", masks::Causal{}, {}, top_left);
  expect_agrees("causal_bottom_right", masks::Causal{});
  expect_agrees("causal_more_queries", masks::Causal{});
  expect_agrees("many_keys", masks::Causal{});
}

TEST(TorchGolden, Windows) {
  expect_agrees("window", masks::SlidingWindow{.left = 5, .right = 2});
  expect_agrees("window_offset", masks::SlidingWindow{.left = 50, .right = 0});
}

TEST(TorchGolden, PaddingAndPrefix) {
  expect_agrees("padding", masks::Padding({11, 1, 0, 6}));
  expect_agrees("prefix", masks::Prefix({0, 5}));
  expect_agrees("everything_at_once",
                masks::Padding({11, 1, 0, 6}) & masks::Causal{} & masks::last_n(4), 0.75f);
}

TEST(TorchGolden, ScalesAndLargeScores) {
  expect_agrees("negative_scale", masks::Full{}, -1.5f);
  expect_agrees("zero_scale", masks::Full{}, 0.f);
  expect_agrees("large_scores", masks::Full{});
}

}  // namespace
}  // namespace heed::test
