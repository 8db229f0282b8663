// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/score_changes.hpp>
#include <heed/core/error.hpp>
#include <heed/tensor/overlap.hpp>

namespace heed::detail {

/// Fails unless `out` can be written while the inputs are read.
template <class T>
void check_memory(const Result<T>& out, const Operand<T>& queries, const Operand<T>& keys,
                  const Operand<T>& values) {
  if (has_internal_overlap(out.extents(), out.strides())) {
    throw_shape_error("attention: elements of out share memory (extents ", out.extents(),
                      ", strides ", out.strides(), ")");
  }
  const auto apart = [&](const char* name, const Operand<T>& read) {
    if (meet(out.bytes(), read.bytes())) throw_shape_error("attention: out overlaps ", name);
  };
  apart("queries", queries);
  apart("keys", keys);
  apart("values", values);
}

/// Fails if something written shares memory with what changes scores.
template <class T>
void check_apart(const char* name, ByteRange written, const ScoreChanges<T>& changes) {
  const auto apart = [&](const char* other, ByteRange read) {
    if (meet(written, read)) throw_shape_error("attention: ", name, " overlaps ", other);
  };
  const auto of = [](std::span<const T> numbers) {
    return byte_range(TensorView<const T, 1>(numbers));
  };
  if (changes.bias.given()) apart("bias", byte_range(changes.bias.view()));
  apart("relative_bias", byte_range(changes.relative_bias));
  apart("alibi_slopes", of(changes.alibi_slopes));
  apart("sinks", of(changes.sinks));
}

/// The same of positions.
inline void check_apart(const char* name, ByteRange written, std::span<const Index> first_queries,
                        std::span<const Index> key_counts) {
  const auto apart = [&](const char* other, std::span<const Index> read) {
    if (meet(written, byte_range(TensorView<const Index, 1>(read)))) {
      throw_shape_error("attention: ", name, " overlaps ", other);
    }
  };
  apart("first_queries", first_queries);
  apart("key_counts", key_counts);
}

}  // namespace heed::detail
