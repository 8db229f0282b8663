// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/generation/generate.hpp>, which includes this file.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

HEED_INLINE StopStrings::StopStrings(std::vector<std::string> strings)
    : strings_(std::move(strings)) {
  for (const std::string& string : strings_) {
    if (string.empty()) throw_invalid_argument("StopStrings: an empty string would end every text");
  }
}

HEED_INLINE std::string StopStrings::feed(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t stop = std::string::npos, stop_end = std::string::npos;
  for (const std::string& string : strings_) {
    const std::size_t at = held_.find(string);
    if (at == std::string::npos) continue;
    const std::size_t end = at + string.size();
    if (end > stop_end || (end == stop_end && at > stop)) continue;
    stop = at;
    stop_end = end;
  }
  stopped_ = stop != std::string::npos;
  if (stopped_) return std::exchange(held_, {}).substr(0, stop);
  std::size_t open = 0;
  for (const std::string& string : strings_) open = std::max(open, open_end(string));
  std::string shown = held_.substr(0, held_.size() - open);
  held_.erase(0, shown.size());
  return shown;
}

HEED_INLINE std::size_t StopStrings::open_end(std::string_view string) const {
  for (std::size_t length = std::min(string.size() - 1, held_.size()); length > 0; --length) {
    if (std::string_view(held_).ends_with(string.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace heed
