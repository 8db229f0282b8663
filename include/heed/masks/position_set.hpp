// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/masks/shared_array.hpp>

namespace heed::detail {

/// A few token positions in any order, for counting those in a range: memory by their number, not
/// by how far out they lie.
class PositionSet {
 public:
  explicit PositionSet(std::vector<Index> positions) : sorted_(sorted(std::move(positions))) {}

  Index size() const { return sorted_.size(); }
  Index operator[](Index rank) const { return sorted_[rank]; }
  /// How many members are smaller than `position`: the rank of the first that is not.
  Index rank(Index position) const {
    Index low = 0, high = sorted_.size();
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (sorted_[middle] < position) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  bool has(Index position) const {
    const Index at = rank(position);
    return at < size() && sorted_[at] == position;
  }
  /// Members in [first, last].
  Index count(Index first, Index last) const {
    return first > last ? 0 : rank(last) - rank(first) + (has(last) ? 1 : 0);
  }

 private:
  /// Ascending, each once. Shell sort: <algorithm> costs every user of masks a tenth of a second.
  static std::vector<Index> sorted(std::vector<Index> values) {
    const std::size_t count = values.size();
    for (std::size_t gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
      for (std::size_t i = gap; i < count; ++i) {
        const Index value = values[i];
        std::size_t to = i;
        for (; to >= gap && values[to - gap] > value; to -= gap) values[to] = values[to - gap];
        values[to] = value;
      }
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (kept == 0 || values[i] != values[kept - 1]) values[kept++] = values[i];
    }
    values.resize(kept);
    return values;
  }

  SharedArray<Index> sorted_;
};

}  // namespace heed::detail
