// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// A cache has no free page for what was to be appended; it is as it was before.
class CacheFull : public detail::ErrorAs<std::length_error> {
 public:
  using ErrorAs::ErrorAs;
};

namespace detail {

/// Pages by number, each with the count of sequences that hold it.
class PagePool {
 public:
  explicit PagePool(Index pages) : holders_({pages}), free_({pages}), available_(pages) {
    for (Index i = 0; i < pages; ++i) free_[i] = pages - 1 - i;
  }

  Index available() const { return available_; }
  Index holders(Index page) const { return holders_[page]; }

  /// A page nobody holds, now held once. There must be one.
  Index take() {
    HEED_EXPECTS(available_ > 0);
    const Index page = free_[--available_];
    holders_[page] = 1;
    return page;
  }
  void hold(Index page) { ++holders_[page]; }
  void release(Index page) {
    if (--holders_[page] == 0) free_[available_++] = page;
  }

 private:
  Tensor<Index, 1> holders_;
  Tensor<Index, 1> free_;  // the first `available_`, the next to be taken last
  Index available_;
};

}  // namespace detail
}  // namespace heed
