// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include <heed/attention/detail/call.hpp>
#include <heed/attention/detail/operands.hpp>
#include <heed/attention/detail/pass.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/detail/scratch.hpp>
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

  /// Whether score gradients are to be summed by the distance of key and query.
  bool sums_distances() const {
    return more.grad_relative_bias.extent(1) > 0 || !more.grad_alibi_slopes.empty();
  }
  /// Whether the gradient of the bias is that of the scores: one score for each of its elements.
  bool bias_of_each_score() const {
    const Extents<4> scores{forward.batch(), forward.heads(), forward.query_count(),
                            forward.key_count()};
    return more.grad_bias.given() && more.grad_bias.view().extents() == scores;
  }
  /// Whether each element of it is added to one score of every item.
  bool bias_of_items() const {
    const Extents<4> scores{1, forward.heads(), forward.query_count(), forward.key_count()};
    return more.grad_bias.given() && more.grad_bias.view().extents() == scores &&
           forward.batch() > 1;
  }
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

/// A call that rounds its queries, keys and values, with copies in one form: as bits for products
/// of pairs or tiles, or else in T.
template <class T>
class RoundedCall {
 public:
  RoundedCall(const AttentionArgs<T>& args, bool bits) : args_(args) {
    const auto queries = [&](Index) { return args.query_count(); };
    const auto keys = [&](Index item) { return args.key_count_of(item); };
    take(args_.queries, 0, bits, queries);
    take(args_.keys, 1, bits, keys);
    take(args_.values, 2, bits, keys);
  }
  RoundedCall(const RoundedCall&) = delete;
  RoundedCall& operator=(const RoundedCall&) = delete;

  const AttentionArgs<T>& args() const { return args_; }

 private:
  template <class Count>
  void take(Operand<T>& operand, Index place, bool bits, const Count& count_of) {
    if (!bits) {
      operand = copied(operand, wide_[place], count_of);
    } else if (operand.rounds()) {
      operand = copied(operand, narrow_[place], count_of);
    }
  }

  AttentionArgs<T> args_;
  Tensor<bfloat16, 4> narrow_[3];
  Tensor<T, 4> wide_[3];
};

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

/// Copies the log-sum-exp of a block of queries, in units of log2; returns one bit per query that
/// saw a key or a sink. Kernels compute whole strips, so lanes past the last query hold numbers.
template <class T>
std::uint64_t take_log_sum_exp(const BackwardArgs<T>& args, Index item, Index head, Index row,
                               Index rows, T* to) {
  std::uint64_t seeing = 0;
  for (Index i = 0; i < rows; ++i) {
    const T value = args.log_sum_exp(item, head, row + i);
    const bool sees = !(value == -std::numeric_limits<T>::infinity());
    seeing |= static_cast<std::uint64_t>(sees) << i;
    to[i] = sees ? static_cast<T>(static_cast<double>(value) * bits_per_nat) : T{0};
  }
  for (Index i = rows; i < simd::query_block; ++i) to[i] = T{0};
  return seeing;
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

/// Writes a tile of the gradient of the bias, from transposed rows, as the kernels have them.
template <class T>
void put_bias(const BackwardArgs<T>& args, Index item, Index head, Index row, Index rows, Index key,
              Index keys, const T* from) {
  const auto& bias = args.more.grad_bias.view();
  const Index row_step = bias.stride(2), step = bias.stride(3);
  T* to = row_of(bias, item, head, row) + key * step;
  if (step == 1) {
    return simd::backward_kernels<T>().unpack(from, rows, keys, T{1}, to, row_step);
  }
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < keys; ++j) {
      to[i * row_step + j * step] = from[j * simd::query_block + i] + T{0};
    }
  }
}

/// The same from sums, of at most backward_chunk keys.
template <class T>
void put_bias(const BackwardArgs<T>& args, Index item, Index head, Index row, Index rows, Index key,
              Index keys, const double* sums) requires(!std::is_same_v<T, double>) {
  constexpr Index size = simd::query_block * backward_chunk;
  struct Tile;
  T* tile = nullptr;
  divide_scratch<Tile>([&](Carver& carver) { tile = carver.take<T>(size); });
  for (Index i = 0; i < keys * simd::query_block; ++i) tile[i] = static_cast<T>(sums[i]);
  put_bias(args, item, head, row, rows, key, keys, static_cast<const T*>(tile));
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

/// The gradients of relative_bias and alibi_slopes, which apply to all scores at one distance. The
/// pass over a chunk of keys of a head adds its score gradients to a row with a number for each
/// distance there is (QueryShare::distances); here the rows of a head are added up in the order of
/// its chunks. Memory of the calling thread: (batch, heads, distances) numbers.
template <class T>
class DistanceGradients {
 public:
  explicit DistanceGradients(const BackwardArgs<T>& args)
      : more_(args.more), call_(args.forward), distances_(args.more.grad_relative_bias.extent(1)) {
    divide_scratch<DistanceGradients>([&](Carver& carver) {
      sums_ = carver.take<double>(call_.batch() * call_.heads() * (distances_ + 1));
    });
  }

  /// The size of a row.
  Index row() const { return call_.query_count() + backward_chunk - 1; }
  /// A row of zeros, the calling thread's, or one of many.
  double* own_row() const {
    struct Row;
    double* own = nullptr;
    divide_scratch<Row>([&](Carver& carver) { own = carver.take<double>(row()); });
    return cleared(own, 0);
  }
  double* cleared(double* rows, Index index) const {
    clear_numbers(rows + index * row(), row());
    return rows + index * row();
  }

  /// Before the first chunk of a head, and after every chunk, with its first key.
  void begin(Index item, Index head) const { clear_numbers(sums_of(item, head), distances_ + 1); }
  void add(Index item, Index head, Index first_key, const double* grads) const {
    double* const sums = sums_of(item, head);
    const Index reach = distances_ / 2;
    const Index last = first_key + backward_chunk - 1 - call_.query_position(item, 0);
    double of_slope = 0;
    const Index keys = smaller(backward_chunk, call_.key_count() - first_key);
    for (Index i = backward_chunk - keys; i < row(); ++i) {
      const Index distance = last - i;
      of_slope -= grads[i] * static_cast<double>(distance < 0 ? -distance : distance);
      if (distances_ == 0) continue;
      sums[larger(-reach, smaller(distance, reach)) + reach] += grads[i];
    }
    sums[distances_] += of_slope;
  }

  void finish() const {
    for (Index head = 0; head < call_.heads(); ++head) {
      for (Index item = 1; item < call_.batch(); ++item) {
        const double* const one = sums_of(item, head);
        for (Index i = 0; i <= distances_; ++i) sums_of(0, head)[i] += one[i];
      }
    }
    const auto& relative = more_.grad_relative_bias;
    for (Index distance = 0; distance < distances_; ++distance) {
      for (Index head = 0; head < relative.extent(0); ++head) {
        const bool shared = relative.extent(0) == 1;
        const Index end = shared ? call_.heads() : head + 1;
        relative(head, distance) = static_cast<T>(sum(head, end, distance));
      }
    }
    const auto& slopes = more_.grad_alibi_slopes;
    for (std::size_t head = 0; head < slopes.size(); ++head) {
      const auto index = static_cast<Index>(head);
      slopes[head] = static_cast<T>(sum(index, index + 1, distances_));
    }
  }

 private:
  /// For each distance the sum of a head's score gradients; then −|distance| times these, summed,
  /// for the slope.
  double* sums_of(Index item, Index head) const {
    return sums_ + (item * call_.heads() + head) * (distances_ + 1);
  }
  double sum(Index first_head, Index end_head, Index slot) const {
    double total = 0;
    for (Index head = first_head; call_.batch() > 0 && head < end_head; ++head) {
      total += sums_of(0, head)[slot];
    }
    return total;
  }

  const GradientOptions<T>& more_;
  const AttentionArgs<T>& call_;
  Index distances_;
  double* sums_ = nullptr;
};

}  // namespace heed::detail
