// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <span>
#include <type_traits>

#include <heed/attention/backward.hpp>
#include <heed/attention/forward.hpp>
#include <heed/attention/options.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/intervals.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

// The forward pass. -------------------------------------------------------------------------------

namespace detail {

template <class Offsets>
concept OffsetList =
    RunOf<std::remove_cvref_t<Offsets>, Index> || ListOf<std::remove_cvref_t<Offsets>, Index>;

template <class... Given>
inline constexpr bool without_offsets = true;

}  // namespace detail

/// The borders of the sequences in a packed batch: sequence s has the queries [queries[s],
/// queries[s + 1]) and the keys [keys[s], keys[s + 1]). Self-attention needs one array for both.
/// Refers to named arrays, which must outlive it; keeps temporary ones and those of other integers.
struct PackedOffsets {
  PackedOffsets(std::initializer_list<Index> both)  // NOLINT: one list converts
      : queries(both), keys(queries) {}
  template <detail::OffsetList Offsets>
  PackedOffsets(Offsets&& both)  // NOLINT: one array converts
      : queries(kept<Offsets>(both)), keys(queries) {}
  PackedOffsets(std::initializer_list<Index> of_queries, std::initializer_list<Index> of_keys)
      : queries(of_queries), keys(of_keys) {}
  template <detail::OffsetList Queries, detail::OffsetList Keys>
  PackedOffsets(Queries&& of_queries, Keys&& of_keys)
      : queries(kept<Queries>(of_queries)), keys(kept<Keys>(of_keys)) {}

  Index count() const { return queries.empty() ? 0 : static_cast<Index>(queries.size()) - 1; }

  OwnedArray<Index> queries;
  OwnedArray<Index> keys;

 private:
  template <class Offsets>
  static OwnedArray<Index> kept(const std::remove_reference_t<Offsets>& offsets) {
    using List = std::remove_cvref_t<Offsets>;
    constexpr bool refers =
        detail::RunOf<List, Index> &&
        (std::is_lvalue_reference_v<Offsets> || std::ranges::enable_borrowed_range<List>);
    if constexpr (refers) {
      return OwnedArray<Index>::borrowed(
          {std::data(offsets), static_cast<std::size_t>(std::size(offsets))});
    }
    return OwnedArray<Index>(offsets);
  }
};

namespace detail {

/// Whether the first of what follows the tensors of a call is no list of borders.
template <class First, class... Others>
inline constexpr bool without_offsets<First, Others...> =
    !std::is_convertible_v<const First&, PackedOffsets>;

inline void check_offsets(const char* name, std::span<const Index> offsets, Index tokens) {
  const auto refuse = [&](const char* what, Index number) {
    throw_shape_error("packed_attention: ", name, " offsets ", what, number,
                      "; expected 0, then the end of each sequence, up to the ", tokens,
                      " tokens of a buffer (heads, tokens, head_dim)");
  };
  if (offsets.empty()) refuse("are ", 0);
  if (offsets.front() != 0) refuse("begin with ", offsets.front());
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) refuse("fall to ", offsets[i]);
  }
  if (offsets.back() != tokens) refuse("end with ", offsets.back());
}

template <class T>
AttentionArgs<T> one_sequence(const AttentionArgs<T>& packed, const PackedOffsets& offsets,
                              Index sequence) {
  const auto at = static_cast<std::size_t>(sequence);
  const Index first = offsets.queries[at], last = offsets.queries[at + 1];
  const Index first_key = offsets.keys[at], last_key = offsets.keys[at + 1];
  AttentionArgs<T> one = packed;
  one.queries = packed.queries.slice(first, last);
  one.out = packed.out.slice(first, last);
  one.keys = packed.keys.slice(first_key, last_key);
  one.values = packed.values.slice(first_key, last_key);
  if (packed.log_sum_exp.given()) one.log_sum_exp = packed.log_sum_exp.view().slice(2, first, last);
  one.item_offset = sequence;
  return one;
}

/// Refuses a call that cannot be split by sequence.
template <class T>
void check_packed(const AttentionArgs<T>& packed, const PackedOffsets& offsets,
                  const AttentionOptions<T>& options) {
  check_offsets("query", offsets.queries, packed.query_count());
  check_offsets("key", offsets.keys, packed.key_count());
  if (offsets.queries.size() != offsets.keys.size()) {
    throw_shape_error("packed_attention: ", offsets.count(), " sequences of queries, ",
                      offsets.keys.size() - 1, " of keys");
  }
  if (packed.batch() != 1 || options.bias.given() || !options.first_queries.empty() ||
      !options.key_counts.empty()) {
    throw_shape_error("packed_attention: takes no batch, bias, first_queries or key_counts: ",
                      "sequences are told apart by offsets");
  }
}

/// The shape a mask has to fit: the size of the largest sequence and the range of all query
/// positions.
template <class T>
MaskShape packed_mask_shape(const AttentionArgs<T>& packed, const PackedOffsets& offsets) {
  MaskShape all{offsets.count(), packed.heads(), 0, 0};
  for (Index s = 0; s < offsets.count(); ++s) {
    const MaskShape one = shape_of_call(one_sequence(packed, offsets, s));
    all.keys = larger(all.keys, one.keys);
    if (one.queries == 0) continue;
    const bool first = all.queries == 0;
    all.first_query = first ? one.first_query : smaller(all.first_query, one.first_query);
    all.last_query = first ? one.last_query : larger(all.last_query, one.last_query);
    all.queries = larger(all.queries, one.queries);
  }
  all.partial = all.queries == 0;
  return all;
}

/// Calls run(sequence). Many sequences run in parallel, one per thread at a time; a few run in
/// order, each on all threads.
template <class Run>
void for_each_sequence(const PackedOffsets& offsets, const Run& run) {
  if (offsets.count() >= 4 * thread_count()) {
    parallel_for(offsets.count(), run);
  } else {
    for (Index s = 0; s < offsets.count(); ++s) run(s);
  }
}

}  // namespace detail

/// Attention within each of many sequences stored back to back in one buffer: no padding is stored
/// or computed. queries (heads, tokens, head_dim), keys and values (kv_heads, tokens, dim), out
/// (heads, tokens, value_dim). The result is that of one `attention` call per sequence. The mask
/// sees every sequence by itself: positions count from its start, and `batch` is its number.
/// options.log_sum_exp is (heads, tokens). Without a mask every query sees every key of its
/// sequence. Throws the errors of `attention` before the first write, and ShapeError for a batch
/// above 1, for the options bias, first_queries and key_counts, and for offsets that do not
/// ascend from 0 to the number of tokens.
template <class Q, class K, class V, class M, detail::MeantAsResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
requires(!detail::OffsetList<M>)  // which would be the borders of keys
    detail::WrittenTo<Q, Out> packed_attention(const Q& queries, const K& keys, const V& values,
                                               const PackedOffsets& offsets, const M& mask,
                                               Out&& out, const Options& options = {}) {
  using To = std::remove_reference_t<Out>;
  if constexpr (detail::expect_local_call_to<Options, M, To, Q, const K, const V>()) {
    const auto packed = detail::checked_args<ComputedIn<ValueOf<Q>>>(
        detail::as_rank_4(view_of(queries)), detail::as_rank_4(view_of(keys)),
        detail::as_rank_4(view_of(values)), detail::as_rank_4(view_of(out)), options);
    detail::check_packed(packed, offsets, options);
    check_mask(mask, detail::packed_mask_shape(packed, offsets));
    const MaskRef reference(mask);
    detail::for_each_sequence(offsets, [&](Index s) {
      detail::run_attention(detail::one_sequence(packed, offsets, s), reference);
    });
  } else {
    return detail::WrittenTo<Q, Out>();
  }
}
template <class Q, class K, class V, detail::TakesResult Out,
          detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, detail::Kept<Out>> packed_attention(const Q& queries, const K& keys,
                                                         const V& values,
                                                         const PackedOffsets& offsets, Out&& out,
                                                         const Options& options = {}) {
  detail::Kept<Out>& to = out;
  return packed_attention(queries, keys, values, offsets, masks::Full{}, to, options);
}

/// The same, returning a new tensor of the queries' rank.
template <class Q, class K, class V, detail::MeantAsMask M,
          detail::IsOptions Options = detail::OptionsOf<Q>>
auto packed_attention(const Q& queries, const K& keys, const V& values,
                      const PackedOffsets& offsets, const M& mask, const Options& options = {}) {
  if constexpr (!detail::expect_call<Options, M, Q, const K, const V>()) {
    return detail::ResultOf<Q>();
  } else {
    detail::ResultOf<Q> out(detail::result_extents(view_of(queries), view_of(values)));
    packed_attention(queries, keys, values, offsets, mask, out, options);
    return out;
  }
}
template <class Q, class K, class V, detail::IsOptions Options = detail::OptionsOf<Q>>
auto packed_attention(const Q& queries, const K& keys, const V& values,
                      const PackedOffsets& offsets, const Options& options = {}) {
  return packed_attention(queries, keys, values, offsets, masks::Full{}, options);
}
// The same where the borders of queries and of keys are two arguments.
template <class Q, class K, class V, detail::OffsetList OfQueries, detail::OffsetList OfKeys,
          class M, detail::MeantAsResult Out, detail::IsOptions Options = detail::OptionsOf<Q>>
detail::WrittenTo<Q, Out> packed_attention(const Q& queries, const K& keys, const V& values,
                                           const OfQueries& of_queries, const OfKeys& of_keys,
                                           const M& mask, Out&& out, const Options& options = {}) {
  return packed_attention(queries, keys, values, PackedOffsets(of_queries, of_keys), mask, out,
                          options);
}
template <class Q, class K, class V, detail::OffsetList OfQueries, detail::OffsetList OfKeys,
          detail::MeantAsMask M, detail::IsOptions Options = detail::OptionsOf<Q>>
auto packed_attention(const Q& queries, const K& keys, const V& values, const OfQueries& of_queries,
                      const OfKeys& of_keys, const M& mask, const Options& options = {}) {
  return packed_attention(queries, keys, values, PackedOffsets(of_queries, of_keys), mask, options);
}
// A call that does not say where sequences begin.
template <class Q, class K, class V, class... More>
requires detail::without_offsets<More...>
const Q& packed_attention(const Q& queries, const K&, const V&, const More&...) {
  static_assert(detail::never<Q>,
                "the borders of the sequences come behind the values: packed_attention(queries, "
                "keys, values, offsets, mask), with offsets as {0, 3, 7}");
  return queries;
}

// The backward pass. ------------------------------------------------------------------------------

namespace detail {

/// The gradient of an input that all sequences share: summed over the sequences in order, in
/// double.
template <class T>
class SequenceSum {
 public:
  explicit SequenceSum(const TensorView<T, 2>& out)
      : out_(out), part_(out.extents()), total_(out.extents()) {
    for (double& value : total_) value = 0;
  }

  /// The gradient of one sequence, before it is added.
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
BackwardArgs<T> one_sequence(const BackwardArgs<T>& packed, const PackedOffsets& offsets,
                             Index sequence) {
  const auto at = static_cast<std::size_t>(sequence);
  const Index first = offsets.queries[at], last = offsets.queries[at + 1];
  const Index first_key = offsets.keys[at], last_key = offsets.keys[at + 1];
  BackwardArgs<T> one = packed;
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

/// Runs the sequences in order and sums the gradients they share.
template <class T>
void run_packed_sums(const BackwardArgs<T>& packed, const PackedOffsets& offsets,
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

/// Gradients of packed_attention, those of one attention_backward call per sequence; nothing is
/// computed across sequences. Gradients of slopes, sinks and the relative table are sums over all
/// sequences. `output` and `log_sum_exp` are the results of packed_attention, with their shapes;
/// each gradient has the shape of its tensor. Float or double, not bfloat16. Throws ShapeError,
/// before the first write, for the arguments that attention_backward or packed_attention refuses.
template <class Q, class K, class V, class M, class Out, class Lse, class GradOut, class GradQ,
          class GradK, class GradV, detail::IsOptions Options = detail::OptionsOf<Q>>
void packed_attention_backward(const Q& queries, const K& keys, const V& values,
                               const PackedOffsets& offsets, const M& mask, const Out& output,
                               const Lse& log_sum_exp, const GradOut& grad_output,
                               GradQ&& grad_queries, GradK&& grad_keys, GradV&& grad_values,
                               const Options& options = {},
                               const detail::GradientsOf<Q>& gradients = {}) {
  if constexpr (!detail::expect_backward<Options, M, Q, K, V, Out, Lse, GradOut, GradQ, GradK,
                                         GradV>()) {
    return;
  } else if constexpr (!Scalar<ValueOf<Q>>) {
    static_assert(Scalar<ValueOf<Q>>,
                  "packed_attention_backward computes in float or double: convert bfloat16 tensors "
                  "to float, or call attention_backward for each sequence");
  } else {
    const auto packed = detail::checked_backward_args<ValueOf<Q>>(
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
