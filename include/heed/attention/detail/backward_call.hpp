// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed::detail {

/// A checked call of attention_backward: all views of rank 4 or 3, every option decided.
template <class T>
struct BackwardArgs {
  AttentionArgs<T> forward;  // its `out` and `log_sum_exp` are not used
  TensorView<const T, 4> output;
  TensorView<const T, 3> log_sum_exp;
  TensorView<const T, 4> grad_output;
  TensorView<T, 4> grad_queries;
  TensorView<T, 4> grad_keys;
  TensorView<T, 4> grad_values;
  GradientOptions<T> more;
  /// The key that row 0 of keys, values and their gradients is; the extents of forward.keys and
  /// forward.values are those of all keys.
  Index key_offset = 0;
  /// Not null: queries, keys and values are bfloat16, to be multiplied by these kernels and
  /// forward.pairs, and so is grad_output in `narrow_grad_output`, which may round it.
  simd::PairBackwardKernel<T> pairs = nullptr;
  Operand<T> narrow_grad_output{};

  Index kv_heads() const { return forward.kv_heads(); }
  /// Number of query heads that share one key head; 0 without any.
  Index sharing() const { return kv_heads() == 0 ? 0 : forward.sharing(); }
};

template <class View, class Expected>
void check_same_extents(const char* name, const View& view, const char* like,
                        const Expected& expected) {
  if (view.extents() != expected.extents()) {
    throw_shape_error("attention_backward: ", name, " is ", view.extents(), ", ", like, " ",
                      expected.extents());
  }
}

template <class T>
void check_output(const BackwardArgs<T>& args) {
  const auto& forward = args.forward;
  const Extents<4> output{forward.batch(), forward.heads(), forward.query_count(),
                          forward.value_dim()};
  const Extents<3> rows{output[0], output[1], output[2]};
  if (args.output.extents() != output) {
    throw_shape_error("attention_backward: output is ", args.output.extents(),
                      ", expected (batch, heads, queries, value_dim) = ", output);
  }
  check_same_extents("grad_output", args.grad_output, "output is", args.output);
  if (args.log_sum_exp.extents() != rows) {
    throw_shape_error("attention_backward: log_sum_exp is ", args.log_sum_exp.extents(),
                      ", expected (batch, heads, queries) = ", rows);
  }
  if (args.more.grad_log_sum_exp.given()) {
    check_same_extents("grad_log_sum_exp", args.more.grad_log_sum_exp.view(), "log_sum_exp is",
                       args.log_sum_exp);
  }
}

/// Calls visit(name, view) for every gradient to write.
template <class T, class Visit>
void for_each_written(const BackwardArgs<T>& args, const Visit& visit) {
  const auto& more = args.more;
  visit("grad_queries", args.grad_queries);
  visit("grad_keys", args.grad_keys);
  visit("grad_values", args.grad_values);
  if (more.grad_bias.given()) visit("grad_bias", more.grad_bias.view());
  visit("grad_relative_bias", more.grad_relative_bias);
  visit("grad_alibi_slopes", TensorView<T, 1>(more.grad_alibi_slopes));
  visit("grad_sinks", TensorView<T, 1>(more.grad_sinks));
}

/// Calls visit(name, addresses) for everything that a backward call reads.
template <class T, class Visit>
void for_each_read(const BackwardArgs<T>& args, const Visit& visit) {
  for_each_read(args.forward, visit);
  visit("output", byte_range(args.output));
  visit("log_sum_exp", byte_range(args.log_sum_exp));
  visit("grad_output", byte_range(args.grad_output));
  if (args.more.grad_log_sum_exp.given()) {
    visit("grad_log_sum_exp", byte_range(args.more.grad_log_sum_exp.view()));
  }
}

/// Refuses a gradient that shares memory with any other tensor, or with itself.
template <class T>
void check_written(const BackwardArgs<T>& args) {
  for_each_written(args, [&](const char* name, const auto& written) {
    if (has_internal_overlap(written)) {
      throw_shape_error("attention_backward: elements of ", name, " share memory (extents ",
                        written.extents(), ", strides ", written.strides(), ")");
    }
    const ByteRange range = byte_range(written);
    const auto check_separate = [&](const char* other, const ByteRange& bytes) {
      if (std::string_view(other) != name && meet(range, bytes)) {
        throw_shape_error("attention_backward: ", name, " overlaps ", other);
      }
    };
    for_each_read(args, check_separate);
    for_each_written(args, [&](const char* other, const auto& view) {
      check_separate(other, byte_range(view));
    });
  });
}

template <class T>
void check_differentiable(const AttentionArgs<T>& call) {
  const auto& function = call.score_mods.function;
  if (function.given() && !function.differentiable()) {
    throw_invalid_argument("attention_backward: score_function has no derivative(score, position)");
  }
}

/// Refuses gradients of score modifications that the call does not use, and wrong shapes.
template <class T>
void check_more(const BackwardArgs<T>& args, const AttentionOptions<T>& options) {
  const auto& more = args.more;
  const auto& score_mods = args.forward.score_mods;
  if (more.grad_bias.given()) {
    check_same_extents("grad_bias", more.grad_bias.view(), "bias is", options.bias.view());
  }
  if (more.grad_relative_bias.extent(1) > 0) {
    check_same_extents("grad_relative_bias", more.grad_relative_bias, "relative_bias is",
                       options.relative_bias);
  }
  const auto check_span = [](const char* name, std::size_t wanted, std::size_t given) {
    if (wanted == 0 || wanted == given) return;
    throw_shape_error("attention_backward: ", static_cast<Index>(wanted), " ", name, " for ",
                      static_cast<Index>(given), " of the call");
  };
  check_span("grad_alibi_slopes", more.grad_alibi_slopes.size(), score_mods.alibi_slopes.size());
  check_span("grad_sinks", more.grad_sinks.size(), score_mods.sinks.size());
  check_differentiable(args.forward);
}

template <class T>
void check_gradients(const BackwardArgs<T>& args) {
  check_same_extents("grad_queries", args.grad_queries, "queries are", args.forward.queries);
  check_same_extents("grad_keys", args.grad_keys, "keys are", args.forward.keys);
  check_same_extents("grad_values", args.grad_values, "values are", args.forward.values);
  check_written(args);
}

/// The forward call to differentiate: shapes and options checked, without an output.
template <class T>
AttentionArgs<T> differentiated_args(const Operand<T>& queries, const Operand<T>& keys,
                                     const Operand<T>& values, const AttentionOptions<T>& options) {
  const auto no_values = without_memory<const T>(with_width(keys.extents(), 0));
  const auto no_out = without_memory<T>(with_width(queries.extents(), 0));
  AttentionOptions<T> without = options;  // shares its arrays
  without.log_sum_exp = {};
  auto args = checked_args<T>(queries, keys, no_values, no_out, without);
  check_values(keys, values);
  args.values = operand_of(values, options.products);
  return args;
}

/// All checks that need no mask. Throws ShapeError or InvalidArgument, before the first write.
template <class T>
void check_backward_args(const BackwardArgs<T>& args, const AttentionOptions<T>& options) {
  check_output(args);
  check_more(args, options);
  check_gradients(args);
}

/// The checked arguments of a call.
template <class T, class Q, class K, class V, class Out, class Lse, class GradOut, class GradQ,
          class GradK, class GradV>
BackwardArgs<T> checked_backward_args(const Q& queries, const K& keys, const V& values,
                                      const Out& output, const Lse& log_sum_exp,
                                      const GradOut& grad_output, GradQ& grad_queries,
                                      GradK& grad_keys, GradV& grad_values,
                                      const AttentionOptions<T>& options,
                                      const GradientOptions<T>& gradients) {
  using In = ValueOf<Q>;
  using Result = ValueOf<Out>;
  static_assert(all_same<In, ValueOf<K>, ValueOf<V>> &&
                    all_same<Result, ValueOf<Lse>, ValueOf<GradOut>, ValueOf<GradQ>, ValueOf<GradK>,
                             ValueOf<GradV>> &&
                    (all_same<In, Result> || all_same<In, bfloat16>),
                "attention_backward: all tensors must have one scalar type");
  const auto q = as_rank_4(view_of(queries)).extents();
  const Extents<3> rows{q[0], q[1], q[2]};
  BackwardArgs<T> args{differentiated_args<T>(as_rank_4(view_of(queries)), as_rank_4(view_of(keys)),
                                              as_rank_4(view_of(values)), options),
                       as_rank_4(view_of(output)),
                       OptionalView<const T, 3>(log_sum_exp).fitted(rows).view(),
                       as_rank_4(view_of(grad_output)),
                       as_rank_4(view_of(grad_queries)),
                       as_rank_4(view_of(grad_keys)),
                       as_rank_4(view_of(grad_values)),
                       gradients};
  args.more.grad_log_sum_exp = gradients.grad_log_sum_exp.fitted(rows);
  check_backward_args(args, options);
  return args;
}

/// The operand with its numbers, which are bfloat16, copied to `memory`: as bits, or in T. Of every
/// batch item the first count_of(item) tokens.
template <class T, class X, class Count>
Operand<T> copied(const Operand<T>& from, Tensor<X, 4>& memory, const Count& count_of) {
  constexpr Index few = 1 << 17;  // numbers, before waking other threads costs more
  memory = Tensor<X, 4>::uninitialized(from.extents());
  const Index heads = from.extent(1), columns = from.extent(3), size = from.extent(2) * columns;
  const auto copy = [&](Index i) {
    const Index item = i / heads, head = i % heads, count = count_of(item);
    X* const to = memory.data() + i * size;
    if constexpr (std::is_same_v<X, T>) {
      from.rows(item, head, 0, count, to);
    } else {
      from.copy_bits(item, head, 0, count, columns, &to->bits);
    }
  };
  const Index all = size == 0 ? 0 : from.extent(0) * heads;
  for (Index i = 0; memory.size() < few && i < all; ++i) copy(i);
  if (memory.size() >= few) parallel_for(all, copy);
  if constexpr (std::is_same_v<X, T>) return from.at(memory.data());
  if constexpr (!std::is_same_v<X, T>) {
    return from.at(size == 0 ? nullptr : &memory.data()->bits);
  }
}

/// A tensor in T = float: in place, or an exact copy in `memory` of bfloat16 numbers.
template <class T, Viewable X>
TensorView<const T, 4> widened(const X& tensor, Tensor<T, 4>& memory) {
  const auto view = as_rank_4(view_of(tensor));
  if constexpr (std::is_same_v<ValueOf<X>, T>) {
    return view;
  } else {
    return copied(Operand<T>(view), memory, [&](Index) { return view.extent(2); }).view();
  }
}

/// Where a row of a gradient begins.
template <class T>
T* row_of(const TensorView<T, 4>& tensor, Index item, Index head, Index row) {
  return tensor.data_handle() + item * tensor.stride(0) + head * tensor.stride(1) +
         row * tensor.stride(2);
}

/// Writes rows times `factor` to a gradient from row `row` on, or adds them.
template <class T>
void put_rows(const TensorView<T, 4>& tensor, Index item, Index head, Index row, const T* from,
              Index from_stride, Index rows, T factor, bool accumulate) {
  simd::backward_kernels<T>().put_rows(from, from_stride, rows, tensor.extent(3), factor,
                                       accumulate, row_of(tensor, item, head, row),
                                       tensor.stride(2), tensor.stride(3));
}

/// Sets the rows [first, end) of a gradient to 0.
template <class T>
void clear_rows(const TensorView<T, 4>& tensor, Index item, Index head, Index first, Index end) {
  const Index columns = tensor.extent(3), step = tensor.stride(3);
  for (Index row = first; row < end; ++row) {
    T* to = row_of(tensor, item, head, row);
    if (step == 1) {
      clear_numbers(to, columns);
      continue;
    }
    for (Index column = 0; column < columns; ++column) to[column * step] = T{0};
  }
}

/// Whether a call reads and writes more than the second-level cache of a core holds, so that it
/// pays to prefetch one head during another. A backward call does not meet its inputs in the third:
/// other layers came in between.
template <class T>
bool exceeds_near_caches(const BackwardArgs<T>& args) {
  return args.forward.bytes() > 1 << 20;
}

/// What one head of a call reads and writes, for a head before it to prefetch during `steps` steps.
template <class T>
simd::ComingRows coming_head(const BackwardArgs<T>& args, Index item, Index head, Index steps) {
  const auto& call = args.forward;
  const Index queries = call.query_count(), keys = call.key_count();
  simd::ComingRows coming;
  coming.at_once = parts_of(larger(queries, keys), steps);
  coming.far = args.pairs != nullptr;  // which read rows once, from any cache alike
  const auto add_view = [&](const TensorView<const T, 4>& view, Index count) {
    coming.add(strided_rows<T>(view, item, head, 0), view.extent(3), count);
  };
  call.queries.announce(item, head, 0, queries, 1, coming);
  add_view(args.grad_output, queries);
  call.keys.announce(item, head, 0, keys, 1, coming);
  call.values.announce(item, head, 0, keys, 1, coming);
  add_view(args.output, queries);
  add_view(args.grad_queries, queries);
  add_view(args.grad_values, keys);
  add_view(args.grad_keys, keys);
  return coming;
}

}  // namespace heed::detail
