// SPDX-License-Identifier: MIT
// Whole pictures, as they were looked at: where everything stands and in which color.
#include <heed/plot.hpp>

#include "plot/golden_pictures.hpp"

namespace heed::test {
namespace {

TEST(Pictures, Svg) {
  const auto heatmaps = golden_heatmaps();
  const auto charts = golden_charts();
  for (std::size_t i = 0; i < heatmaps.size(); ++i) {
    expect_picture("heatmap" + std::to_string(i) + ".svg", to_svg(heatmaps[i]));
  }
  for (std::size_t i = 0; i < charts.size(); ++i) {
    expect_picture("chart" + std::to_string(i) + ".svg", to_svg(charts[i]));
  }
}

TEST(Pictures, Terminal) {
  std::string text;
  for (const TerminalOptions& options : {TerminalOptions{ColorDepth::none, 100},
                                         {ColorDepth::none, 24},
                                         {ColorDepth::none, 7},
                                         {ColorDepth::palette_256, 80},
                                         {ColorDepth::true_color, 40}}) {
    for (const auto& heatmap : golden_heatmaps()) text += to_terminal(heatmap, options) + "\n";
    for (const auto& chart : golden_charts()) text += to_terminal(chart, options) + "\n";
  }
  text += to_terminal(golden_heatmaps(), {.color = ColorDepth::none, .width = 120}) + "\n";
  expect_picture("terminal.txt", text);
}

TEST(Pictures, Html) {
  AttentionPage page;
  page.weights = Tensor<float, 4>({2, 3, 2, 4});
  float value = 0;
  for (float& weight : page.weights) weight = (value += 1) / 48;
  page.query_labels = {"a", "b"};
  page.key_labels = {"w", "x", "y", "z"};
  page.title = "Two layers of three heads";
  expect_picture("html.txt", to_html(page));
}

}  // namespace
}  // namespace heed::test
