// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/printable.hpp>

namespace heed {

/// The texts of tokens, by number and back.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Throws ShapeError when a text stands twice.
  explicit Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
    order_.resize(tokens_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return tokens_[a] < tokens_[b]; });
    for (std::size_t i = 1; i < order_.size(); ++i) {
      if (tokens_[order_[i]] == tokens_[order_[i - 1]]) {
        throw_shape_error("vocabulary: ", quote(tokens_[order_[i]]), " twice");
      }
    }
  }

  Index size() const { return static_cast<Index>(tokens_.size()); }
  /// The number of the token with that text, or −1.
  Index find(std::string_view text) const {
    const auto found = std::lower_bound(
        order_.begin(), order_.end(), text,
        [&](std::size_t i, std::string_view wanted) { return tokens_[i] < wanted; });
    return found != order_.end() && tokens_[*found] == text ? static_cast<Index>(*found) : -1;
  }
  /// The text of a token; ShapeError when there is none of that number.
  const std::string& text(Index token) const {
    if (token < 0 || token >= size()) throw_shape_error("token ", token, " of ", size());
    return tokens_[static_cast<std::size_t>(token)];
  }

 private:
  std::vector<std::string> tokens_;
  std::vector<std::size_t> order_;
};

}  // namespace heed
