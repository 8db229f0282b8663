// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>

namespace heed::detail {

/// The work of products that are computed together.
class ProductWork {
 public:
  void add(Index rows, Index columns, Index depth) {
    // To read a weight takes as long as to multiply some rows with it.
    work_ +=
        static_cast<double>(rows + 4) * static_cast<double>(columns) * static_cast<double>(depth);
  }
  bool parallel() const { return detail::worth_sharing(static_cast<Index>(work_ / 100)); }
  /// Handing out pieces one by one would be a good part of the work.
  bool is_small() const { return work_ < 4e6; }
  /// How many pieces are wanted for several threads.
  Index pieces() const { return thread_count() * (is_small() ? 1 : 3); }

 private:
  double work_ = 0;  // multiplications
};

}  // namespace heed::detail
