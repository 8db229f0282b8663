// SPDX-License-Identifier: MIT
// Seconds of calls whose time is spent in kernels, one thread, each the best of some. Beside them a
// mask from a lambda, whose time is the program's own code asked about every score.
#include <chrono>
#include <cstdio>

#include <heed/attention.hpp>
#include <heed/tensor.hpp>

namespace {

using heed::Index;
using heed::Tensor;

template <std::size_t Rank>
Tensor<float, Rank> numbers(const heed::Extents<Rank>& extents) {
  Tensor<float, Rank> x(extents);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return x;
}

template <class Call>
void print(const char* name, const Call& call) {
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (taken.count() < best) best = taken.count();
  }
  std::printf("%s %.9f\n", name, best);
}

}  // namespace

int main() {
  heed::set_thread_count(1);
  const heed::masks::Causal causal;
  const auto q = numbers<4>({1, 8, 1024, 64});
  Tensor<float, 4> out(q.extents()), dq(q.extents()), dk(q.extents()), dv(q.extents());
  Tensor<float, 3> lse({1, 8, 1024});
  print("forward", [&] { heed::attention(q, q, q, causal, out, {.log_sum_exp = lse}); });
  print("backward", [&] { heed::attention_backward(q, q, q, causal, out, lse, out, dq, dk, dv); });
  const auto one = numbers<4>({1, 8, 1, 64}), keys = numbers<4>({1, 8, 4096, 64});
  Tensor<float, 4> one_out(one.extents());
  print("decode", [&] { heed::attention(one, keys, keys, causal, one_out); });
  const auto a = numbers<2>({512, 768}), b = numbers<2>({768, 512});
  Tensor<float, 2> c({512, 512});
  print("product", [&] { heed::matrix_product(a, b, c); });
  const auto row = numbers<2>({1, 768}), weight = numbers<2>({2048, 768});
  Tensor<float, 2> y({1, 2048});
  print("row", [&] { heed::matrix_product(row, weight.view().transpose(), y); });
  const auto lambda = heed::predicate([](Index query, Index key) { return key <= query; });
  print("lambda", [&] { heed::attention(q, q, q, lambda, out); });
}
