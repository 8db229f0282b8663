// SPDX-License-Identifier: MIT
// Forward attention: the fused kernel beside Eigen, over masks, lengths, head dims and threads.
// GFLOP/s count visible scores only, 4 · head_dim each; peak_share is against the multiply-add peak
// of the same number of threads measured in this run. Results are compared before they are timed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <heed/attention.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>

#include "eigen_baselines.hpp"
#include "machine.hpp"

namespace {

using namespace heed;

double peak = 0;

struct Case {
  const char* name;
  Index heads, length, dim;
};
constexpr Case cases[] = {{"H4_L4096_D64", 4, 4096, 64}, {"H4_L4096_D128", 4, 4096, 128},
                          {"H8_L512_D64", 8, 512, 64},   {"H1_L4096_D64", 1, 4096, 64},
                          {"H8_L2048_D80", 8, 2048, 80}, {"H8_L2048_D256", 8, 2048, 256},
                          {"H8_L64_D64", 8, 64, 64},     {"H8_L16_D64", 8, 16, 64}};

struct Problem {
  explicit Problem(const Case& c)
      : queries({1, c.heads, c.length, c.dim}),
        keys(queries.extents()),
        values(queries.extents()),
        out(queries.extents()) {
    Random random(1);
    for (auto* tensor : {&queries, &keys, &values}) {
      for (float& value : *tensor) value = static_cast<float>(random.normal());
    }
  }
  Tensor<float, 4> queries, keys, values, out;
};

double visible_scores(const Mask& mask, Index length) {
  return static_cast<double>(
      statistics(mask, MaskWindow{.queries = length, .keys = length}).visible);
}

/// The largest difference from Eigen on the first rows, where there is a mask that Eigen can do.
void check(const Problem& problem, bool causal) {
  Tensor<float, 4> expected(problem.out.extents());
  bench::eigen_attention(problem.queries, problem.keys, problem.values, expected, causal, 256);
  float worst = 0;
  for (Index i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::fabs(expected.data()[i] - problem.out.data()[i]));
  }
  if (!(worst < 1e-4f)) {
    std::fprintf(stderr, "results differ from Eigen's by %g\n", static_cast<double>(worst));
    std::exit(1);
  }
}

void report(benchmark::State& state, double flops, Index threads) {
  const double total = flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
  if (peak > 0) {
    state.counters["peak_share"] = benchmark::Counter(
        total * 1e-9 / peak / static_cast<double>(threads), benchmark::Counter::kIsRate);
  }
}

void fused(benchmark::State& state, Case c, Mask mask, Index threads, bool checked, bool causal) {
  set_thread_count(threads);
  Problem problem(c);
  attention(problem.queries, problem.keys, problem.values, mask, problem.out);
  if (checked) check(problem, causal);
  for (auto _ : state) {
    attention(problem.queries, problem.keys, problem.values, mask, problem.out);
    benchmark::DoNotOptimize(problem.out.data());
  }
  report(state, 4.0 * static_cast<double>(c.dim * c.heads) * visible_scores(mask, c.length),
         threads);
}

void eigen(benchmark::State& state, Case c, bool causal, Index block) {
  Problem problem(c);
  for (auto _ : state) {
    bench::eigen_attention(problem.queries, problem.keys, problem.values, problem.out, causal,
                           block);
    benchmark::DoNotOptimize(problem.out.data());
  }
  report(state,
         4.0 * static_cast<double>(c.dim * c.heads) *
             visible_scores(causal ? Mask(masks::Causal{}) : Mask(masks::Full{}), c.length),
         1);
}

void add_cases() {
  const auto add = [](std::string name, auto... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), arguments...)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  for (const Case& c : cases) {
    for (const bool causal : {false, true}) {
      const std::string name = std::string(c.name) + (causal ? "/causal" : "/none");
      const Mask mask = causal ? Mask(masks::Causal{}) : Mask(masks::Full{});
      for (const Index threads : {1, 2}) {
        add("fused/" + name + "/threads:" + std::to_string(threads), fused, c, mask, threads, true,
            causal);
      }
      add("eigen_blocked/" + name, eigen, c, causal, Index{256});
      if (c.length <= 2048) add("eigen_naive/" + name, eigen, c, causal, c.length);
    }
  }
  const Case c{"H4_L4096_D64", 4, 4096, 64};
  const auto masked = [&](const char* name, const Mask& mask) {
    add(std::string("fused/") + c.name + "/" + name, fused, c, mask, Index{1}, false, false);
  };
  masked("window_1024", masks::last_n(1024));
  masked("prefix_512", masks::Prefix(512));
  masked("documents_700_causal",
         masks::Causal{} & masks::Segments({0, 700, 1400, 2100, 2800, 3500, 4096}));
  masked("block_sparse_10%", masks::BlockSparse(32, 32, 128, [](Index row, Index column) {
           return row == column || (row * 7 + column * 3) % 13 == 0;
         }));
  masked("window_128_or_global", masks::last_n(128) | (masks::Causal{} & masks::EveryNthKey{256}));
  masked("lambda_causal", masks::predicate([](Index query, Index key) { return key <= query; }));
  masked("dense_causal", masks::dense(masks::Causal{}, {1, 1, 4096, 4096}));
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
