// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <heed/core/config.hpp>
#include <heed/core/index.hpp>

namespace heed::simd {

/// Philox counters {group, query, head, batch}, one a lane: lane i has group + i · group_step and
/// query + i · query_step, modulo 2³².
struct DropoutLanes {
  std::uint32_t group = 0;
  std::uint32_t query = 0;
  std::uint32_t head = 0;
  std::uint32_t batch = 0;
  std::uint32_t group_step = 0;
  std::uint32_t query_step = 0;
  std::uint32_t key[2] = {0, 0};  // of the generator
  std::uint32_t dropped = 0;      // of the 65536 values of a draw, the first so many are dropped
  Index lanes = 0;                // at most 64
};

/// The kernels of dropout on attention weights of one instruction set. Wide: the type whose vectors
/// have the lanes of 64-bit products.
template <class Wide>
struct DropoutKernels {
  /// Bit l of words[i]: whether draw i of lane l, bits 16·i … 16·i + 15 of its 128, is at least
  /// `dropped`. Bits from `lanes` on are unspecified.
  void (*draw)(const DropoutLanes& counters, std::uint64_t (&words)[8]);
};

/// The dropout kernels of the active instruction set.
template <class Wide = double>
const DropoutKernels<Wide>& dropout_kernels();

}  // namespace heed::simd
