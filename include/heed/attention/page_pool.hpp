// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <stdexcept>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// A cache has no free page for what was to be appended; it is as it was before.
class CacheFull : public std::length_error {
 public:
  using std::length_error::length_error;
};

namespace detail {

/// Pages by number, each with the count of sequences that hold it.
class PagePool {
 public:
  explicit PagePool(Index pages) : holders_(static_cast<std::size_t>(pages), 0) {
    for (Index page = pages; page-- > 0;) free_.push_back(page);
  }

  Index available() const { return static_cast<Index>(free_.size()); }
  bool shared(Index page) const { return holders_[static_cast<std::size_t>(page)] > 1; }

  /// A page nobody holds, now held once. There must be one.
  Index take() {
    HEED_EXPECTS(!free_.empty());
    const Index page = free_.back();
    free_.pop_back();
    holders_[static_cast<std::size_t>(page)] = 1;
    return page;
  }
  void hold(Index page) { ++holders_[static_cast<std::size_t>(page)]; }
  void release(Index page) {
    if (--holders_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
  }

 private:
  std::vector<Index> holders_;
  std::vector<Index> free_;
};

}  // namespace detail
}  // namespace heed
