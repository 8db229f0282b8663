// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/io/detail/tensor_file.hpp>, which includes this file.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace heed::detail {

HEED_INLINE std::vector<std::size_t> sorted_order(
    std::size_t count, FunctionRef<bool(std::size_t, std::size_t)> less) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), less);
  return order;
}

HEED_INLINE std::size_t lower_place(const std::vector<std::size_t>& order,
                                    FunctionRef<bool(std::size_t)> less) {
  const auto found = std::partition_point(order.begin(), order.end(), less);
  return static_cast<std::size_t>(found - order.begin());
}

HEED_INLINE std::string ProblemList::text() const {
  if (count_ <= listed) return text_;
  return message(text_, separator_, "and ", count_ - listed, " more");
}

}  // namespace heed::detail
