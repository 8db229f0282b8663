// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <heed/io/detail/sorted_order.hpp>

namespace heed::detail {

/// Finds entries by name in O(log n) without hashing what a file chose. `name` is the entries'
/// member that holds it, e.g. &GgufTensor::name.
template <auto name>
class NameIndex {
 public:
  NameIndex() = default;
  template <class Entry>
  explicit NameIndex(const std::vector<Entry>& entries)
      : order_(sorted_order(entries.size(), [&](std::size_t a, std::size_t b) {
          return entries[a].*name < entries[b].*name;
        })) {}

  /// An entry whose name another one has too, or null.
  template <class Entry>
  const Entry* twice(const std::vector<Entry>& entries) const {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const Entry& entry = entries[order_[i]];
      if (entry.*name == entries[order_[i - 1]].*name) return &entry;
    }
    return nullptr;
  }

  /// The entry of that name, or null.
  template <class Entry>
  const Entry* find(const std::vector<Entry>& entries, std::string_view wanted) const {
    const auto found = std::lower_bound(
        order_.begin(), order_.end(), wanted,
        [&](std::size_t i, std::string_view text) { return entries[i].*name < text; });
    const bool there = found != order_.end() && entries[*found].*name == wanted;
    return there ? &entries[*found] : nullptr;
  }

 private:
  std::vector<std::size_t> order_;
};

}  // namespace heed::detail
