// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include <heed/layers/parameters.hpp>
#include <heed/masks/mask.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed::test {

/// Calls a layer under a mask, for the layer laws.
struct MaskedCall {
  Mask mask;
  template <class L, class X>
  auto operator()(const L& layer, const X& x) const {
    return layer.forward(x, mask);
  }
  template <class L, class X>
  auto operator()(const L& layer, const X& x, typename L::Saved& saved) const {
    return layer.forward(x, mask, saved);
  }
};

template <class T>
Tensor<T, 3> tokens_of(const Tensor<T, 3>& x, Index first, Index last) {
  return Tensor<T, 3>::copy_of(x.view().slice(1, first, last));
}

/// Two inputs as one, side by side along the tokens, so that the laws see both gradients.
template <class T>
Tensor<T, 3> side_by_side(const Tensor<T, 3>& a, const Tensor<T, 3>& b) {
  Tensor<T, 3> both({a.extent(0), a.extent(1) + b.extent(1), a.extent(2)});
  for (Index item = 0; item < a.extent(0); ++item) {
    const auto size_a = a.extent(1) * a.extent(2), size_b = b.extent(1) * b.extent(2);
    T* to = both.data() + item * (size_a + size_b);
    std::copy_n(a.data() + item * size_a, size_a, to);
    std::copy_n(b.data() + item * size_b, size_b, to + size_a);
  }
  return both;
}

}  // namespace heed::test
