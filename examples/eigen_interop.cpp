// SPDX-License-Identifier: MIT
// Eigen matrices in and out of attention: nothing is copied on the way.
#include <cstdint>
#include <cstdio>
#include <exception>

#include <heed/attention.hpp>
#include <heed/core.hpp>
#include <heed/tensor/eigen.hpp>

#include "common.hpp"

namespace {

using namespace heed;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Matrix>
Matrix random_matrix(Random& random, Index rows, Index columns) {
  return Matrix::NullaryExpr(rows, columns, [&](Eigen::Index) { return random.normal<float>(); });
}

template <class Matrix>
void print_memory(const char* name, const Matrix& matrix) {
  const auto view = view_of(matrix);
  std::printf("   %-8s %td x %td, strides (%td, %td): %s\n", name, view.extent(0), view.extent(1),
              view.stride(0), view.stride(1),
              view.data_handle() == matrix.data() ? "same memory, 0 copies" : "COPIED");
}

void run(std::uint64_t seed, Index length) {
  Random random(seed);
  constexpr Index dim = 8;
  // [in]
  const Eigen::MatrixXf queries = random_matrix<Eigen::MatrixXf>(random, length, dim);
  const RowMajor keys = random_matrix<RowMajor>(random, length, dim);
  const Eigen::MatrixXf table = random_matrix<Eigen::MatrixXf>(random, 2 * dim, length);
  const auto values = table.topRows(dim).transpose();  // columns are tokens

  const Eigen::MatrixXf context = attention(queries, 0.5f * keys, values, masks::Causal{});
  Eigen::MatrixXf ours(length, dim);
  attention(queries, 0.5f * keys, values, masks::Causal{}, ours);  // into your own memory
  // [/in]
  std::puts("1. In: column-major, row-major, half of a table transposed");
  print_memory("queries", queries);
  print_memory("keys", keys);
  print_memory("values", values);
  std::puts("   Out, written in place");
  print_memory("ours", ours);
  std::printf("   the same numbers: %s\n", ours == context ? "yes" : "NO");

  // [out]
  const Tensor<float, 2> tensor = attention(view_of(queries), keys, keys, masks::Causal{});
  const auto as_eigen = as_matrix(tensor);  // an Eigen::Map on the tensor's memory
  const Eigen::MatrixXf weights = attention_weights(queries, 0.5f * keys, masks::Causal{});
  const Eigen::MatrixXf by_hand = weights * values;
  // [/out]
  std::puts("\n2. A tensor as an Eigen matrix");
  std::printf("   tensor: %s\n",
              as_eigen.data() == tensor.data() ? "same memory, 0 copies" : "COPIED");
  std::printf("   every row of the weights adds up to 1: %s\n",
              (weights.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-5f ? "yes" : "NO");
  std::printf("   weights * values in Eigen is the context: %s\n",
              by_hand.isApprox(context, 1e-5f) ? "yes" : "NO");

  // [heads]
  RowMajor joined = random_matrix<RowMajor>(random, length, 2 * dim);   // two heads side by side
  const auto heads = view_of(joined).split(1, dim).permute({1, 0, 2});  // (heads, length, dim)
  const auto two_heads = attention(heads, heads, heads, masks::Causal{});
  // [/heads]
  const Eigen::MatrixXf second = joined.rightCols(dim);
  const auto alone = attention(second, second, second, masks::Causal{});
  const bool equal = as_matrix(two_heads.select(0, 1)) == alone;
  std::puts("\n3. A fused projection as heads, by strides alone");
  std::printf("   joined %td x %td -> heads (%td, %td, %td): %s\n", joined.rows(), joined.cols(),
              heads.extent(0), heads.extent(1), heads.extent(2),
              heads.data_handle() == joined.data() ? "same memory, 0 copies" : "COPIED");
  std::printf("   its second head, and that head computed alone: %s\n",
              equal ? "the same bits" : "DIFFERENT");
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  Index length = 12;
  bool quick = false;
  example::CommandLine app("Eigen matrices in and out of attention without copies.");
  app.add_option("--seed", seed, "of the random matrices");
  app.add_option("--length", length, "tokens").above(0);
  app.add_flag("--quick", quick, "every example takes it; this one is quick as it is");
  return app.run(argc, argv, [&] { run(seed, length); });
}
