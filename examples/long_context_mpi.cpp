// SPDX-License-Identifier: MIT
// A sequence that no process holds: attention over several ranks, with the bits of one.
//   mpiexec -n 4 long_context_mpi
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/core/random.hpp>
#include <heed/distributed.hpp>
#include <heed/masks.hpp>

#include "common.hpp"

using namespace heed;

namespace {

constexpr Index dim = 64;

/// Numbers that belong to their token, wherever it lies: stream 0 for queries, 1 keys, 2 values.
Tensor<float, 2> tokens_of(std::span<const TokenRange> ranges, std::uint64_t stream) {
  Index count = 0;
  for (const TokenRange& range : ranges) count += range.count();
  auto tensor = Tensor<float, 2>::uninitialized({count, dim});
  float* to = tensor.data();
  for (const TokenRange& range : ranges) {
    for (Index token = range.first; token < range.end; ++token) {
      Random random(static_cast<std::uint64_t>(token), stream);
      for (Index i = 0; i < dim; ++i) *to++ = random.uniform<float>() - 0.5f;
    }
  }
  return tensor;
}

/// A number that depends on every bit of the rows and on their tokens, but not on who holds them.
std::uint64_t fingerprint(const Tensor<float, 2>& rows, std::span<const TokenRange> ranges) {
  std::uint64_t all = 0;
  Index row = 0;
  for (const TokenRange& range : ranges) {
    for (Index token = range.first; token < range.end; ++token, ++row) {
      std::uint64_t hash = 0xCBF29CE484222325u ^ static_cast<std::uint64_t>(token);
      for (Index i = 0; i < dim; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &rows(row, i), sizeof bits);
        hash = (hash ^ bits) * 0x100000001B3u;
      }
      all += hash * 0x9E3779B97F4A7C15u;
    }
  }
  return all;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// What a rank has to tell.
struct Told {
  double values[5];  // tokens, MiB before, MiB at most, MiB sent, seconds
  std::uint64_t fingerprint;
};

std::chrono::steady_clock::time_point start_together(const Communicator& ranks) {
  ranks.barrier();
  return std::chrono::steady_clock::now();
}

Told compute(const Communicator& ranks, Index tokens, Index window) {
  const double before = peak_mebibytes();
  // [call]
  const auto shards = TokenShards::zigzag(tokens, ranks.size());
  const auto mine = shards.ranges(ranks.rank());  // the tokens of this rank
  const auto queries = tokens_of(mine, 0), keys = tokens_of(mine, 1), values = tokens_of(mine, 2);
  Tensor<float, 2> out(queries.extents());
  const auto start = start_together(ranks);
  sharded_attention(ranks, shards, queries, keys, values, masks::last_n(window), out);
  // [/call]
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{static_cast<double>(shards.count(ranks.rank())), before, peak_mebibytes(),
           static_cast<double>(ranks.bytes_sent()) / (1 << 20), seconds.count()},
          fingerprint(out, mine)};
}

/// Whether one process, which holds all tokens, gets the same fingerprint.
bool as_one_process(Index tokens, Index window, std::uint64_t expected) {
  const TokenRange all[] = {{0, tokens}};
  const auto out =
      attention(tokens_of(all, 0), tokens_of(all, 1), tokens_of(all, 2), masks::last_n(window));
  return fingerprint(out, all) == expected;
}

void report(const Communicator& ranks, const Told& mine, Index tokens, Index window, bool quick,
            bool check) {
  Tensor<double, 2> told({ranks.size(), 5});
  Tensor<std::uint64_t, 2> parts({ranks.size(), 1});
  Tensor<std::uint64_t, 1> part({Index{1}});
  part(0) = mine.fingerprint;
  ranks.all_gather(TensorView<const double, 1>(mine.values, {5}), told);
  ranks.all_gather(part, parts);
  if (ranks.rank() != 0) return;
  std::printf("%td tokens of 64 numbers on %td ranks, each token sees the last %td\n\n", tokens,
              ranks.size(), window);
  std::printf(quick ? "rank   tokens   MiB sent\n"
                    : "rank   tokens   MiB sent   MiB at the start   at most      time\n");
  std::uint64_t sum = 0;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    std::printf("%4td %8.0f %10.1f", rank, told(rank, 0), told(rank, 3));
    if (!quick) {
      std::printf(" %18.0f %9.0f %7.1f s", told(rank, 1), told(rank, 2), told(rank, 4));
    }
    std::printf("\n");
    sum += parts(rank, 0);
  }
  if (!quick) {
    std::printf("\nfingerprint of all rows, the same for any number of ranks: %016llx\n",
                static_cast<unsigned long long>(sum));
  }
  if (!check) return;
  std::printf("\none process with all tokens computes the same bits: %s\n",
              as_one_process(tokens, window, sum) ? "yes" : "no");
}

}  // namespace

int main(int argc, char** argv) {
  Index tokens = 131072, window = 131072;
  bool quick = false, check = false;
  CLI::App app{"Attention over a sequence that lies on several ranks: mpiexec -n 4 " +
               std::string("long_context_mpi [OPTION...]")};
  app.add_option("--tokens", tokens, "of the sequence, over all ranks")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--window", window, "tokens that each token sees")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--check", check, "compare with one process that holds all tokens");
  example::add_threads(app);
  app.add_flag("--quick", quick, "8,192 tokens and --check, no times: the same output everywhere");
  return example::run(app, argc, argv, [&] {
    if (quick) {
      tokens = window = 8192;
      check = true;
    }
    return run_ranks(argc, argv, [&](const Communicator& ranks) {
      const Told mine = compute(ranks, tokens, window);
      report(ranks, mine, tokens, window, quick, check);
      return 0;
    });
  });
}
