// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>

namespace heed {

/// Ends a streamed text at the first of some strings, however it is cut into pieces: text is held
/// back for as long as it may be the beginning of one of them.
class StopStrings {
 public:
  /// Throws InvalidArgument for an empty string.
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (const std::string& string : strings_) {
      if (string.empty())
        throw_invalid_argument("StopStrings: an empty string would end every text");
    }
  }

  /// Takes the next piece and returns what can be shown of the text by now: what is before a stop
  /// string and cannot be part of one.
  std::string feed(std::string_view piece) {
    if (stopped_) return {};
    held_ += piece;
    std::size_t stop = std::string::npos;
    for (const std::string& string : strings_) stop = std::min(stop, held_.find(string));
    stopped_ = stop != std::string::npos;
    if (stopped_) return std::exchange(held_, {}).substr(0, stop);
    std::size_t open = 0;
    for (const std::string& string : strings_) open = std::max(open, open_end(string));
    std::string shown = held_.substr(0, held_.size() - open);
    held_.erase(0, shown.size());
    return shown;
  }

  /// Whether a stop string has come.
  bool stopped() const { return stopped_; }
  /// What is still held back when the text ends by itself.
  std::string finish() { return std::exchange(held_, {}); }

 private:
  /// How many bytes at the end of what is held are the beginning of a string.
  std::size_t open_end(std::string_view string) const {
    for (std::size_t length = std::min(string.size() - 1, held_.size()); length > 0; --length) {
      if (std::string_view(held_).ends_with(string.substr(0, length))) return length;
    }
    return 0;
  }

  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace heed
