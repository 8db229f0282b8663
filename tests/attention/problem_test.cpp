// SPDX-License-Identifier: MIT
#include <heed/attention/detail/call.hpp>

#include <heed/masks/intervals.hpp>
#include <heed/tensor/copy.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

using masks::Causal;

/// Calls attention and expects a ShapeError that says `what`, with `out` left alone.
template <class Q, class K, class V, class Out>
void refuse(const Q& q, const K& k, const V& v, Out& out, const std::string& what,
            const AttentionOptions<float>& options = {}) {
  const auto before = Tensor<float, 4>::copy_of(view_of(out));
  try {
    attention(q, k, v, Causal{}, out, options);
    ADD_FAILURE() << "accepted: " << what;
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
  EXPECT_TRUE(same_bits(before, Tensor<float, 4>::copy_of(view_of(out)))) << what;
}

TEST(Problem, ShapesThatDoNotFit) {
  Tensor<float, 4> q({2, 4, 5, 8}), k({2, 2, 7, 8}), v({2, 2, 7, 3}), out({2, 4, 5, 3});
  attention(q, k, v, Causal{}, out);  // fits
  refuse(q, Tensor<float, 4>({1, 2, 7, 8}), v, out, "queries have a batch of 2, keys of 1");
  refuse(q, Tensor<float, 4>({2, 2, 7, 9}), v, out, "queries have head_dim 8, keys 9");
  refuse(q, Tensor<float, 4>({2, 3, 7, 8}), v, out, "4 query heads do not divide");
  refuse(q, Tensor<float, 4>({2, 0, 7, 8}), v, out, "over 0 key heads");
  refuse(q, Tensor<float, 4>({2, 2, 12, 8}), Tensor<float, 4>({2, 2, 10, 3}), out,
         "keys have 12 tokens, values 10");
  refuse(q, k, Tensor<float, 4>({2, 4, 7, 3}), out, "values (2, 4)");
  for (const Extents<4>& wrong : std::vector<Extents<4>>{
           {2, 4, 5, 8}, {2, 4, 7, 3}, {2, 2, 5, 3}, {1, 4, 5, 3}, {2, 4, 5, 0}}) {
    Tensor<float, 4> other(wrong);
    refuse(q, k, v, other, "expected (batch, heads, queries, value_dim) = (2, 4, 5, 3)");
  }
}

TEST(Problem, ValuesThatDoNotFit) {
  Tensor<float, 4> q({1, 1, 5, 8}), out({1, 1, 5, 8});
  refuse(q, q, q, out, "scale must be finite, not NaN", {.scale = NAN});
  refuse(q, q, q, out, "scale must be finite, not infinite", {.scale = INFINITY});
  const std::vector<Index> two = {0, 1};
  refuse(q, q, q, out, "2 first_queries for a batch of 1", {.first_queries = two});
  const std::vector<Index> one = {0};
  refuse(q, q, q, out, "not both", {.first_query = 1, .first_queries = one});
  refuse(q, q, q, out, "out of range", {.first_query = std::numeric_limits<Index>::max()});
  Tensor<float, 3> lse({1, 1, 4});
  refuse(q, q, q, out, "log_sum_exp is (1, 1, 4), expected", {.log_sum_exp = lse});
}

TEST(Problem, OutputThatSharesMemoryIsRefused) {
  Tensor<float, 4> memory({1, 1, 40, 8});
  const auto all = memory.view();
  const auto rows = [&](Index first, Index last) { return all.slice(2, first, last); };
  const auto q = rows(0, 5), k = rows(5, 10), v = rows(10, 15);
  auto on_queries = rows(0, 5), on_keys = rows(9, 14), on_values = rows(14, 19);
  refuse(q, k, v, on_queries, "out overlaps queries");
  refuse(rows(30, 35), k, rows(36, 40).slice(2, 0, 1).broadcast(2, 5), on_keys,
         "out overlaps keys");
  refuse(q, k, v, on_values, "out overlaps values");
  auto broadcast = rows(20, 21).broadcast(2, 5);
  refuse(q, k, v, broadcast, "elements of out share memory");
  auto apart = rows(20, 25);
  attention(q, k, v, Causal{}, apart);
  attention(q, q, q, Causal{}, apart);  // inputs may be one tensor
  const TensorView<float, 1> on_out(&memory(0, 0, 22, 0), {5});
  refuse(q, k, v, apart, "log_sum_exp overlaps", {.log_sum_exp = on_out});
}

TEST(Problem, ColumnsOfOneMatrixAreTensorsOfTheirOwn) {
  std::mt19937_64 bits(3);
  for (const Index dim : {1, 5, 33}) {
    auto memory = random_tensor<float, 3>({2, 70, 8 * dim}, bits);  // queries, keys, values, out
    const auto before = memory;
    const auto part = [&](auto& tensor, Index i) {
      return tensor.view()
          .slice(2, 2 * i * dim, 2 * (i + 1) * dim)
          .split(2, dim)
          .permute({0, 2, 1, 3});
    };
    const auto out = part(memory, 3);
    attention(part(memory, 0), part(memory, 1), part(memory, 2), Causal{}, out);
    const auto expected = attention(part(before, 0), part(before, 1), part(before, 2), Causal{});
    EXPECT_TRUE(same_bits(Tensor<float, 4>::copy_of(out), expected)) << dim;
    copy(part(before, 3), out);
    EXPECT_TRUE(same_bits(memory, before)) << dim;  // and nothing else was written
  }
}

TEST(Problem, NothingWrittenSharesMemoryWithWhatChangesScores) {
  Tensor<float, 4> q({1, 1, 5, 8}), own({1, 1, 5, 8}), memory({1, 1, 6, 8});
  const auto out = memory.view().slice(2, 0, 5);
  const TensorView<float, 1> lse(memory.data(), {5});
  float* last = memory.data() + 4;  // in both of them
  const TensorView<const float, 2> table(last, {1, 1}), bias(last, {5, 5}, {0, 0});
  const auto one = OwnedArray<float>::borrowed({last, 1});
  refuse(q, q, q, out, "out overlaps bias", {.bias = bias});
  refuse(q, q, q, out, "out overlaps relative_bias", {.relative_bias = table});
  refuse(q, q, q, out, "out overlaps alibi_slopes", {.alibi_slopes = one});
  refuse(q, q, q, out, "out overlaps sinks", {.sinks = one});
  const auto* place = reinterpret_cast<const Index*>(last);
  const auto positions = OwnedArray<Index>::borrowed({place, 1});
  refuse(q, q, q, out, "out overlaps first_queries", {.first_queries = positions});
  refuse(q, q, q, out, "out overlaps key_counts", {.key_counts = positions});
  refuse(q, q, q, own, "log_sum_exp overlaps first_queries",
         {.first_queries = positions, .log_sum_exp = lse});
  refuse(q, q, q, own, "log_sum_exp overlaps bias", {.log_sum_exp = lse, .bias = bias});
  refuse(q, q, q, own, "log_sum_exp overlaps relative_bias",
         {.log_sum_exp = lse, .relative_bias = table});
  refuse(q, q, q, own, "log_sum_exp overlaps alibi_slopes",
         {.log_sum_exp = lse, .alibi_slopes = one});
  refuse(q, q, q, own, "log_sum_exp overlaps sinks", {.log_sum_exp = lse, .sinks = one});
}

}  // namespace
}  // namespace heed::test
