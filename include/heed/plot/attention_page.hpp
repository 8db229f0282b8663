// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed {

/// The weights of the same text under another mask, from a run of the model of its own: a mask
/// changes what every later layer reads, and so its weights do not follow from those under another.
struct AttentionUnder {
  std::string mask;
  Tensor<float, 4> weights;  // (layers, heads, queries, keys), as those of the page
};

/// The attention weights of all layers and heads for one text, to explore in a browser.
struct AttentionPage {
  Tensor<float, 4> weights;                    // (layers, heads, queries, keys), each 0 to 1
  std::vector<std::string> query_labels = {};  // none, or one per query; UTF-8
  std::vector<std::string> key_labels = {};    // none, or one per key
  std::string title = {};
  std::string mask = {};  // the name of the mask of `weights`, on its button where there are others
  std::vector<AttentionUnder> others = {};  // the same text under other masks, a button for each
};

namespace detail {

/// The page of to_html.
std::string html_of(const AttentionPage& page);

}  // namespace detail

}  // namespace heed
