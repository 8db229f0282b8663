// SPDX-License-Identifier: MIT
// Pictures as a user would guess them: each compiles as it is written, and shows what it says.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/heed.hpp>

using namespace heed;

namespace {

TEST(Pictures, WordsOfRowsAndColumns) {
  const Tensor<float, 2> weights{{0.5f, 0.5f}, {0.1f, 0.9f}};
  using Words = std::vector<std::string>;
  // Two words in braces are no string from the first to the second.
  const auto two = heatmap_of(weights, {"a", "b"}, {"x", "y"});
  EXPECT_EQ(two.row_labels, (Words{"a", "b"}));
  EXPECT_EQ(two.column_labels, (Words{"x", "y"}));
  EXPECT_EQ(two.title, "");
  const Words rows = {"a", "b"}, columns = {"x", "y"};
  EXPECT_EQ(heatmap_of(weights, rows, columns, "title").column_labels, columns);
  EXPECT_EQ(heatmap_of(weights, rows, {"x", "y"}, "title").title, "title");
  EXPECT_EQ(heatmap_of(weights, rows, "title").title, "title");
  EXPECT_EQ(heatmap_of(weights, {"a", "b"}, "title").column_labels, rows);
  EXPECT_TRUE(heatmap_of(weights, {}, {"x", "y"}).row_labels.empty());
  EXPECT_THROW(heatmap_of(weights, rows, {"x"}), ShapeError);
  EXPECT_THROW(heatmap_of(weights, {"a"}, columns), ShapeError);
}

TEST(Pictures, WordsInAnyList) {
  const Tensor<float, 2> weights{{0.5f, 0.5f}, {0.1f, 0.9f}};
  const std::vector<std::string> words = {"a", "b"};
  const std::vector<std::string_view> views = {"a", "b"};
  const std::array<std::string, 2> array = {"a", "b"};
  const char* const names[] = {"a", "b"};
  EXPECT_EQ(heatmap_of(weights, views).column_labels, words);
  EXPECT_EQ(heatmap_of(weights, array, "title").title, "title");
  EXPECT_EQ(heatmap_of(weights, names).row_labels, words);
  EXPECT_THROW(heatmap_of(weights, std::vector<std::string_view>{"a"}), ShapeError);
}

TEST(Pictures, OfEveryItemAndHead) {
  Tensor<float, 4> weights({2, 3, 2, 2});
  for (Index i = 0; i < weights.size(); ++i) weights.data()[i] = static_cast<float>(i);
  const auto pictures = heatmaps_of(weights, {"a", "b"});
  ASSERT_EQ(pictures.size(), 6u);
  EXPECT_EQ(pictures[5].title, "item 1, head 2");
  EXPECT_EQ(pictures[5].values(1, 0), 22);
  EXPECT_EQ(pictures[1].column_labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(pictures[0].title, "item 0, head 0");
  const auto heads = heatmaps_of(weights.view()[1]);
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_EQ(heads[2].title, "head 2");
  EXPECT_EQ(heads[2].values(1, 0), 22);
  EXPECT_TRUE(heads[2].row_labels.empty());
  EXPECT_EQ(heatmaps_of(weights, std::array<const char*, 2>{"a", "b"})[3].row_labels[1], "b");
  EXPECT_THROW(heatmaps_of(weights, {"a", "b", "c"}), ShapeError);
  EXPECT_EQ(to_svg(heatmaps_of(attention_weights(weights, weights))).substr(0, 4), "<svg");
}

TEST(Pictures, ASeriesOfValuesIsNumbered) {
  Chart numbered, given;
  numbered.series.push_back({.name = "loss", .y = {3, 2, 1}});
  numbered.series.push_back({.name = "bars", .y = {1, 2}, .bars = true});
  given.series.push_back({"loss", {0, 1, 2}, {3, 2, 1}});
  given.series.push_back({.name = "bars", .x = {0, 1}, .y = {1, 2}, .bars = true});
  EXPECT_EQ(to_svg(numbered), to_svg(given));
  EXPECT_EQ(to_terminal(numbered), to_terminal(given));
  EXPECT_EQ(to_html(numbered), to_html(given));
}

TEST(Pictures, ASeriesOfAnyNumbers) {
  const std::vector<float> losses{3, 2, 1.5f};
  const std::vector<int> steps{0, 10, 20};
  Tensor<float, 1> tensor{3, 2, 1.5f};
  Chart floats, doubles, others;
  floats.series.push_back({.name = "loss", .x = steps, .y = losses});
  doubles.series.push_back({.name = "loss", .x = {0, 10, 20}, .y = {3, 2, 1.5}});
  others.series.push_back({.name = "loss", .x = std::array{0L, 10L, 20L}, .y = tensor});
  EXPECT_EQ(to_svg(floats), to_svg(doubles));
  EXPECT_EQ(to_svg(others), to_svg(doubles));
  floats.series[0].y = std::span(losses);
  floats.series[0].y.push_back(1);
  EXPECT_EQ(floats.series[0].y, (std::vector<double>{3, 2, 1.5, 1}));
}

TEST(Pictures, APageOfAllHeadsOfAModel) {
  Random random(3);
  LanguageModelOptions options;
  options.vocab_size = 8;
  options.layers = 2;
  options.max_length = 5;
  options.block = {.model_dim = 16, .heads = 4};
  const LanguageModel<double> model(options, random);
  const auto weights = attention_of(model, Tokens({1, 5}, {1, 2, 3, 4, 5}));
  const AttentionPage page{.weights = weights};
  EXPECT_EQ(page.weights.extents(), (Extents<4>{2, 4, 5, 5}));
  EXPECT_EQ(page.weights(1, 3, 2, 1), static_cast<float>(weights(1, 0, 3, 2, 1)));
  EXPECT_EQ(to_html(page), to_html(AttentionPage{.weights = weights.view().select(1, 0)}));
  const auto two = attention_of(model, Tokens(2, 5));
  EXPECT_THROW(to_html(AttentionPage{.weights = two}), ShapeError);
}

}  // namespace
