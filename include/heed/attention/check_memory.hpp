// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/tensor/overlap.hpp>

namespace heed::detail {

/// Fails unless `out` can be written while the inputs are read.
template <class In, class Out>
void check_memory(const TensorView<Out, 4>& out, const TensorView<const In, 4>& queries,
                  const TensorView<const In, 4>& keys, const TensorView<const In, 4>& values) {
  if (has_internal_overlap(out)) {
    throw_shape_error("attention: elements of out share memory (extents ", out.extents(),
                      ", strides ", out.strides(), ")");
  }
  if (overlaps(out, queries)) throw_shape_error("attention: out overlaps queries");
  if (overlaps(out, keys)) throw_shape_error("attention: out overlaps keys");
  if (overlaps(out, values)) throw_shape_error("attention: out overlaps values");
}

}  // namespace heed::detail
