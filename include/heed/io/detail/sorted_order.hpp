// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heed/core/function_ref.hpp>

namespace heed::detail {

/// The numbers 0 to count − 1 in the order in which `less` puts what they stand for. One function
/// for all that files list: sorting is costly to compile.
inline std::vector<std::size_t> sorted_order(std::size_t count,
                                             FunctionRef<bool(std::size_t, std::size_t)> less) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), less);
  return order;
}

}  // namespace heed::detail
