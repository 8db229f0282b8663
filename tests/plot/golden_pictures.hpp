// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <heed/io/file.hpp>
#include <heed/plot/chart.hpp>
#include <heed/plot/heatmap.hpp>

#include "support/file_bytes.hpp"

namespace heed::test {

/// Pictures in tests/golden/plot, which somebody has looked at. To accept what is drawn now:
/// HEED_ACCEPT_PICTURES=1, then look at them.
inline std::string golden_picture(const std::string& name) {
  return std::string(HEED_TEST_DATA "/plot/") + name;
}
inline bool accepting_pictures() { return std::getenv("HEED_ACCEPT_PICTURES") != nullptr; }

inline void expect_picture(const std::string& name, const std::string& text) {
  const std::string path = golden_picture(name);
  if (accepting_pictures()) write_file(path, bytes_of(text));
  const auto bytes = read_file(path);
  const std::string golden(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_TRUE(text == golden) << name << " is drawn otherwise:\n" << text;
}

/// Labels and numbers, negative values and one that is none; a wide one, a tall one with bare axes.
inline std::vector<Heatmap> golden_heatmaps() {
  std::vector<Heatmap> all(3);
  all[0].values = Tensor<double, 2>({4, 5});
  for (Index i = 0; i < 20; ++i) all[0].values.data()[i] = static_cast<double>(i) / 8 - 0.75;
  all[0].values(2, 3) = NAN;
  all[0].row_labels = {"the", "dog", "was", "barking"};
  all[0].column_labels = {"der", "Hund", "hat", "gebellt", "."};
  all[0].title = "Translation, and a title that is longer than its picture is wide";
  all[0].low = -0.75;
  all[0].high = 1.625;
  all[0].numbers = true;
  all[1].values = Tensor<double, 2>({3, 73});
  for (Index i = 0; i < 219; ++i)
    all[1].values.data()[i] = std::abs(std::sin(0.1 * static_cast<double>(i)));
  all[1].column_title = "position";
  all[2].values = Tensor<double, 2>({30, 4});
  for (Index i = 0; i < 120; ++i) all[2].values.data()[i] = static_cast<double>(i % 7) / 6;
  all[2].title = "tall";
  all[2].column_labels = {"a", "much longer", "", "d"};
  all[2].row_title = "";
  return all;
}

/// Three lines with a gap and points that stand alone; a long one that is cut off; nothing; bars, a
/// line by the second axis, and one that coincides with it.
inline std::vector<Chart> golden_charts() {
  std::vector<Chart> all(4);
  all[0].series = {{"training", {0, 10, 20, 30, 40}, {4.2, 2.5, 1.9, 1.6, 1.5}},
                   {"held out", {0, 10, 20, 30, 40}, {4.3, 2.9, NAN, 2.6, 2.8}},
                   {"chance", {0, 40}, {3.3, 3.3}}};
  all[0].title = "Loss";
  all[0].x_title = "step";
  all[0].y_title = "cross entropy";
  Series wave{"wave", {}, {}};
  for (int i = 0; i < 200; ++i) {
    wave.x.push_back(i);
    wave.y.push_back(std::sin(0.07 * i) * i);
  }
  all[1].series = {wave};
  all[1].low = -100;
  all[1].high = 150;
  all[3].series = {{"mean", {0, 1, 2, 3}, {0.8, 0.4, -0.2, 0.6}, true},
                   {"first", {0, 1, 2, 3}, {0.5, 0.7, 0.1, NAN}, true},
                   {"time", {0, 1, 2, 3}, {12, 350, 20, 80}, false, true},
                   {"the same", {0, 1, 2, 3}, {12, 350, 20, 80}, false, true}};
  all[3].title = "Bars";
  all[3].x_title = "mask";
  all[3].y_title = "share found";
  all[3].x_labels = {"Causal", "Padding", "window of eight", "我爱学习人工智能"};
  all[3].right_title = "milliseconds";
  all[3].log_right = true;
  all[2].title = "a chart of nothing, with a title that is wider than the lines would have been";
  return all;
}

}  // namespace heed::test
