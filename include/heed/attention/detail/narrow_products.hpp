// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/attention/detail/key_blocks.hpp>
#include <heed/core/index.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/simd/pair_kernels.hpp>

namespace heed::detail {

/// What the passes of a call over narrow tensors hand over where the processor multiplies their
/// type itself, summing in T. Memory that is handed out holds until this thread's next call.
template <class T>
class NarrowProducts {
 public:
  /// Queries [first, first + count) of a head, packed for `attend` into room for `count` rows of T.
  virtual void pack(Index item, Index head, Index first, Index count, T* packed) const = 0;
  /// One query for `decode`, into room for a row of T.
  virtual void copy_query(Index item, Index head, Index query, Index row, T* rows) const = 0;
  /// Keys that some query sees, with their values; whole pairs.
  virtual simd::PairKeys bring(Index item, Index key_head, const VisibleKeys& seen) const = 0;
  /// Takes the keys into the softmax of a block of queries, or of a few rows of them; `queries` and
  /// `rows` hold what was packed and copied.
  virtual void attend(const simd::PairKeys& keys, const simd::QueryBlock<T>& queries,
                      const simd::SoftmaxState<T>& state, bool first) const = 0;
  virtual void decode(const simd::PairKeys& keys, const simd::QueryRows<T>& rows) const = 0;

 protected:
  ~NarrowProducts() = default;
};

}  // namespace heed::detail
