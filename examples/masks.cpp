// SPDX-License-Identifier: MIT
// Every mask, drawn: a row per query, a column per key, a block where the query may look.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <heed/masks.hpp>
#include <heed/plot.hpp>

#include "common.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;
using namespace heed::masks;

constexpr Index drawn_length = 12;
constexpr Index counted_length = 2048;

/// A mask and the code that makes it.
struct Written {
  std::string code;
  Mask mask;
};
// What is printed is what was compiled.
#define HEED_WRITTEN(...) \
  Written { #__VA_ARGS__, Mask(__VA_ARGS__) }

struct Shown {
  const char* name;
  Written drawn;
  Written counted;
};

// What some of them are made from.
const std::vector<int> ids = {0, 0, 17, 4, 9, 21, 8, 0, 3, 12, 6, 0};  // 0: padding

bool on(Index row, Index column) { return column == row || column == 0; }
bool filled(Index, Index row, Index column) { return row + column != 3; }
bool ring(Index, Index, Index row, Index key) {
  const Index square = (2 * row - 11) * (2 * row - 11) + (2 * key - 11) * (2 * key - 11);
  return 40 < square && square < 130;
}

std::vector<int> long_ids() {
  std::vector<int> tokens(counted_length, 7);
  for (std::size_t i = 0; i < tokens.size() / 4; ++i) tokens[i] = 0;
  return tokens;
}
std::vector<Index> turns(Index length) {
  std::vector<Index> speaker;
  for (Index i = 0; i < counted_length; ++i) speaker.push_back(i / length % 2);
  return speaker;
}

std::vector<Shown> of_distance() {
  return {
      {"Full", HEED_WRITTEN(Full{}), HEED_WRITTEN(Full{})},
      {"Causal", HEED_WRITTEN(Causal{}), HEED_WRITTEN(Causal{})},
      {"SlidingWindow", HEED_WRITTEN(SlidingWindow{.left = 3, .right = 1}),
       HEED_WRITTEN(SlidingWindow{.left = 256, .right = 256})},
      {"last_n", HEED_WRITTEN(last_n(4)), HEED_WRITTEN(last_n(256))},
      {"first_n", HEED_WRITTEN(Causal{} & (first_n(2) | last_n(3))),
       HEED_WRITTEN(Causal{} & (first_n(4) | last_n(256)))},
      {"Chunked", HEED_WRITTEN(Chunked{4}), HEED_WRITTEN(Chunked{256})},
      {"Strided", HEED_WRITTEN(Strided{3}), HEED_WRITTEN(Strided{64})},
      {"EveryNthKey", HEED_WRITTEN(EveryNthKey{5}), HEED_WRITTEN(EveryNthKey{128})},
  };
}

std::vector<Shown> of_sequences() {
  return {
      {"Padding", HEED_WRITTEN(Padding({8})), HEED_WRITTEN(Padding({1400}))},
      {"padding_of_tokens", HEED_WRITTEN(padding_of_tokens(ids, 12, 0)),
       HEED_WRITTEN(padding_of_tokens(long_ids(), 2048, 0))},
      {"Prefix", HEED_WRITTEN(Prefix(5)), HEED_WRITTEN(Prefix(512))},
      {"Segments", HEED_WRITTEN(Segments({0, 5, 7, 12})),
       HEED_WRITTEN(Segments({0, 700, 1300, 2048}))},
      {"Groups", HEED_WRITTEN(Groups({0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1})),
       HEED_WRITTEN(Groups(turns(256)))},
      {"consecutive_groups", HEED_WRITTEN(consecutive_groups({3, 4, 2, 3})),
       HEED_WRITTEN(consecutive_groups({400, 700, 300, 648}))},
      {"create_masks", HEED_WRITTEN(create_masks(ids, 12, ids, 12, 0).target),
       HEED_WRITTEN(create_masks(long_ids(), 2048, long_ids(), 2048, 0).target)},
  };
}

std::vector<Shown> of_tokens() {
  return {
      {"GlobalTokens", HEED_WRITTEN(GlobalTokens({0, 6})), HEED_WRITTEN(GlobalTokens({0, 1024}))},
      {"MaskedToken", HEED_WRITTEN(MaskedToken({2, 5, 9})),
       HEED_WRITTEN(MaskedToken({200, 500, 900}))},
      {"Tree", HEED_WRITTEN(Tree(7, {-1, 0, 0, 1, -1})),
       HEED_WRITTEN(Tree(2043, {-1, 0, 0, 1, -1}))},
      {"BlockSparse", HEED_WRITTEN(BlockSparse(4, 4, 3, on)),
       HEED_WRITTEN(BlockSparse(16, 16, 128, on))},
      {"Dense", HEED_WRITTEN(Dense({1, 1, 12, 12}, ring)),
       HEED_WRITTEN(dense(last_n(256), {1, 1, 2048, 2048}))},
      {"GridNeighborhood", HEED_WRITTEN(GridNeighborhood{.rows = 3, .columns = 4, .radius = 1}),
       HEED_WRITTEN(GridNeighborhood{.rows = 32, .columns = 64, .radius = 3})},
      {"valid_cells", HEED_WRITTEN(GridNeighborhood{3, 4, 1} & valid_cells(1, 3, 4, filled)),
       HEED_WRITTEN(GridNeighborhood{32, 64, 3} & valid_cells(1, 32, 64, filled))},
      {"PerHead", HEED_WRITTEN(PerHead({last_n(2), Causal{}})),
       HEED_WRITTEN(PerHead({last_n(64), Causal{}}))},
      {"predicate", HEED_WRITTEN(predicate([](Index q, Index k) { return (q ^ k) % 3 == 0; })),
       HEED_WRITTEN(predicate([](Index q, Index k) { return (q ^ k) % 3 == 0; }))},
  };
}

std::vector<Shown> of_masks() {
  return {
      {"And", HEED_WRITTEN(Causal{} & Padding({8})), HEED_WRITTEN(Causal{} & Padding({1400}))},
      {"Or", HEED_WRITTEN(Causal{} & (last_n(3) | EveryNthKey{5})),
       HEED_WRITTEN(Causal{} & (last_n(128) | EveryNthKey{512}))},
      {"Not", HEED_WRITTEN(~Chunked{4}), HEED_WRITTEN(~Chunked{256})},
  };
}

void print(const Shown& shown, bool ascii) {
  const MaskWindow small{.queries = drawn_length, .keys = drawn_length};
  const std::string picture = ascii ? describe(shown.drawn.mask, small, ascii_on, ascii_off)
                                    : describe(shown.drawn.mask, small);
  const auto pairs = statistics(shown.drawn.mask, small);
  const auto large =
      statistics(shown.counted.mask, {.queries = counted_length, .keys = counted_length});
  // Without describe's own last line: its tiles are larger than the picture.
  const std::size_t end = picture.rfind('\n', picture.size() - 2) + 1;
  std::printf("%s\n%s%td of %td scores visible (%.1f %%)\n", shown.drawn.code.c_str(),
              picture.substr(0, end).c_str(), pairs.visible, pairs.scores,
              100 * pairs.visible_share());
  std::printf("%s\n2048 x 2048: %.1f %% of scores visible, %.1f %% of tiles touched\n\n",
              shown.counted.code.c_str(), 100 * large.visible_share(),
              100 * large.computed_share());
}

/// Adds a panel of the gallery, in tiles small enough to tell which of them a kernel skips; one for
/// each head where heads differ.
void add_panels(std::vector<Heatmap>& panels, const Shown& shown) {
  const bool differ = std::string(shown.name) == "PerHead";
  for (Index head = 0; head < (differ ? 2 : 1); ++head) {
    const MaskWindow window{.queries = drawn_length,
                            .keys = drawn_length,
                            .head = head,
                            .tile_queries = 4,
                            .tile_keys = 4};
    const std::string which = differ ? ", head " + std::to_string(head) : "";
    panels.push_back(heatmap_of(shown.drawn.mask, window, shown.drawn.code + which));
  }
}

}  // namespace

int main(int count, char** arguments) {
  example::CommandLine app(
      "Draws every mask and says how much of the scores it lets through and, at 2048 x 2048 "
      "scores, "
      "how many tiles of 64 queries by 96 keys a kernel touches.");
  bool ascii = false, quick = false;
  std::string only;
  example::Pictures pictures;
  app.add_flag("--ascii", ascii, "# and . in place of blocks");
  app.add_flag("--quick", quick, "the same; for tests");
  app.add_option("--only", only, "only masks whose name or code contains this");
  pictures.add_options(app, "the masks");
  return app.run(count, arguments, [&] {
    pictures.check();
    std::vector<Heatmap> panels;
    for (const auto& masks : {of_distance(), of_sequences(), of_tokens(), of_masks()}) {
      for (const Shown& shown : masks) {
        const bool named = std::string(shown.name).find(only) != std::string::npos;
        if (!named && shown.drawn.code.find(only) == std::string::npos) continue;
        add_panels(panels, shown);
        print(shown, ascii);
      }
    }
    if (panels.empty()) throw std::invalid_argument("no mask is called " + only);
    pictures.write(panels, 4);
  });
}
