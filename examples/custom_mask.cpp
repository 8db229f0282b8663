// SPDX-License-Identifier: MIT
// A mask of one's own: what it takes, how it combines, and what saying more about it buys.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <CLI/CLI.hpp>

#include <heed/attention.hpp>
#include <heed/core/random.hpp>

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

// [coverage]
/// The same, and it knows which tiles it leaves empty: those are never computed.
struct DilatedTiles : Dilated {
  Coverage coverage(Tile tile) const {
    const bool after = tile.first_key > tile.last_query;
    const bool before = tile.last_key <= tile.first_query - 2 * count;
    return after || before ? Coverage::none : Coverage::partial;
  }
};
// [/coverage]

// [lanes]
/// The same, and it answers for 64 queries at once: bit i is the query first_query + i.
struct DilatedLanes : DilatedTiles {
  static constexpr bool depends_on_head = false;
  void lane_words(Tile tile, std::uint64_t* words) const {
    for (Index key = tile.first_key; key <= tile.last_key; ++key) {
      const Index lane = key - tile.first_query;  // of the query at this key's position
      const std::uint64_t even = 0x5555555555555555u << (lane & 1);
      *words++ = even & lanes_between(lane, lane + 2 * count - 1);
    }
  }
};
// [/lanes]

namespace {

template <class M>
void show(const char* name, const M& mask, const Tensor<float, 4>& tokens, bool timed) {
  const auto tiles = plan(tokens, tokens, mask);
  double best = 1e9;
  for (int run = 0; timed && run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    attention(tokens, tokens, tokens, mask);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  std::printf("%-34s %6td of %td tiles computed", name, tiles.partial + tiles.full, tiles.tiles());
  if (timed) std::printf("  %7.2f ms", best * 1e3);
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("A mask of one's own, faster each time it says more about itself.");
  bool quick = false;
  Index length = 4096;
  std::uint64_t seed = 1;
  app.add_flag("--quick", quick, "no timings; for tests");
  app.add_option("--length", length, "tokens")->check(CLI::Range(1, 65536));
  app.add_option("--seed", seed, "of the random tokens");
  CLI11_PARSE(app, count, arguments);

  std::printf("A dilated window of 4 keys:\n%s\n", describe(Dilated{4}, 12, 12).c_str());
  // [combine]
  const auto every_third = predicate([](Index query, Index key) { return (query + key) % 3 == 0; });
  const auto combined = (Dilated{4} | every_third) & ~masks::GlobalKeys{5} & masks::Causal{};
  // [/combine]
  std::printf("Combined with a lambda, minus every fifth key, causal:\n%s\n",
              describe(combined, 12, 12).c_str());

  Tensor<float, 4> tokens({1, 4, length, 64});
  Random random(seed);
  for (float& value : tokens) value = random.uniform<float>();
  std::printf("Attention over %td tokens, 4 heads, a dilated window of 128 keys:\n", length);
  show("allows alone", Dilated{128}, tokens, !quick);
  show("with coverage", DilatedTiles{{128}}, tokens, !quick);
  show("with coverage and lane words", DilatedLanes{{{128}}}, tokens, !quick);
}
