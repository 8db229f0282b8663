// SPDX-License-Identifier: MIT
// Backward attention: the fused kernel over masks, lengths, head dims and threads. GFLOP/s count
// visible scores only, 10 · head_dim each (five products); peak_share is against the multiply-add
// peak of the same number of threads measured in this run. Results are compared with the reference
// in double before they are timed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <heed/attention.hpp>
#include <heed/attention/reference.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>

#include "machine.hpp"

namespace {

using namespace heed;

double peak = 0;

struct Case {
  const char* name;
  Index heads, length, dim;
};
constexpr Case cases[] = {{"H25_L1024_D64", 25, 1024, 64}, {"H1_L4096_D64", 1, 4096, 64},
                          {"H8_L2048_D128", 8, 2048, 128}, {"H8_L2048_D64", 8, 2048, 64},
                          {"H8_L2048_D80", 8, 2048, 80},   {"H64_L64_D64", 64, 64, 64},
                          {"H96_L256_D64", 96, 256, 64},   {"H48_L128_D32", 48, 128, 32}};

struct Problem {
  explicit Problem(const Case& c)
      : queries({1, c.heads, c.length, c.dim}),
        keys(queries.extents()),
        values(queries.extents()),
        out(queries.extents()),
        grad_out(queries.extents()),
        grad_queries(queries.extents()),
        grad_keys(queries.extents()),
        grad_values(queries.extents()),
        log_sum_exp({1, c.heads, c.length}) {
    Random random(1);
    for (auto* tensor : {&queries, &keys, &values, &grad_out}) {
      for (float& value : *tensor) value = static_cast<float>(random.normal());
    }
  }
  void forward(const Mask& mask) {
    attention(queries, keys, values, mask, out, {.log_sum_exp = log_sum_exp});
  }
  void backward(const Mask& mask) {
    attention_backward(queries, keys, values, mask, out, log_sum_exp, grad_out, grad_queries,
                       grad_keys, grad_values);
  }
  Tensor<float, 4> queries, keys, values, out, grad_out, grad_queries, grad_keys, grad_values;
  Tensor<float, 3> log_sum_exp;
};

/// The largest difference of a short call's gradients from the reference in double, which is slow.
void check(const Mask& mask, Index dim) {
  Problem problem({"", 2, 200, dim});
  problem.forward(mask);
  problem.backward(mask);
  const auto wide = [](const auto& tensor) {
    Tensor<double, std::remove_cvref_t<decltype(tensor.view())>::rank()> copy(tensor.extents());
    std::copy(tensor.begin(), tensor.end(), copy.begin());
    return copy;
  };
  auto q = wide(problem.queries), k = wide(problem.keys), v = wide(problem.values);
  auto gq = q, gk = k, gv = v;
  reference_backward(q, k, v, mask, wide(problem.out), wide(problem.log_sum_exp),
                     wide(problem.grad_out), gq, gk, gv);
  double worst = 0;
  const auto compare = [&](const Tensor<float, 4>& got, const Tensor<double, 4>& want) {
    for (Index i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(got.data()[i]) - want.data()[i]));
    }
  };
  compare(problem.grad_queries, gq);
  compare(problem.grad_keys, gk);
  compare(problem.grad_values, gv);
  if (!(worst < 1e-4)) {
    std::fprintf(stderr, "gradients differ from the reference's by %g\n", worst);
    std::exit(1);
  }
}

void backward(benchmark::State& state, Case c, Mask mask, Index threads, bool with_forward) {
  set_thread_count(threads);
  check(mask, c.dim);
  Problem problem(c);
  problem.forward(mask);
  for (auto _ : state) {
    if (with_forward) problem.forward(mask);
    problem.backward(mask);
    benchmark::DoNotOptimize(problem.grad_queries.data());
  }
  const auto visible = static_cast<double>(
      statistics(mask, MaskWindow{.queries = c.length, .keys = c.length}).visible);
  const double total = (with_forward ? 14.0 : 10.0) * static_cast<double>(c.dim * c.heads) *
                       visible * static_cast<double>(state.iterations()) * 1e-9;
  state.counters["GFLOP/s"] = benchmark::Counter(total, benchmark::Counter::kIsRate);
  if (peak > 0) {
    state.counters["peak_share"] = benchmark::Counter(total / peak / static_cast<double>(threads),
                                                      benchmark::Counter::kIsRate);
  }
}

void add_cases() {
  const auto add = [](const std::string& name, auto... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), backward, arguments...)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  for (const Case& c : cases) {
    for (const bool causal : {false, true}) {
      const Mask mask = causal ? Mask(masks::Causal{}) : Mask(masks::Full{});
      const std::string name = std::string(c.name) + (causal ? "/causal" : "/none");
      for (const Index threads : {1, 2}) {
        const std::string how = name + "/threads:" + std::to_string(threads);
        add("backward/" + how, c, mask, threads, false);
        add("forward_backward/" + how, c, mask, threads, true);
      }
    }
  }
  const Case c{"H4_L4096_D64", 4, 4096, 64};
  const auto masked = [&](const char* name, const Mask& mask) {
    add(std::string("backward/") + c.name + "/" + name, c, mask, Index{1}, false);
  };
  masked("window_256", masks::last_n(256));
  masked("window_1024", masks::last_n(1024));
  masked("prefix_512", masks::Prefix(512));
  masked("strided_4", masks::Causal{} & masks::Strided{4});
  masked("lambda_causal", masks::predicate([](Index query, Index key) { return key <= query; }));
}

}  // namespace

int main(int count, char** arguments) {
  peak = bench::peak_gflops();
  benchmark::Initialize(&count, arguments);
  benchmark::AddCustomContext("heed_isa", std::string(simd::name(simd::active())));
  benchmark::AddCustomContext("fma_peak_gflops_per_thread", std::to_string(peak));
  benchmark::AddCustomContext("flags", "plain -O2");
  add_cases();
  benchmark::RunSpecifiedBenchmarks();
  std::printf("multiply-add peak of one thread: %.1f GFLOP/s before, %.1f after\n", peak,
              bench::peak_gflops());
  benchmark::Shutdown();
}
