// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/index.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

/// The arguments of an attention call, classified by type. A mistake is refused in one sentence:
/// the first compiler error says what to change, and nothing after it is compiled.

namespace heed {

template <class T, class Stored>
class KeyValueCache;

namespace detail {

template <class X>
inline constexpr bool is_cache = false;
template <class T, class Stored>
inline constexpr bool is_cache<KeyValueCache<T, Stored>> = true;

template <class X>
inline constexpr bool is_options = false;
template <class T>
inline constexpr bool is_options<AttentionOptions<T>> = true;
template <class X>
concept IsOptions = is_options<X>;

/// Classify the argument where a mask may stand: a tensor receives the result, options are options,
/// and anything else is a mask or a mistake.
template <class X>
concept TakesResult = Viewable<X> && !MaskPolicy<std::remove_cvref_t<X>>;
template <class X>
concept MeantAsMask = !TakesResult<const X> && !is_options<X>;
template <class X>
concept MeantAsResult = !is_options<std::remove_cvref_t<X>>;
template <class X>
concept MeantAsKeys = !is_cache<X>;

template <class Q>
struct CallTypes {
  using Scalar = float;
  using Result = Tensor<float, 2>;
};
template <class Q>
requires(Viewable<Q>&& std::is_arithmetic_v<ComputedIn<ValueOf<Q>>>) struct CallTypes<Q> {
  using Scalar = std::conditional_t<std::is_same_v<ValueOf<Q>, double>, double, float>;
  using Result = Tensor<ValueOf<Q>, ViewOf<Q>::rank()>;
};

/// The options type of a call with queries Q; float where Q is a mistake.
template <class Q>
using OptionsOf = AttentionOptions<typename CallTypes<const Evaluated<Q>>::Scalar>;
/// The type of the tensor that such a call returns.
template <class Q>
using ResultOf = typename CallTypes<const Q>::Result;

template <class X>
inline constexpr bool computable =
    std::is_same_v<X, float> || std::is_same_v<X, double> || std::is_same_v<X, bfloat16>;
template <class X, class... Others>
inline constexpr bool all_same = (std::is_same_v<X, Others> && ...);
template <std::size_t Rank>
inline constexpr bool call_rank = Rank >= 2 && Rank <= 4;

/// True for tensors that may be passed to one call together, in any role.
template <class... Tensors>
constexpr bool expect_tensors() {
  if constexpr (!(Viewable<Tensors> && ...)) {
    static_assert(never<Tensors...>,
                  "this is no tensor: attention takes heed::Tensor, heed::TensorView(data, {rows, "
                  "columns}) and, after #include <heed/tensor/eigen.hpp>, Eigen's matrices");
  } else if constexpr ((Viewable<ValueOf<Tensors>> || ...)) {
    static_assert(never<Tensors...>,
                  "a vector of vectors is no tensor: flatten it, row behind row in one "
                  "std::vector<float>, and pass heed::TensorView(flat, {rows, columns})");
  } else if constexpr (!(computable<ValueOf<Tensors>> && ...)) {
    static_assert(never<Tensors...>,
                  "attention computes in float or double, and takes bfloat16: convert tensors of "
                  "other types, as integers, to one of these first");
  } else if constexpr (!all_same<ValueOf<Tensors>...>) {
    constexpr bool any_double = (std::is_same_v<ValueOf<Tensors>, double> || ...);
    static_assert(!any_double,
                  "the tensors of one call must have one scalar type: convert all of them to "
                  "double, their common type");
    static_assert(any_double,
                  "the tensors of one call must have one scalar type: convert all of them to "
                  "float, their common type");
  } else {
    return true;
  }
  return false;
}

/// The extents of a result: those of the queries, with the width of the values.
template <class Q, class V, std::size_t Rank, std::size_t RankOfValues>
Extents<Rank> result_extents(const TensorView<Q, Rank>& queries,
                             const TensorView<V, RankOfValues>& values) {
  static_assert(Rank == RankOfValues, "attention: queries and values must have one rank");
  return with_width(queries.extents(), values.extent(RankOfValues - 1));
}

/// True for ranks of (length, dim), with or without heads and a batch before them.
template <class... Tensors>
constexpr bool expect_ranks() {
  constexpr bool expected = (call_rank<ViewOf<Tensors>::rank()> && ...);
  static_assert(expected,
                "attention takes (batch, heads, length, dim), (heads, length, dim) or (length, "
                "dim): give flat values a shape, heed::TensorView(data, {length, dim})");
  return expected;
}

/// True for a tensor to which a result can be written.
template <class Out>
constexpr bool expect_output() {
  if constexpr (MaskPolicy<Out>) {
    static_assert(never<Out>, "the mask comes before the tensor of the result: (…, mask, out)");
  } else if constexpr (!Viewable<Out>) {
    return expect_tensors<Out>();
  } else if constexpr (std::is_same_v<ValueOf<Out>, bool>) {
    static_assert(never<Out>,
                  "a tensor of bool is no mask by itself: wrap it, heed::masks::Dense(tensor)");
  } else if constexpr (std::is_const_v<typename ViewOf<Out>::element_type>) {
    static_assert(never<Out>, "the result cannot be written: out is const");
  } else {
    return true;
  }
  return false;
}

/// True for a mask; adds to expect_mask the sentence for tensors.
template <class M>
constexpr bool expect_call_mask() {
  if constexpr (Viewable<M> && !MaskPolicy<M>) {
    static_assert(never<M>,
                  "a tensor is no mask by itself: heed::masks::Dense(tensor) makes one of bool, "
                  "and numbers that are added to scores are AttentionOptions::bias");
    return false;
  } else {
    return expect_mask<M>();
  }
}

/// True for options of the scalar type in which a call with queries Q computes.
template <class Options, class Q>
constexpr bool expect_options() {
  constexpr bool expected = std::is_same_v<Options, OptionsOf<Q>>;
  static_assert(expected,
                "the options are of another scalar type than the call: AttentionOptions<double> "
                "for double, AttentionOptions<float> for float and bfloat16");
  return expected;
}

/// Whether to compile the body of a call: true, or a static_assert has failed.
template <class Options, class M, class Q, class... Others>
constexpr bool expect_call() {
  if constexpr (expect_call_mask<M>()) {
    if constexpr (expect_tensors<const Q, Others...>()) {
      if constexpr (expect_ranks<const Q, Others...>()) return expect_options<Options, Q>();
    }
  }
  return false;
}
/// The same for a call that writes to `Out`.
template <class Options, class M, class Out, class Q, class... Others>
constexpr bool expect_call_to() {
  if constexpr (!expect_output<Out>()) {
    return false;
  } else {
    return expect_call<Options, M, Q, Others..., Out>();
  }
}

}  // namespace detail
}  // namespace heed
