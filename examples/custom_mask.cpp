// SPDX-License-Identifier: MIT
// A mask of one's own: what it takes, how it combines, and what saying more about it buys.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>

#include "common.hpp"

using namespace heed;

// [meaning]
/// Dilated window: every second key of the last 2 · count. One function makes a mask.
struct Dilated {
  Index count;
  bool allows(Position at) const {
    const Index back = at.query - at.key;
    return back >= 0 && back < 2 * count && back % 2 == 0;
  }
};
// [/meaning]

// [keys]
/// A window that grows with the text: each query sees the second half of the tokens before it, and
/// itself. Each query has one range of keys, and the ranges only move right.
struct LaterHalf {
  KeyRange keys(Position at) const { return {at.query / 2, at.query + 1}; }
};
// [/keys]

// [coverage]
/// The same mask with coverage: nothing is asked about tiles that it leaves empty.
struct DilatedTiles : Dilated {
  Coverage coverage(Tile tile) const {
    const bool after = tile.first_key > tile.last_query;
    const bool before = tile.last_key <= tile.first_query - 2 * count;
    return after || before ? Coverage::none : Coverage::partial;
  }
};
// [/coverage]

// [lanes]
/// The same mask with answers for 64 queries at once: bit i is for the query first_query + i.
struct DilatedLanes : DilatedTiles {
  static constexpr bool depends_on_head = false;
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      const Index lane = key - tile.first_query;  // the lane whose query is at this key
      const std::uint64_t even = 0x5555555555555555u << (lane & 1);
      *words++ = even & lanes_between(lane, lane + 2 * count - 1);
    }
  }
};
// [/lanes]

// [check]
/// A dilated window of another size for each head. `check` refuses calls that do not fit.
struct DilatedHeads {
  std::vector<Index> counts;
  bool allows(Position at) const {
    return Dilated{counts[static_cast<std::size_t>(at.head)]}.allows(at);
  }
  void check(MaskShape shape) const {
    if (!shape.has_heads(std::ssize(counts))) {
      throw ShapeError("DilatedHeads: " + std::to_string(counts.size()) + " windows for " +
                       std::to_string(shape.heads) + " heads");
    }
  }
};
// [/check]

namespace {

struct Run {
  Tensor<float, 4> tokens;
  bool timed;
};

/// Attention under the mask, its tiles and, unless --quick, its time: the least of five runs.
template <class M>
Tensor<float, 4> show(const char* name, const M& mask, const Run& run) {
  const auto& tokens = run.tokens;
  const auto tiles = plan(tokens, tokens, mask);
  auto out = attention(tokens, tokens, tokens, mask);
  std::printf("%-32s %6td of %td tiles touched", name, tiles.partial + tiles.full, tiles.tiles());
  double best = 1e9;
  for (int time = 0; run.timed && time < 5; ++time) {
    const auto start = std::chrono::steady_clock::now();
    attention(tokens, tokens, tokens, mask, out);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  if (run.timed) std::printf("  %8.2f ms", best * 1e3);
  std::printf("\n");
  return out;
}

bool same_bits(const Tensor<float, 4>& a, const Tensor<float, 4>& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
}

void draw_own_masks() {
  std::printf("A dilated window of 4 keys:\n%s\n", describe(Dilated{4}, 12, 12).c_str());
  // [combine]
  const auto every_third = [](Index query, Index key) { return (query + key) % 3 == 0; };
  const auto combined = (Dilated{4} | every_third) & ~masks::EveryNthKey{5} & masks::Causal{};
  // [/combine]
  std::printf("Combined with a lambda, minus every fifth key, causal:\n%s\n",
              describe(combined, 12, 12).c_str());
  // [lambda]
  const std::vector<int> speaker = {0, 0, 0, 1, 1, 0, 2, 2, 2, 1, 1, 0};
  const auto not_others = [speaker](Index query, Index key) {
    const auto at = [&](Index token) { return speaker[static_cast<std::size_t>(token)]; };
    return at(key) == 0 || at(key) == at(query);
  };
  // [/lambda]
  std::printf("A dialogue where each hears itself and the narrator:\n%s\n",
              describe(not_others & masks::Causal{}, 12, 12).c_str());
}

/// What saying more buys: the same results, sooner.
void time_them(const Run& run) {
  const Index length = run.tokens.extent(2);
  std::printf("Attention over %td tokens, 4 heads, a dilated window of 128 keys:\n", length);
  const auto plain = show("  allows alone", Dilated{128}, run);
  const auto tiles = show("  with coverage", DilatedTiles{{128}}, run);
  const auto lanes = show("  with coverage and lane words", DilatedLanes{{{128}}}, run);
  std::printf("  %s\n", same_bits(plain, tiles) && same_bits(plain, lanes)
                            ? "the same bits every time"
                            : "DIFFERENT results");

  std::printf("A window that widens:\n");
  const auto scores = show(
      "  a lambda", [](Index query, Index key) { return query / 2 <= key && key <= query; }, run);
  const auto runs = show("  its runs of keys", LaterHalf{}, run);
  std::printf("  %s\n", same_bits(scores, runs) ? "the same bits" : "DIFFERENT results");

  // [lambda_coverage]
  const Index begin = length * 7 / 8;  // the rest is an old topic, dropped from attention
  const auto recent = [begin](Index, Index key) { return key >= begin; };
  const auto recent_tiles = [begin](Tile tile) {
    if (tile.last_key < begin) return Coverage::none;
    return tile.first_key >= begin ? Coverage::full : Coverage::partial;
  };
  const auto fast = predicate(recent, recent_tiles);
  // [/lambda_coverage]
  std::printf("A lambda that lets the last eighth through:\n");
  const auto asked = show("  alone", recent, run);
  const auto told = show("  with a lambda for coverage", fast, run);
  std::printf("  %s\n", same_bits(asked, told) ? "the same bits" : "DIFFERENT results");

  std::printf("A mask that does not fit says so:\n");
  try {
    attention(run.tokens, run.tokens, run.tokens, DilatedHeads{{4, 8, 16}});
  } catch (const ShapeError& error) {
    std::printf("  %s\n", error.what());
  }
}

}  // namespace

int main(int count, char** arguments) {
  example::CommandLine app("A mask of one's own, faster each time it says more about itself.");
  bool quick = false;
  Index length = 0;
  std::uint64_t seed = 1;
  app.add_flag("--quick", quick, "no timings; for tests");
  app.add_option("--length", length, "tokens; 0: 4096, or 1024 with --quick").between(8, 65536);
  app.add_option("--seed", seed, "of the random tokens");
  example::add_threads(app);
  return app.run(count, arguments, [&] {
    if (length == 0) length = quick ? 1024 : 4096;
    Run run{Tensor<float, 4>({1, 4, length, 64}), !quick};
    Random random(seed);
    for (float& value : run.tokens) value = random.uniform<float>();
    draw_own_masks();
    time_them(run);
  });
}
