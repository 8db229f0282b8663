// SPDX-License-Identifier: MIT
// Long sequences under a window with a few global tokens: time and memory grow with the length, not
// with its square.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>

#include "common.hpp"

using namespace heed;

namespace {
// Bytes that are allocated at this moment, and the most that were: what attention needs beside its
// tensors is counted, not estimated.
std::atomic<long> now{0}, most{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  const std::size_t header = std::max<std::size_t>(alignment, 64);
  auto* memory =
      static_cast<char*>(std::aligned_alloc(header, (bytes + 2 * header - 1) / header * header));
  if (memory == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(memory) = bytes;
  const long total = now += static_cast<long>(bytes);
  for (long seen = most; total > seen && !most.compare_exchange_weak(seen, total);) {
  }
  return memory + header;
}
void uncounted(void* memory, std::size_t alignment) {
  if (memory == nullptr) return;
  char* start = static_cast<char*>(memory) - std::max<std::size_t>(alignment, 64);
  now -= static_cast<long>(*reinterpret_cast<std::size_t*>(start));
  std::free(start);
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { uncounted(memory, 0); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory, 0); }
void operator delete(void* memory, std::align_val_t alignment) noexcept {
  uncounted(memory, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  uncounted(memory, static_cast<std::size_t>(alignment));
}

namespace {

struct Line {
  double seconds;
  long bytes;  // beside queries, keys, values and out
  double share;
};

Line run(Index length, Index window, Random& random) {
  Tensor<float, 3> queries({2, length, 64}), keys({2, length, 64}), values({2, length, 64});
  for (auto* tensor : {&queries, &keys, &values}) {
    for (float& x : *tensor) x = random.uniform<float>() - 0.5f;
  }
  Tensor<float, 3> out({2, length, 64});
  // [mask]
  // The last `window` tokens, and four tokens that everyone sees and that see everyone.
  const auto mask = masks::Causal{} & (masks::last_n(window) | masks::GlobalTokens({0, 1, 2, 3}));
  // [/mask]
  const AttentionPlan plan = heed::plan(queries, keys, mask);
  const long before = now;
  most = before;
  const auto start = std::chrono::steady_clock::now();
  attention(queries, keys, values, mask, out);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {seconds.count(), most - before, plan.computed_share()};
}

}  // namespace

int main(int argc, char** argv) {
  Index longest = 65536, window = 1024;
  std::uint64_t seed = 1;
  bool quick = false;
  example::CommandLine app{
      "Attention over long sequences: window and global tokens, time and memory by length."};
  app.add_option("--length", longest, "the longest sequence").between(1024, 1 << 22);
  app.add_option("--window", window, "tokens each token sees").above(0);
  example::add_threads(app);
  app.add_option("--seed", seed, "of the numbers");
  app.add_flag("--quick", quick, "short sequences, no times: the same output everywhere");
  return app.run(argc, argv, [&] {
    Random random(seed);
    const Index last = quick ? 8192 : longest;
    std::printf("2 heads of 64, each token sees the last %td and four global tokens\n\n", window);
    std::printf("  tokens   tiles computed   a score matrix   new memory beside tensors");
    std::printf(quick ? "\n" : "      time   per token\n");
    for (Index length = 1024; length <= last; length *= 2) {
      const Line line = run(length, window, random);
      const double matrix =
          static_cast<double>(length) * static_cast<double>(length) * 4 / (1 << 20);
      std::printf("%8td   %12.1f %%   %10.0f MiB   ", length, 100 * line.share, matrix);
      if (quick) {
        std::printf("%s\n", line.bytes < (1 << 20) ? "less than 1 MiB" : "more than 1 MiB");
      } else {
        std::printf("%17.1f KiB   %8.1f ms   %6.2f us\n", static_cast<double>(line.bytes) / 1024,
                    line.seconds * 1e3, line.seconds * 1e6 / static_cast<double>(length));
      }
    }
    if (!quick)
      std::printf("\nThe first call made the threads' own arrays; later ones need no more.\n");
  });
}
