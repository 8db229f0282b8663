// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/key_value_cache.hpp>
#include <heed/core/scalar.hpp>
#include <heed/layers/rotary.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Tokens behind those of one sequence, their keys turned to the positions where they come to
/// stand: KeyValueCache::append after Rotary::apply from cache.length(item) on, number by number.
/// keys (kv_heads, tokens, head_dim) stay as they are, values (kv_heads, tokens, value_dim).
/// Throws what those throw, and leaves the cache as it was.
template <Scalar T, class Stored>
void append_rotated(KeyValueCache<T, Stored>& cache, Index item, const Rotary& rotary,
                    const TensorView<const T, 3>& keys, const TensorView<const T, 3>& values) {
  auto turned = Tensor<T, 3>::copy_of(keys);
  rotary.apply(turned.view().with_leading_axis(), cache.length(item));
  cache.append(item, turned.view(), values);
}

/// The same for every sequence, each from its own length on: keys (batch, kv_heads, tokens,
/// head_dim), values likewise.
template <Scalar T, class Stored>
void append_rotated(KeyValueCache<T, Stored>& cache, const Rotary& rotary,
                    const TensorView<const T, 4>& keys, const TensorView<const T, 4>& values) {
  auto turned = Tensor<T, 4>::copy_of(keys);
  for (Index item = 0; item < keys.extent(0) && item < cache.shape().batch; ++item) {
    rotary.apply(turned.view().slice(0, item, item + 1), cache.length(item));
  }
  cache.append(turned, values);
}

}  // namespace heed
