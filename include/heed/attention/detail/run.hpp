// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <heed/attention/detail/backward_call.hpp>
#include <heed/attention/detail/call.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/detail/mask_ref.hpp>
#include <heed/tensor/view.hpp>

namespace heed::simd {
enum class Isa;
}

namespace heed {

/// The plan of an attention call: `plan` returns it and the engine follows it. Only `products`
/// affects the bits of the result.
struct AttentionPlan {
  /// The contents of a vector's lanes: 64 queries against blocks of 96 keys, or, when queries are
  /// few, the keys of a block.
  enum class Lanes { queries, keys };
  /// The arithmetic of scores and weighted sums: in the call's scalar type, or, for bfloat16, by
  /// the CPU's instruction for bfloat16 pairs, with weights rounded to bfloat16.
  enum class Products { scalar, bfloat16_pairs };
  /// The heads in one task: one; several that share the answers of the mask; several that share one
  /// key head; or all heads of short sequences, in one kernel call.
  enum class Grouping { each_head, shared_mask, shared_keys, one_kernel_call };

  simd::Isa isa{};
  Lanes lanes = Lanes::queries;
  Products products = Products::scalar;
  Grouping grouping = Grouping::each_head;
  Index heads = 1;                                  // per task
  Index row_step = 1;                               // between the queries of a task
  Index tasks = 0;                                  // of the call; 0: not counted yet
  Index threads = 1;                                // that share the tasks
  const char* why = "there is nothing to compute";  // reason for lanes and grouping
  const char* why_products = "all tensors are stored in the scalar type";

  // Counts of tiles of 64 queries by 96 keys, over batch and heads; filled in by `plan` only.
  Index skipped = 0;  // no query sees a key: never computed
  Index partial = 0;  // masked score by score
  Index full = 0;     // computed without a mask

  Index tiles() const { return skipped + partial + full; }
  /// The share of tiles that are computed.
  double computed_share() const {
    return tiles() == 0 ? 0.0 : static_cast<double>(partial + full) / static_cast<double>(tiles());
  }
};

}  // namespace heed

/// The fused kernels on checked calls: declared here, and defined by
/// <heed/attention/detail/definitions.hpp> or, where HEED_COMPILED is set, in the library.
namespace heed {

namespace detail {

/// Plans a call.
template <class T>
AttentionPlan plan_of(const AttentionArgs<T>& args, const MaskRef& mask);

/// Computes a call by a plan that fits it.
template <class T>
void run_planned(const AttentionArgs<T>& args, const MaskRef& mask, const AttentionPlan& plan);

/// Plans and computes a call.
template <class T>
void run_attention(const AttentionArgs<T>& args, const MaskRef& mask);

/// Checks, plans and computes a call.
template <class T>
void attend(const std::type_identity_t<Operand<T>>& queries,
            const std::type_identity_t<Operand<T>>& keys,
            const std::type_identity_t<Operand<T>>& values,
            const std::type_identity_t<Result<T>>& out, const AttentionOptions<T>& options,
            const MaskRef& mask);

/// Computes the weights of the rows [row, row + out.extent(0)) of one head, into out (rows, keys).
template <class T>
void run_weights(const AttentionArgs<T>& args, const MaskRef& mask, Index item, Index head,
                 Index row, const TensorView<T, 2>& out);

template <class T>
void run_backward(const BackwardArgs<T>& args, const MaskRef& mask);

}  // namespace detail

}  // namespace heed
