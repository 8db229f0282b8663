// SPDX-License-Identifier: MIT
// Every mask, drawn: a row per query, a column per key, a block where the query may look.
#include <cstdio>
#include <string>
#include <vector>
#include <CLI/CLI.hpp>

#include <heed/masks.hpp>

namespace {

using namespace heed;
using namespace heed::masks;

struct Shown {
  const char* name;
  const char* what;
  Mask small;  // drawn, 16 × 16
  Mask large;  // counted, 2048 × 2048
};

std::vector<Index> every(Index step, Index length) {
  std::vector<Index> positions;
  for (Index i = 0; i < length; i += step) positions.push_back(i);
  return positions;
}
std::vector<Index> speakers(Index length) {
  std::vector<Index> ids;
  for (Index i = 0; i < length; ++i) ids.push_back(i / (length / 8) % 2);
  return ids;
}
bool some_blocks(Index row, Index column) {
  return row >= column && (row == column || column % 3 == 0);
}

std::vector<Shown> all_masks() {
  return {
      {"Full", "no mask", Full{}, Full{}},
      {"Causal", "look-ahead mask of a decoder", Causal{}, Causal{}},
      {"SlidingWindow{.left = 3, .right = 1}", "neighbors (large: 255 and 0)",
       SlidingWindow{.left = 3, .right = 1}, SlidingWindow{.left = 255, .right = 0}},
      {"Padding({11})", "a sequence of 11 in a batch of 16 (large: 1400 of 2048)", Padding({11}),
       Padding({1400})},
      {"Causal{} & Padding({11})", "both", Causal{} & Padding({11}), Causal{} & Padding({1400})},
      {"ValidKeys", "padding anywhere, from token ids",
       ValidKeys(1, 16, [](Index, Index key) { return key % 5 != 3; }),
       ValidKeys(1, 2048, [](Index, Index key) { return key % 5 != 3; })},
      {"Prefix(5)", "prefix language model (large: 512)", Prefix(5), Prefix(512)},
      {"Chunked{4}", "block-local (large: 256)", Chunked{4}, Chunked{256}},
      {"Causal{} & Strided{3}", "every third key back from itself", Causal{} & Strided{3},
       Causal{} & Strided{64}},
      {"Causal{} & (last_n(3) | GlobalKeys{5})", "sparse: neighbors and every fifth token",
       Causal{} & (last_n(3) | GlobalKeys{5}), Causal{} & (last_n(128) | GlobalKeys{512})},
      {"Segments({0, 5, 9, 16})", "packed documents", Segments({0, 5, 9, 16}),
       Segments({0, 700, 1300, 2048})},
      {"consecutive_groups({3, 5, 2, 6})", "turns of a dialogue", consecutive_groups({3, 5, 2, 6}),
       consecutive_groups({400, 700, 300, 648})},
      {"Groups", "two speakers taking turns", Groups(speakers(16)), Groups(speakers(2048))},
      {"BlockSparse", "squares on and off", BlockSparse(4, 4, 4, some_blocks),
       BlockSparse(16, 16, 128, some_blocks)},
      {"last_n(3) | GlobalTokens({0, 8})", "two tokens that see and are seen",
       last_n(3) | GlobalTokens({0, 8}), last_n(128) | GlobalTokens(every(1024, 2048))},
      {"MaskedToken({2, 7, 12})", "BERT: a [MASK] does not see itself", MaskedToken({2, 7, 12}),
       MaskedToken(every(7, 2048))},
      {"Tree(8, …)", "drafts of speculative decoding over 8 cached tokens",
       Tree(8, {-1, 0, 0, 1, 1, 2, -1, 6}), Tree(2040, {-1, 0, 0, 1, 1, 2, -1, 6})},
      {"GridNeighborhood{4, 4, 1}", "cells of an image and their neighbors",
       GridNeighborhood{4, 4, 1}, GridNeighborhood{32, 64, 3}},
      {"predicate(a lambda)", "anything else",
       predicate([](Index query, Index key) { return (query ^ key) % 3 == 0; }),
       predicate([](Index query, Index key) { return (query ^ key) % 3 == 0; })},
  };
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app(
      "Draws every mask and says how much of the scores it lets through and how many tiles "
      "of 2048 x 2048 scores a kernel has to compute.");
  bool ascii = false, quick = false;
  std::string only;
  app.add_flag("--ascii", ascii, "# and . in place of blocks");
  app.add_flag("--quick", quick, "the same; for tests");
  app.add_option("--only", only, "only masks whose name contains this");
  CLI11_PARSE(app, count, arguments);
  for (const Shown& shown : all_masks()) {
    const std::string name = shown.name;
    if (name.find(only) == std::string::npos) continue;
    const std::string drawn = ascii ? describe(shown.small, {.queries = 16, .keys = 16}, "# ", ". ")
                                    : describe(shown.small, MaskWindow{.queries = 16, .keys = 16});
    const auto large = statistics(shown.large, {.queries = 2048, .keys = 2048});
    std::printf("%s: %s\n%s", shown.name, shown.what,
                drawn.substr(0, drawn.rfind('\n', drawn.size() - 2) + 1).c_str());
    std::printf("2048 x 2048: %.1f %% of scores visible, %.1f %% of tiles computed\n\n",
                100 * large.visible_share(), 100 * large.computed_share());
  }
}
