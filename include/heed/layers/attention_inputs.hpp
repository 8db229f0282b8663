// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/scalar.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// Queries, keys and values, (batch, tokens, heads · head_dim), as the kernel takes them: normed
/// and turned.
template <Scalar T>
struct AttentionInputs {
  Tensor<T, 3> queries, keys, values;
};

}  // namespace heed
