// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/detail/list_iterator.hpp>
#include <heed/core/printable.hpp>
#include <heed/core/text_list.hpp>
#include <heed/io/detail/sorted_order.hpp>
#include <heed/io/error.hpp>

namespace heed {

/// Texts by name, in the order of the names: what whoever wrote a file noted about it. Takes what
/// the texts take and 16 bytes for each, however many a file has.
class Notes {
 public:
  using Note = std::pair<std::string_view, std::string_view>;
  using Iterator = detail::ListIterator<Notes>;

  Notes() = default;
  /// Names and texts by turns; no name twice.
  explicit Notes(TextList texts) : texts_(std::move(texts)) {
    order_ = detail::sorted_order(texts_.size() / 2, [&](std::size_t a, std::size_t b) {
      return texts_[2 * a] < texts_[2 * b];
    });
  }

  std::size_t size() const { return order_.size(); }
  bool empty() const { return order_.empty(); }
  /// By the order of the names.
  Note operator[](std::size_t place) const {
    const std::size_t name = 2 * order_[place];
    return {texts_[name], texts_[name + 1]};
  }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  bool contains(std::string_view name) const { return place_of(name) < size(); }
  /// The text of that name; FileError when there is none.
  std::string at(std::string_view name) const {
    const std::size_t place = place_of(name);
    if (place == size()) throw_file_error("no note ", quote(name));
    return std::string((*this)[place].second);
  }
  friend bool operator==(const Notes& a, const Notes& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::size_t place_of(std::string_view name) const {
    const auto found = std::lower_bound(
        order_.begin(), order_.end(), name,
        [&](std::size_t i, std::string_view wanted) { return texts_[2 * i] < wanted; });
    const auto place = static_cast<std::size_t>(found - order_.begin());
    return place < size() && (*this)[place].first == name ? place : size();
  }

  TextList texts_;
  std::vector<std::size_t> order_;
};

}  // namespace heed
