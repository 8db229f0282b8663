// SPDX-License-Identifier: MIT
// A sequence that no process holds: attention over several ranks, with the bits of one; when each
// rank computes and sends, and what a model of the machines says of larger worlds.
//   mpiexec -n 4 long_context_mpi
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/distributed.hpp>
#include <heed/masks.hpp>
#include <heed/plot.hpp>

#include "common.hpp"
#include "pictures.hpp"

using namespace heed;

namespace {

constexpr Index dim = 64;
constexpr RingShape call_shape{.head_dim = dim, .value_dim = dim};

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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Runs of about a chunk where each token sees all before it: keys come in order, and so all ranks
/// always have work. With a window fewer runs see fewer keys of others.
Index turns_for(Index tokens, Index ranks, Index window) {
  return window < tokens ? 1 : std::max<Index>(1, tokens / (2 * ranks * simd::key_chunk));
}
TokenShards shards_for(Index tokens, Index ranks, Index window) {
  return TokenShards::zigzag(tokens, ranks, turns_for(tokens, ranks, window));
}

Told compute(const Communicator& ranks, Index tokens, Index window, RingTrace& trace) {
  const double before = peak_mebibytes();
  const Index turns = turns_for(tokens, ranks.size(), window);
  // [call]
  const auto shards = TokenShards::zigzag(tokens, ranks.size(), turns);
  const auto mine = shards.ranges(ranks.rank());  // the tokens of this rank
  const auto queries = tokens_of(mine, 0), keys = tokens_of(mine, 1), values = tokens_of(mine, 2);
  Tensor<float, 2> out(queries.extents());
  const auto start = start_together(ranks);
  sharded_attention(ranks, shards, queries, keys, values, masks::last_n(window), out, {}, &trace);
  // [/call]
  const double seconds = seconds_since(start), sent = static_cast<double>(ranks.bytes_sent());
  return {{static_cast<double>(shards.count(ranks.rank())), before, peak_mebibytes(),
           sent / (1 << 20), seconds},
          fingerprint(out, mine)};
}

/// The least that ranks must receive: the keys and values that their queries see and others hold.
double least_mebibytes(const TokenShards& shards, Index window) {
  Index tokens = 0;
  for (Index rank = 0; rank < shards.ranks(); ++rank) {
    Index seen_to = 0;
    for (const TokenRange& run : shards.ranges(rank)) {
      const Index first = std::max(seen_to, run.first - window + 1);
      tokens += run.first - std::min(first, run.first);
      for (const TokenRange& other : shards.ranges(rank)) {  // its own keys between
        const Index from = std::max(first, other.first), to = std::min(run.first, other.end);
        tokens -= std::max<Index>(0, to - from);
      }
      seen_to = run.end;
    }
  }
  return static_cast<double>(tokens * call_shape.key_bytes()) / (1 << 20);
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
  double sent = 0;
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    std::printf("%4td %8.0f %10.1f", rank, told(rank, 0), told(rank, 3));
    if (!quick) {
      std::printf(" %18.0f %9.0f %7.1f s", told(rank, 1), told(rank, 2), told(rank, 4));
    }
    std::printf("\n");
    sum += parts(rank, 0);
    sent += told(rank, 3);
  }
  std::printf("\nsent in all: %.1f MiB; the keys that ranks see and others hold: %.1f MiB\n", sent,
              least_mebibytes(shards_for(tokens, ranks.size(), window), window));
  if (!quick) {
    std::printf("fingerprint of all rows, the same for any number of ranks: %016llx\n",
                static_cast<unsigned long long>(sum));
  }
  if (!check) return;
  std::printf("\none process with all tokens computes the same bits: %s\n",
              as_one_process(tokens, window, sum) ? "yes" : "no");
}

// When ranks compute and send, measured and as the model has it. ---------------------------------

/// The traces of all ranks, on rank 0.
std::vector<RingTrace> gathered(const Communicator& ranks, const RingTrace& mine) {
  static_assert(std::is_trivially_copyable_v<RingEvent> && sizeof(RingEvent) % 8 == 0);
  constexpr Index words = sizeof(RingEvent) / 8;
  std::vector<RingTrace> all{mine};
  Tensor<Index, 1> count({Index{1}});
  for (Index rank = 1; rank < ranks.size(); ++rank) {
    if (ranks.rank() == rank) {
      count(0) = static_cast<Index>(mine.size());
      Tensor<double, 1> sent({count(0) * words});
      std::memcpy(sent.data(), mine.data(), mine.size() * sizeof(RingEvent));
      ranks.send(count, 0);
      ranks.send(sent, 0);
    } else if (ranks.rank() == 0) {
      ranks.receive(count, rank);
      Tensor<double, 1> got({count(0) * words});
      ranks.receive(got, rank);
      all.emplace_back(static_cast<std::size_t>(count(0)));
      std::memcpy(static_cast<void*>(all.back().data()), got.data(),
                  all.back().size() * sizeof(RingEvent));
    }
  }
  return all;
}

/// A line at the height of each rank while it computes, one below it while it sends; all of them
/// long enough to be seen.
Chart chart_of(const std::vector<RingTrace>& traces, const std::string& title) {
  double last = 0;
  for (const RingTrace& trace : traces) {
    for (const RingEvent& event : trace) last = std::max(last, event.end);
  }
  Chart chart{.title = title, .x_title = "seconds", .y_title = "rank"};
  Series computes{.name = "computes"}, sends{.name = "sends"};
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    for (const RingEvent& event : traces[rank]) {
      const bool computed = event.kind == RingEvent::Kind::compute;
      if (event.kind == RingEvent::Kind::receive) continue;
      Series& series = computed ? computes : sends;
      const double y = static_cast<double>(rank) - (computed ? 0 : 0.25);
      const double end = std::max(event.end, event.begin + last / 400);
      series.x.insert(series.x.end(), {event.begin, end, end});
      series.y.insert(series.y.end(), {y, y, std::numeric_limits<double>::quiet_NaN()});
    }
  }
  chart.series = {computes, sends};
  chart.low = -0.5;
  chart.high = static_cast<double>(traces.size()) - 0.5;
  return chart;
}

/// Seconds of a message of so many bytes from rank 0 to rank 1, the least of many.
double message_seconds(const Communicator& ranks, Index bytes) {
  if (ranks.size() == 1) return 1e-9;
  const Tensor<char, 1> message({bytes});
  Tensor<char, 1> answer({bytes});
  double least = 1;
  for (int turn = 0; turn < 50; ++turn) {
    const auto start = start_together(ranks);
    if (ranks.rank() == 0) {
      ranks.send(message, 1);
      ranks.receive(answer, 1);
    } else if (ranks.rank() == 1) {
      ranks.receive(answer, 0);
      ranks.send(message, 0);
    }
    least = std::min(least, seconds_since(start) / 2);
  }
  return least;
}

double in_all(const Communicator& ranks, double mine) {
  Tensor<double, 1> one({Index{1}});
  Tensor<double, 2> all({ranks.size(), 1});
  one(0) = mine;
  ranks.all_gather(one, all);
  double sum = 0;
  for (const double each : all) sum += each;
  return sum;
}

Tensor<double, 2> scores_of(Index tokens, Index ranks, Index window) {
  const auto shards = shards_for(tokens, ranks, window);
  return scores_by_chunk(shards, shards, call_shape, masks::last_n(window));
}

/// What these machines can do: by messages, and by what the call itself computed in a second.
RingCosts measured_costs(const Communicator& ranks, Index tokens, Index window,
                         const RingTrace& trace) {
  const Index bytes = simd::key_chunk * call_shape.key_bytes();
  double seconds = 0, scores = 0;
  for (const RingEvent& event : trace) {
    if (event.kind == RingEvent::Kind::compute) seconds += event.end - event.begin;
  }
  for (const double score : scores_of(tokens, ranks.size(), window)) scores += score;
  const double latency = message_seconds(ranks, 8), whole = message_seconds(ranks, bytes);
  return {latency, static_cast<double>(bytes) / std::max(1e-9, whole - latency),
          scores * 4 * static_cast<double>(dim) / in_all(ranks, seconds)};
}

struct Prediction {
  std::vector<RingTrace> traces;
  double seconds = 0;
};
Prediction predicted(const RingCosts& costs, Index tokens, Index window, Index ranks) {
  const auto shards = shards_for(tokens, ranks, window);
  Prediction told;
  const auto scores = scores_of(tokens, ranks, window);
  for (auto& rank : simulate_ring(shards, call_shape, costs, scores, true)) {
    told.seconds = std::max(told.seconds, rank.end);
    told.traces.push_back(std::move(rank.trace));
  }
  return told;
}

void compare_with_model(const Communicator& ranks, const RingCosts& costs, Index tokens,
                        Index window, double mine, const RingTrace& trace,
                        const example::Pictures& pictures) {
  const double seconds = in_all(ranks, mine) / static_cast<double>(ranks.size());
  const auto traces = gathered(ranks, trace);
  if (ranks.rank() != 0) return;
  const Prediction model = predicted(costs, tokens, window, ranks.size());
  std::printf(
      "\nmessages of %.1f us and %.2f GB/s, %.1f GFLOP/s for each rank: the model says "
      "%.2f s, measured %.2f s (%+.1f %%)\n",
      costs.latency * 1e6, costs.bandwidth / 1e9, costs.flops / 1e9, model.seconds, seconds,
      100 * (model.seconds / seconds - 1));
  const std::vector<Chart> charts{chart_of(traces, "Measured"),
                                  chart_of(model.traces, "As the cost model has it")};
  pictures.write(std::span<const Chart>(charts), Index{1});
}

// Ranks against threads. --------------------------------------------------------------------------

/// Waits for all ranks without taking a processor, as a barrier would.
void wait_asleep(const Communicator& ranks) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(ranks.handle(), &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) ::usleep(1000);
  }
}

/// All ranks, then one process with as many threads as all of them have, in turns; the least of
/// five each.
void compare_with_threads(const Communicator& ranks, Index tokens, Index window) {
  const Index threads = thread_count();
  double by_ranks = 1e9, by_threads = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    RingTrace trace;
    const Told told = compute(ranks, tokens, window, trace);
    by_ranks =
        std::min(by_ranks, in_all(ranks, told.values[4]) / static_cast<double>(ranks.size()));
    if (ranks.rank() == 0) {
      const TokenRange all[] = {{0, tokens}};
      const auto queries = tokens_of(all, 0), keys = tokens_of(all, 1), values = tokens_of(all, 2);
      set_thread_count(threads * ranks.size());
      Tensor<float, 2> out(queries.extents());
      const auto start = std::chrono::steady_clock::now();
      attention(queries, keys, values, masks::last_n(window), out);
      by_threads = std::min(by_threads, seconds_since(start));
      set_thread_count(threads);
    }
    wait_asleep(ranks);
  }
  if (ranks.rank() != 0) return;
  std::printf(
      "\n%td ranks with %td threads each %.3f s, one process with %td threads %.3f s: "
      "%.2f times its speed\n",
      ranks.size(), threads, by_ranks, threads * ranks.size(), by_threads, by_threads / by_ranks);
}

// Large worlds. -----------------------------------------------------------------------------------

struct WorldOptions {
  bool wanted = false;
  double latency_us = 10, gigabytes = 12.5, gigaflops = 3000;
};

void print_world(const WorldOptions& options, const RingShape& shape, Index tokens, Index machines,
                 const char* name, Index window) {
  const auto shards = shards_for(tokens, machines, window);
  const RingCosts costs{options.latency_us / 1e6, options.gigabytes * 1e9, options.gigaflops * 1e9};
  const auto scores = scores_by_chunk(shards, shards, shape, masks::last_n(window));
  double seconds = 0, computing = 0, sent = 0;
  for (const SimulatedRank& rank : simulate_ring(shards, shape, costs, scores)) {
    seconds = std::max(seconds, rank.end);
    computing += rank.computing / static_cast<double>(machines);
    sent = std::max(sent, static_cast<double>(rank.bytes_sent));
  }
  std::printf("| %s | %td | %td | %.1f s | %.0f %% | %.3g GB | %.3g GB |\n", name, tokens / 1000000,
              machines, seconds, 100 * computing / seconds, sent / 1e9,
              static_cast<double>(shape.bytes_held(shards, shards, 0)) / 1e9);
}

/// A layer of 32 heads, 8 of them with keys, of 128 numbers in bfloat16.
void print_worlds(const WorldOptions& options) {
  const RingShape shape{1, 32, 8, 128, 128, 2};
  std::printf(
      "| mask | million tokens | machines | time | computing | sent by one | held by one |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const Index tokens : {1000000, 10000000}) {
    for (const Index machines : {8, 64, 256, 1024}) {
      print_world(options, shape, tokens, machines, "causal", tokens);
    }
    for (const Index machines : {8, 64, 256, 1024}) {
      print_world(options, shape, tokens, machines, "last 65,536", 65536);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Index tokens = 131072, window = 131072;
  bool quick = false, check = false, model = false, threads = false;
  WorldOptions worlds;
  example::Pictures pictures;
  example::CommandLine app{"Attention over a sequence that lies on several ranks: mpiexec -n 4 " +
                           std::string("long_context_mpi [OPTION...]")};
  app.add_option("--tokens", tokens, "of the sequence, over all ranks").between(1, 1 << 24);
  app.add_option("--window", window, "tokens that each token sees").above(0);
  app.add_flag("--check", check, "compare with one process that holds all tokens");
  app.add_flag("--model", model, "compare the time with that of the cost model");
  app.add_flag("--against-threads", threads, "compare the time with one process of many threads");
  app.add_flag("--worlds", worlds.wanted, "only the model's table of large worlds, as Markdown");
  app.add_option("--latency-us", worlds.latency_us, "of its messages");
  app.add_option("--gigabytes", worlds.gigabytes, "a second that a machine sends");
  app.add_option("--gigaflops", worlds.gigaflops, "of a machine");
  pictures.add_options(app, "when each rank computes and sends");
  example::add_threads(app);
  app.add_flag("--quick", quick, "8,192 tokens and --check, no times: the same output everywhere");
  return app.run(argc, argv, [&] {
    if (quick) {
      tokens = window = 8192;
      check = true;
    }
    if (worlds.wanted) return print_worlds(worlds), 0;
    pictures.check();
    return run_ranks(argc, argv, [&](const Communicator& ranks) {
      RingTrace trace;
      const Told mine = compute(ranks, tokens, window, trace);
      report(ranks, mine, tokens, window, quick, check);
      if (model || pictures.any()) {
        const RingCosts costs = measured_costs(ranks, tokens, window, trace);
        compare_with_model(ranks, costs, tokens, window, mine.values[4], trace, pictures);
      }
      if (threads) compare_with_threads(ranks, tokens, window);
      return 0;
    });
  });
}
