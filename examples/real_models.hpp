// SPDX-License-Identifier: MIT
// What the examples with real models share: where a model is, and pictures of its attention.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <heed/heed.hpp>

#include "pictures.hpp"

namespace example {

using heed::Index;

/// The path that was asked for, or that file in the folder that HEED_MODELS names.
inline std::string model_path(const std::string& asked, const char* name) {
  if (!asked.empty()) return asked;
  const char* folder = std::getenv("HEED_MODELS");
  if (folder != nullptr && *folder != '\0') return std::string(folder) + "/" + name;
  throw std::invalid_argument(std::string("no model (") + name +
                              "): fill a folder with tools/models.sh and set HEED_MODELS to it");
}

/// --products, of weights that stay as their file stores them.
inline void add_products(CommandLine& app, heed::Products& products) {
  using heed::Products;
  app.add_choice<Products>(
      "--products", products,
      {{"exact", Products::exact}, {"int16", Products::int16}, {"bfloat16", Products::bfloat16}},
      "of a GGUF's weights: exact, or faster with rows rounded to int16 (Q4, "
      "Q8) or to bfloat16 (BF16)");
}

/// A head of a layer, written LAYER.HEAD.
struct HeadName {
  Index layer = 0, head = 0;
};
inline HeadName head_name(const std::string& text) {
  HeadName name;
  int used = 0;
  const bool read = std::sscanf(text.c_str(), "%td.%td%n", &name.layer, &name.head, &used) == 2;
  if (!read || used != static_cast<int>(text.size())) {
    throw std::invalid_argument("'" + text + "' is not LAYER.HEAD, as in 3.1");
  }
  return name;
}

/// The text of a token as a label: white space as marks.
inline std::string label_of(const std::string& text) {
  std::string label;
  for (const char byte : text) {
    if (byte == '\n') {
      label += "\\n";
    } else if (byte == ' ') {
      label += "\u00b7";
    } else {
      label += byte;
    }
  }
  return heed::printable(label);
}

/// --attention LAYER.HEAD and the pictures of it.
struct ShownHead {
  std::string head, color = "auto";
  Pictures pictures;

  void add_options(CommandLine& app, const std::string& of) {
    app.add_option("--attention", head, "LAYER.HEAD: also show which " + of + " it looks at");
    pictures.add_options(app, "it");
    add_color(app, color);
  }
  bool wanted() const { return !head.empty(); }
  /// Before the work.
  void check() const {
    if (head.empty() && pictures.any()) {
      throw std::invalid_argument(
          "--svg, --png and --html are pictures of --attention LAYER.HEAD, which was not given");
    }
    if (wanted()) static_cast<void>(head_name(head));
    pictures.check();
  }
};

/// Prints which tokens of the first sequence a head looks at, and writes pictures where asked.
template <class Model>
void show_attention(const Model& model, const heed::Tokens& tokens, const heed::Mask& mask,
                    const ShownHead& options, const std::vector<std::string>& labels) {
  const HeadName name = head_name(options.head);
  const auto weights = heed::attention_of(model, tokens, mask, name.layer);
  if (name.head < 0 || name.head >= weights.extent(1)) {
    throw std::invalid_argument("head " + std::to_string(name.head) + " of " +
                                std::to_string(weights.extent(1)));
  }
  auto heatmap = heed::heatmap_of(
      weights.select(0, 0).select(0, name.head), labels,
      "layer " + std::to_string(name.layer) + ", head " + std::to_string(name.head));
  heatmap.by_root = true;  // or long texts are dark
  std::fputs(heed::to_terminal(heatmap, heed::terminal_options(options.color)).c_str(), stdout);
  options.pictures.write(heatmap);
}

}  // namespace example
