// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/view.hpp>

namespace heed::simd {
enum class Isa;
}

namespace heed {

/// How an attention call is computed: `plan` returns it and the engine follows it. Whatever it
/// says, the bits are the same, but for `products`.
struct AttentionPlan {
  /// What the lanes of a vector hold: 64 queries that meet blocks of 96 keys, or the keys of a
  /// block, where there are few queries.
  enum class Lanes { queries, keys };
  /// How queries meet keys and weights meet values: multiplied in the call's scalar type, or, of
  /// bfloat16, in pairs by the CPU's own instruction, with weights rounded to bfloat16.
  enum class Products { scalar, bfloat16_pairs };
  /// Which heads a piece of work takes together: one at a time; those that share what the mask
  /// answered; those that read one key head; or all of short sequences in one call of a kernel.
  enum class Grouping { each_head, shared_mask, shared_keys, one_kernel_call };

  simd::Isa isa{};
  Lanes lanes = Lanes::queries;
  Products products = Products::scalar;
  Grouping grouping = Grouping::each_head;
  Index heads = 1;                                  // that a piece of work takes together
  Index pieces = 0;                                 // of work, which threads share
  Index threads = 1;                                // that share them
  const char* why = "there is nothing to compute";  // these lanes and this grouping
  const char* why_products = "all tensors have the scalar type computed in";

  // Tiles of 64 queries by 96 keys, over batch and heads; counted by `plan` alone.
  Index skipped = 0;  // no query sees a key: never touched
  Index partial = 0;  // looked at score by score
  Index full = 0;     // run without a mask

  Index tiles() const { return skipped + partial + full; }
  /// Share of tiles that are computed.
  double computed_share() const {
    return tiles() == 0 ? 0.0 : static_cast<double>(partial + full) / static_cast<double>(tiles());
  }
};

}  // namespace heed

/// The fused kernels on checked calls: declared here, defined by
/// <heed/attention/detail/definitions.hpp> or in the library where HEED_COMPILED is set.
namespace heed {

namespace detail {

/// How a call is to be computed.
template <class T>
AttentionPlan plan_of(const AttentionProblem<T>& problem, const MaskRef& mask);

/// Computes a call as a plan says that fits it.
template <class T>
void run_planned(const AttentionProblem<T>& problem, const MaskRef& mask,
                 const AttentionPlan& plan);

/// Both.
template <class T>
void run_attention(const AttentionProblem<T>& problem, const MaskRef& mask);

/// Weights of the rows [row, row + out.extent(0)) of one head, into out (rows, keys).
template <class T>
void run_weights(const AttentionProblem<T>& problem, const MaskRef& mask, Index item, Index head,
                 Index row, const TensorView<T, 2>& out);

template <class T>
void run_backward(const BackwardProblem<T>& problem, const MaskRef& mask);

}  // namespace detail

}  // namespace heed
