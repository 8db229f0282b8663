// SPDX-License-Identifier: MIT
// Draws the left pictures of docs/pictures/compare into a folder, with their data as .npy and .txt
// for tools/compare_pictures.py, which builds and runs this.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/npy.hpp>
#include <heed/masks.hpp>
#include <heed/plot.hpp>
#include <heed/plot/png.hpp>

namespace {

using namespace heed;

std::string folder;

/// A picture, its numbers, and its labels a line each.
template <class Picture, class Numbers>
void write(const std::string& name, const Picture& picture, const Numbers& numbers,
           const std::vector<std::string>& labels) {
  write_png(folder + "/" + name + "-heed.png", picture);
  write_npy(folder + "/" + name + ".npy", numbers);
  std::ofstream file(folder + "/" + name + ".txt");
  for (const std::string& label : labels) file << label << '\n';
}

/// Causal weights of random scores that prefer what is near.
Tensor<double, 2> causal_weights(Index count) {
  Tensor<double, 2> weights({count, count});
  std::uint64_t state = 1;
  for (Index query = 0; query < count; ++query) {
    double sum = 0;
    for (Index key = 0; key <= query; ++key) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double random = static_cast<double>(state >> 40) / (1 << 24);
      weights(query, key) = std::exp(4 * random - 0.06 * static_cast<double>(query - key));
      sum += weights(query, key);
    }
    for (Index key = 0; key <= query; ++key) weights(query, key) /= sum;
  }
  return weights;
}

void write_tokens(const std::string& language, const std::vector<std::string>& words) {
  for (const Index count : {12, 38, 66, 200}) {
    std::vector<std::string> labels;
    for (Index i = 0; i < count; ++i) {
      labels.push_back(words[static_cast<std::size_t>(i) % words.size()]);
    }
    const auto weights = causal_weights(count);
    const std::string name = language + std::to_string(count);
    write(name, heatmap_of(weights, labels, "Layer 3, head 2"), weights, labels);
    AttentionPage page{.weights = Tensor<float, 4>({1, 1, count, count}), .query_labels = labels};
    std::transform(weights.begin(), weights.end(), page.weights.begin(),
                   [](double weight) { return static_cast<float>(weight); });
    page.key_labels = labels;
    write_html(folder + "/" + name + ".html", page);
  }
}

void write_matrices() {
  Tensor<double, 2> bias({24, 24});
  for (Index q = 0; q < 24; ++q) {
    for (Index k = 0; k < 24; ++k) {
      const auto x = static_cast<double>(q), y = static_cast<double>(k);
      bias(q, k) = 2 * std::sin(x / 2) * std::cos(y / 3) + 0.6 + (q > 18 && k > 16 ? -2.5 : 0);
    }
  }
  Heatmap signed_values = heatmap_of(bias, {}, "Learned bias");
  signed_values.colors = ColorMap::diverging;
  fit_range(signed_values);
  write("signed", signed_values, bias, {});

  const auto mask = masks::SlidingWindow{.left = 6, .right = 5} | masks::EveryNthKey{10};
  const MaskWindow window{.queries = 50, .keys = 50, .tile_queries = 5, .tile_keys = 5};
  Tensor<double, 2> seen({50, 50});
  for (Index q = 0; q < 50; ++q) {
    for (Index k = 0; k < 50; ++k) seen(q, k) = allows(mask, window.position(q, k)) ? 1 : 0;
  }
  write("mask50", heatmap_of(mask, window, "Sparse mask"), seen, {});

  const auto weights = causal_weights(300);
  Heatmap many = heatmap_of(weights, {}, "300 × 300 weights");
  write("weights300", many, weights, {});
  many.by_root = true;
  write("root300", many, weights, {});
}

void write_charts() {
  Chart chart{
      .series = {}, .title = "Attention over time", .x_title = "epoch", .y_title = "weight"};
  Tensor<double, 2> lines({20, 20});
  std::vector<std::string> names;
  for (Index i = 0; i < 20; ++i) {
    const auto phase = static_cast<double>(i);
    names.push_back("query " + std::to_string(i));
    Series series{names.back(), {}, {}};
    for (Index epoch = 0; epoch < 20; ++epoch) {
      const auto x = static_cast<double>(epoch);
      lines(i, epoch) = std::sin(x / 6 + phase / 3) + phase / 20;
      series.x.push_back(x + 1);
      series.y.push_back(lines(i, epoch));
    }
    chart.series.push_back(series);
  }
  write("series20", chart, lines, names);

  const Tensor<double, 2> bars{
      {0.81, 0.62, 0.7, 0.33}, {0.85, 0.6, 0.74, 0.5}, {0.9, 0.71, 0.69, 0.58}, {12, 35, 20, 80}};
  Chart grouped{.series = {},
                .title = "Accuracy and time",
                .y_title = "accuracy",
                .x_labels = {"causal", "window of 8", "sparse", "prefix of 16"},
                .right_title = "milliseconds"};
  const std::vector<std::string> kinds = {"2 heads", "4 heads", "8 heads", "time"};
  for (Index i = 0; i < 4; ++i) {
    Series series = series_of(bars.view().select(0, i), kinds[static_cast<std::size_t>(i)]);
    series.bars = i < 3;
    series.right = i == 3;
    grouped.series.push_back(std::move(series));
  }
  grouped.low = 0;
  grouped.high = 1;
  grouped.right_low = 0;
  write("bars", grouped, bars, kinds);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  folder = arguments[1];
  write_tokens("latin", {"the", "quick", "brown", "fox", "jumped", "over", "lazy", "dogs",
                         "##ization", "[SEP]", "internationalization"});
  write_tokens("chinese", {"我", "爱", "学习", "人工", "智能", "，", "注意力", "机制"});
  write_matrices();
  write_charts();
}
