// SPDX-License-Identifier: MIT
#pragma once

#include <heed/masks/detail/shared_array.hpp>

namespace heed::detail {

/// A few token positions in any order, for counting those in a range: memory by their number, not
/// by how far out they lie.
class PositionSet {
 public:
  explicit PositionSet(const SharedArray<Index>& positions)
      : sorted_(SharedArray<Index>::filled(
            positions.size(), [&](Index* values) { size_ = sort(positions, values); })) {}

  Index size() const { return size_; }
  Index operator[](Index rank) const { return sorted_[rank]; }
  /// How many members are smaller than `position`: the rank of the first that is not.
  Index rank(Index position) const {
    Index low = 0, high = size_;
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
  /// Writes the positions in ascending order, each once, and returns how many. Shell sort:
  /// <algorithm> costs every user of masks a tenth of a second.
  static Index sort(const SharedArray<Index>& positions, Index* values) {
    const Index count = positions.size();
    for (Index i = 0; i < count; ++i) values[i] = positions[i];
    for (Index gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
      for (Index i = gap; i < count; ++i) {
        const Index value = values[i];
        Index to = i;
        for (; to >= gap && values[to - gap] > value; to -= gap) values[to] = values[to - gap];
        values[to] = value;
      }
    }
    Index kept = 0;
    for (Index i = 0; i < count; ++i) {
      if (kept == 0 || values[i] != values[kept - 1]) values[kept++] = values[i];
    }
    return kept;
  }

  Index size_ = 0;
  SharedArray<Index> sorted_;
};

}  // namespace heed::detail
