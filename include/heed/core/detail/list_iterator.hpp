// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace heed::detail {

/// Goes through a list that makes its elements when asked for one by `list[i]`.
template <class List>
class ListIterator {
 public:
  using value_type = std::remove_cvref_t<decltype(std::declval<const List&>()[0])>;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  using pointer = const value_type*;
  using iterator_category = std::forward_iterator_tag;

  ListIterator() = default;
  ListIterator(const List& list, std::size_t at) : list_(&list), at_(at) {}
  value_type operator*() const { return (*list_)[at_]; }
  ListIterator& operator++() { return ++at_, *this; }
  ListIterator operator++(int) { return {*list_, at_++}; }
  bool operator==(const ListIterator& other) const { return at_ == other.at_; }

 private:
  const List* list_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace heed::detail
