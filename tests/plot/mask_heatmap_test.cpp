// SPDX-License-Identifier: MIT
#include <heed/plot/mask_heatmap.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <heed/masks.hpp>
#include <heed/plot.hpp>

namespace heed {
namespace {

using namespace heed::masks;

TEST(MaskHeatmap, ShowsWhatTheMaskAllows) {
  const auto mask = Causal{} & SlidingWindow{.left = 2, .right = 0};
  const Heatmap heatmap = heatmap_of(mask, 5, 7, "title");
  EXPECT_EQ(heatmap.categories, (std::vector<std::string>{"masked", "seen"}));
  EXPECT_EQ(heatmap.title, "title");
  for (Index query = 0; query < 5; ++query) {
    for (Index key = 0; key < 7; ++key) {
      const bool seen = allows(mask, {0, 0, query + 2, key, 2});
      EXPECT_EQ(heatmap.values(query, key), seen ? 1 : 0) << query << " " << key;
    }
  }
  const Heatmap own = heatmap_of([](Index query, Index key) { return query != key; }, 3, 3);
  EXPECT_EQ(own.values(1, 1), 0);
  EXPECT_EQ(own.values(1, 2), 1);
}

TEST(MaskHeatmap, ShowsWhatAKernelDoesWithTiles) {
  const MaskWindow window{.queries = 8, .keys = 8, .tile_queries = 4, .tile_keys = 4};
  const Heatmap heatmap = heatmap_of(Causal{}, window);
  const auto counts = statistics(Causal{}, window);
  std::vector<Index> cells(4);
  for (const double value : heatmap.values) ++cells[static_cast<std::size_t>(value)];
  EXPECT_EQ(cells[0], 16 * counts.tiles_none);
  EXPECT_EQ(cells[3], 16 * counts.tiles_full);
  EXPECT_EQ(cells[2] + cells[3], counts.visible);
  EXPECT_EQ(heatmap.values(0, 4), 0);
  EXPECT_EQ(heatmap.values(0, 1), 1);
  EXPECT_EQ(heatmap.values(0, 0), 2);
  EXPECT_EQ(heatmap.values(4, 0), 3);
  EXPECT_EQ(heatmap.tile_rows, 4);
  const auto boxes = detail::picture_of(heatmap).boxes;
  EXPECT_EQ(std::count_if(boxes.begin(), boxes.end(),
                          [](const auto& box) { return box.width == 2 || box.height == 2; }),
            2)
      << "a line between tiles, each way";
  const std::string svg = to_svg(heatmap);
  for (const char* name :
       {"masked, tile skipped", "seen, whole tile", "2 → 3: masked, tile computed"}) {
    EXPECT_NE(svg.find(name), std::string::npos) << name;
  }
  const std::string text = to_terminal(heatmap, {ColorDepth::none, 200});
  EXPECT_NE(text.find("masked, tile skipped"), std::string::npos) << text;
  EXPECT_EQ(text.find("exactly 0"), std::string::npos);
}

TEST(MaskHeatmap, OneForEveryItemAndHead) {
  const auto masks = heatmaps_of(PerHead({Causal{}, last_n(1)}) & Padding({3, 2}),
                                 MaskShape{.batch = 2, .heads = 2, .queries = 3, .keys = 3});
  ASSERT_EQ(masks.size(), 4u);
  EXPECT_EQ(masks[0].values(2, 0), 1);
  EXPECT_EQ(masks[1].values(2, 0), 0);
  EXPECT_EQ(masks[0].values(2, 2), 1);
  EXPECT_EQ(masks[2].values(2, 2), 0) << "padding of item 1";
  EXPECT_EQ(masks[3].title, "item 1, head 1");
}

TEST(MaskHeatmap, Refuses) {
  EXPECT_THROW(heatmap_of(Causal{}, -1, 3), InvalidArgument);
  EXPECT_THROW(heatmap_of(Causal{}, MaskWindow{.tile_keys = 0}), InvalidArgument);
  EXPECT_THROW(
      heatmap_of(Dense({1, 1, 2, 2}, [](Index, Index, Index, Index) { return true; }), 3, 3),
      ShapeError);
  EXPECT_THROW(heatmaps_of(Causal{}, MaskShape{.batch = -1, .heads = 1, .queries = 1, .keys = 1}),
               InvalidArgument);
  EXPECT_TRUE(heatmaps_of(Causal{}, MaskShape{}).empty());
}

}  // namespace
}  // namespace heed
