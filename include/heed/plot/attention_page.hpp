// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <heed/tensor/tensor.hpp>

namespace heed {

/// The attention weights of all layers and heads for one text, to explore in a browser.
struct AttentionPage {
  Tensor<float, 4> weights;                    // (layers, heads, queries, keys), each 0 to 1
  std::vector<std::string> query_labels = {};  // none, or one per query; UTF-8
  std::vector<std::string> key_labels = {};    // none, or one per key
  std::string title = {};
};

namespace detail {

/// The page of to_html.
std::string html_of(const AttentionPage& page);

}  // namespace detail

}  // namespace heed
