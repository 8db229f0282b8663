// SPDX-License-Identifier: MIT
#pragma once

#include <heed/attention/backward.hpp>
#include <heed/attention/gradient_options.hpp>
#include <heed/attention/packed.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/scalar.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

namespace detail {

/// A gradient of something that all sequences share: summed over them in double, in their order.
template <class T>
class SequenceSum {
 public:
  explicit SequenceSum(const TensorView<T, 2>& out)
      : out_(out), part_(out.extents()), total_(out.extents()) {
    for (double& value : total_) value = 0;
  }

  /// Where one sequence's gradient goes before it is added.
  TensorView<T, 2> part() { return part_.view(); }
  void add() {
    for (Index i = 0; i < part_.size(); ++i) {
      total_.data()[i] += static_cast<double>(part_.data()[i]);
    }
  }
  void write() const {
    for (Index row = 0; row < out_.extent(0); ++row) {
      for (Index i = 0; i < out_.extent(1); ++i) out_(row, i) = static_cast<T>(total_(row, i));
    }
  }

 private:
  TensorView<T, 2> out_;
  Tensor<T, 2> part_;
  Tensor<double, 2> total_;
};

template <class T>
BackwardProblem<T> one_sequence(const BackwardProblem<T>& packed, const PackedOffsets& offsets,
                                Index sequence) {
  const auto at = static_cast<std::size_t>(sequence);
  const Index first = offsets.queries[at], last = offsets.queries[at + 1];
  const Index first_key = offsets.keys[at], last_key = offsets.keys[at + 1];
  BackwardProblem<T> one = packed;
  one.forward = one_sequence(packed.forward, offsets, sequence);
  one.output = packed.output.slice(2, first, last);
  one.log_sum_exp = packed.log_sum_exp.slice(2, first, last);
  one.grad_output = packed.grad_output.slice(2, first, last);
  one.grad_queries = packed.grad_queries.slice(2, first, last);
  one.grad_keys = packed.grad_keys.slice(2, first_key, last_key);
  one.grad_values = packed.grad_values.slice(2, first_key, last_key);
  if (packed.more.grad_log_sum_exp.given()) {
    one.more.grad_log_sum_exp = packed.more.grad_log_sum_exp.view().slice(2, first, last);
  }
  return one;
}

/// The sequences one after the other, and the gradients that they share.
template <class T>
void run_packed_sums(const BackwardProblem<T>& packed, const PackedOffsets& offsets,
                     const MaskRef& mask) {
  const auto row_of = [](std::span<T> values) {
    return TensorView<T, 1>(values).with_leading_axis();
  };
  SequenceSum<T> relative(packed.more.grad_relative_bias);
  SequenceSum<T> slopes(row_of(packed.more.grad_alibi_slopes));
  SequenceSum<T> sinks(row_of(packed.more.grad_sinks));
  const auto span_of = [](SequenceSum<T>& sum) {
    return std::span<T>(sum.part().data_handle(), static_cast<std::size_t>(sum.part().size()));
  };
  for (Index s = 0; s < offsets.count(); ++s) {
    auto one = one_sequence(packed, offsets, s);
    one.more.grad_relative_bias = relative.part();
    one.more.grad_alibi_slopes = span_of(slopes);
    one.more.grad_sinks = span_of(sinks);
    run_backward(one, mask);
    for (auto* sum : {&relative, &slopes, &sinks}) sum->add();
  }
  for (const auto* sum : {&relative, &slopes, &sinks}) sum->write();
}

}  // namespace detail

/// Gradients of packed_attention: as if every sequence were an attention_backward call, with
/// nothing computed between sequences. Gradients of slopes, sinks and the relative table are their
/// sums over all sequences. `output` and `log_sum_exp` are what packed_attention gave; shapes are
/// those of its tensors, and the gradients' those of what they belong to. Throws ShapeError, before
/// anything is written, for what attention_backward or packed_attention refuse.
template <class Q, class K, class V, class M, class Out, class Lse, class GradOut, class GradQ,
          class GradK, class GradV, detail::IsOptions Options = detail::OptionsOf<Q>>
void packed_attention_backward(const Q& queries, const K& keys, const V& values,
                               const PackedOffsets& offsets, const M& mask, const Out& output,
                               const Lse& log_sum_exp, const GradOut& grad_output,
                               GradQ&& grad_queries, GradK&& grad_keys, GradV&& grad_values,
                               const Options& options = {},
                               const detail::GradientsOf<Q>& gradients = {}) {
  if constexpr (detail::expect_backward<Options, M, Q, K, V, Out, Lse, GradOut, GradQ, GradK,
                                        GradV>()) {
    static_assert(Scalar<ValueOf<Q>>, "packed_attention_backward computes in float or double");
    const auto packed = detail::checked_backward_problem<ValueOf<Q>>(
        queries, keys, values, output, log_sum_exp, grad_output, grad_queries, grad_keys,
        grad_values, options, gradients);
    detail::check_packed(packed.forward, offsets, options);
    check_mask(mask, detail::packed_mask_shape(packed.forward, offsets));
    const MaskRef reference(mask);
    if (gradients.grad_relative_bias.size() > 0 || !gradients.grad_alibi_slopes.empty() ||
        !gradients.grad_sinks.empty()) {
      return detail::run_packed_sums(packed, offsets, reference);
    }
    detail::for_each_sequence(offsets, [&](Index s) {
      detail::run_backward(detail::one_sequence(packed, offsets, s), reference);
    });
  }
}

}  // namespace heed
