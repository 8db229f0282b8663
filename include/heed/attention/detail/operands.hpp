// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heed/attention/options.hpp>
#include <heed/core/bfloat16.hpp>
#include <heed/core/index.hpp>
#include <heed/kernels/attention_kernels.hpp>
#include <heed/kernels/matrix_ref.hpp>
#include <heed/masks/policy.hpp>
#include <heed/tensor/eigen_views.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

// The arguments of an attention call: first their types, then where the rows of its tensors lie. A
// mistake is refused in one sentence: the first compiler error says what to change, and nothing
// after it is compiled.

namespace heed {
template <class T, class Stored>
class KeyValueCache;
}  // namespace heed

namespace heed::detail {

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

/// Classify the argument where a mask may stand: a tensor of numbers receives the result, options
/// are options, and anything else is a mask or a mistake.
template <class X>
concept TakesResult = Viewable<X> && !MaskPolicy<std::remove_cvref_t<X>> &&
                      !std::is_same_v<std::remove_cv_t<ValueOf<X>>, bool>;
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
concept WritableResult = TakesResult<X> && !std::is_const_v<typename ViewOf<X>::element_type>;
/// What a call returns that writes to `Out`: nothing, or, where it is refused, a tensor, so that
/// the first error is not that `auto out = attention(…)` is void.
template <class Q, class Out>
using WrittenTo =
    std::conditional_t<WritableResult<std::remove_reference_t<Out>>, void, ResultOf<Q>>;
/// The result of a call without a mask; const where it is a temporary, which nobody could read.
template <class Out>
using Kept = std::conditional_t<std::is_lvalue_reference_v<Out> || !owns_values<Out>,
                                std::remove_reference_t<Out>, const Out>;

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
  if constexpr ((is_cache<std::remove_cv_t<Tensors>> || ...)) {
    static_assert(never<Tensors...>,
                  "the cache comes behind the queries: attention(queries, cache, mask)");
  } else if constexpr (((MaskPolicy<std::remove_cv_t<Tensors>> && !Viewable<Tensors>) || ...)) {
    static_assert(never<Tensors...>,
                  "a mask is no tensor: masks come behind queries, keys and values, and in "
                  "attention_weights and plan behind queries and keys");
  } else if constexpr (!(Viewable<Tensors> && ...)) {
    static_assert(!expect_evaluated<std::remove_cv_t<Tensors>...>() || never<Tensors...>,
                  "this is no tensor: attention takes heed::Tensor, heed::TensorView(data, {rows, "
                  "columns}) and Eigen's matrices");
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
  } else if constexpr (std::is_arithmetic_v<Out>) {
    static_assert(never<Out>, "a number is no result: options are in braces, {.scale = 0.5f}");
  } else if constexpr (!Viewable<Out>) {
    return expect_tensors<Out>();
  } else if constexpr (std::is_same_v<ValueOf<Out>, bool>) {
    static_assert(never<Out>,
                  "a tensor of bool is no mask by itself: wrap it, heed::masks::Dense(tensor)");
  } else if constexpr (std::is_const_v<typename ViewOf<Out>::element_type>) {
    static_assert(
        never<Out>,
        "the result cannot be written: out is const or a temporary tensor; what is added to "
        "scores is AttentionOptions::bias");
  } else {
    return true;
  }
  return false;
}

/// True for a mask; adds to expect_mask the sentence for tensors.
template <class M>
constexpr bool expect_call_mask() {
  if constexpr ((Viewable<M> || Expression<M>)&&!MaskPolicy<M>) {
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
  if constexpr (!(Viewable<const Q> && (Viewable<Others> && ...))) {
    return expect_tensors<const Q, Others...>();
  } else if constexpr (MaskPolicy<M> && MaskPolicy<Out>) {
    static_assert(never<M>, "a call takes one mask: combine two by a & b, or by a | b");
    return false;
  } else if constexpr (!expect_output<Out>()) {
    return false;
  } else {
    return expect_call<Options, M, Q, Others..., Out>();
  }
}
/// Whether a call with queries Q may write to a wider `Out`: bfloat16 to float.
template <class Q, class Out>
constexpr bool widens() {
  if constexpr (Viewable<const Q> && Viewable<Out>) {
    return std::is_same_v<ValueOf<const Q>, bfloat16> && std::is_same_v<ValueOf<Out>, float>;
  }
  return false;
}
/// expect_call_to for a call of one process, whose result may be wider.
template <class Options, class M, class Out, class Q, class... Others>
constexpr bool expect_local_call_to() {
  if constexpr (!widens<Q, Out>()) {
    return expect_call_to<Options, M, Out, Q, Others...>();
  } else if constexpr (expect_output<Out>()) {
    if constexpr (expect_call<Options, M, Q, Others...>()) return expect_ranks<Out>();
  }
  return false;
}

/// A rank-2 (length, dim) or rank-3 (heads, length, dim) view as rank 4 (batch, heads, length,
/// dim).
template <class T, std::size_t Rank>
TensorView<T, 4> as_rank_4(const TensorView<T, Rank>& view) {
  static_assert(call_rank<Rank>,
                "attention takes (batch, heads, length, dim), (heads, length, dim), (length, dim)");
  return with_leading_axes<4>(view);
}

/// The rows of one (batch, head) of a tensor, from `row` on, for kernels.
template <class T>
simd::MatrixRef<T> strided_rows(const TensorView<const T, 4>& tensor, Index item, Index head,
                                Index row) {
  return {tensor.data_handle() + item * tensor.stride(0) + head * tensor.stride(1) +
              row * tensor.stride(2),
          tensor.stride(2), tensor.stride(3)};
}

/// Copies rows to consecutive rows `padded` apart, with zeros after their columns.
template <class T>
void copy_rows(const simd::MatrixRef<T>& from, Index rows, Index columns, T* to, Index padded) {
  for (Index row = 0; row < rows; ++row, to += padded) {
    const T* source = from.data + row * from.row_stride;
    if (from.column_stride == 1 && columns > 0) {
      __builtin_memcpy(to, source, static_cast<std::size_t>(columns) * sizeof(T));
    } else {
      for (Index column = 0; column < columns; ++column) {
        to[column] = source[column * from.column_stride];
      }
    }
    for (Index column = columns; column < padded; ++column) to[column] = T{0};
  }
}

/// Rows in place if the numbers of each fill whole vectors and lie one after the other; otherwise
/// copied to `to`.
template <class T>
simd::MatrixRef<T> whole_rows(const simd::MatrixRef<T>& from, Index rows, Index columns, T* to,
                              Index padded) {
  if (from.column_stride == 1 && columns == padded) return from;
  copy_rows(from, rows, columns, to, padded);
  return {to, padded, 1};
}

/// Copies the rows `kept[0]`, `kept[1]`, … (ascending) to consecutive rows; source and target may
/// be the same array.
template <class T>
void gather_rows(const simd::MatrixRef<T>& from, const Index* kept, Index count, Index columns,
                 T* to, Index padded) {
  for (Index row = 0; row < count; ++row) {
    const T* source = from.data + kept[row] * from.row_stride;
    if (source == to + row * padded) continue;
    copy_rows<T>({source, 0, from.column_stride}, 1, columns, to + row * padded, padded);
  }
}

/// The inverse: copies rows 0, 1, … to the rows `kept[0]`, `kept[1]`, …
template <class T>
void scatter_rows(const T* from, const Index* kept, Index count, T* to, Index padded) {
  for (Index row = 0; row < count; ++row) {
    copy_rows<T>({from + row * padded}, 1, padded, to + kept[row] * padded, padded);
  }
}

/// Copies the kept keys and values of a block, without gaps, to arrays of the thread.
template <class T>
void gather_kept(simd::KeyBlock<T>& block, const Index* kept, Index head_dim, Index value_dim,
                 T* keys, T* values) {
  gather_rows(block.keys, kept, block.count, head_dim, keys, head_dim);
  gather_rows(block.values, kept, block.count, value_dim, values, value_dim);
  block.keys = {keys, head_dim, 1};
  block.values = {values, value_dim, 1};
}

/// An input tensor of a call, (batch, heads, length, dim): a view or the pages of a cache, in the T
/// of the computation or in bfloat16, or in T to be rounded to bfloat16. The only class that knows
/// the memory layout of rows.
template <class T>
class Operand {
 public:
  Operand() = default;
  /// A view of T or bfloat16.
  template <class X>
  Operand(const TensorView<X, 4>& view)  // NOLINT(google-explicit-constructor)
      : Operand(view.data_handle(), view.extents(), view.strides()) {}
  /// Pages of consecutive tokens, each [head][token][dim]; `tables[item]` lists the pages of a
  /// batch item in order.
  template <class X>
  Operand(const X* pages, Index page_size, const Index* const* tables, const Extents<4>& extents)
      : Operand(pages, extents,
                {extents[1] * page_size * extents[3], page_size * extents[3], extents[3], 1}) {
    tables_ = tables;
    page_size_ = page_size;
  }

  const Extents<4>& extents() const { return extents_; }
  Index extent(std::size_t axis) const { return extents_[axis]; }
  Index stride(std::size_t axis) const { return strides_[axis]; }
  /// The same numbers, rounded to bfloat16 as they are read.
  Operand rounded(const simd::Bfloat16Kernels<T>& kernels,
                  const simd::PairKernels<T>* pairs) const {
    Operand result = *this;
    result.rounds_ = !is_bfloat16() || rounds_;
    result.kernels_ = &kernels;
    result.pairs_ = pairs;
    return result;
  }
  /// Whether the numbers are bfloat16, stored or rounded to it.
  bool is_bfloat16() const { return kernels_ != nullptr; }
  bool rounds() const { return rounds_; }
  /// Whether they are stored as bfloat16.
  bool has_bits() const { return is_bfloat16() && !rounds_; }
  /// The kernels that multiply bfloat16, stored or rounded, if the CPU has them; null for a T.
  const simd::PairKernels<T>* pair_kernels() const { return pairs_; }
  /// The kernels that widen blocks of rows, stored as bfloat16, as they read them; null if none do.
  const simd::Bfloat16Kernels<T>* widening_kernels() const {
    const Index columns = extents_[3];
    const bool in_vectors = strides_[3] == 1 && columns > 0 && columns % simd::bit_columns == 0;
    const bool in_pages = tables_ == nullptr || page_size_ % simd::key_block == 0;
    return has_bits() && in_vectors && in_pages && kernels_->attend != nullptr ? kernels_ : nullptr;
  }
  /// Whether all rows can be read in place, as a view of T.
  bool is_view() const { return kernels_ == nullptr && tables_ == nullptr; }
  /// That view.
  TensorView<const T, 4> view() const {
    HEED_EXPECTS(is_view());
    if (data_ == nullptr) return without_memory<const T>(extents_);
    return {static_cast<const T*>(data_), extents_, strides_};
  }
  T operator()(Index item, Index head, Index token, Index column) const {
    const T number = rows(item, head, token).data[column * strides_[3]];
    return rounds_ ? static_cast<T>(bfloat16(static_cast<float>(number))) : number;
  }
  /// The addresses of a view. Empty for pages, which no other tensor can alias.
  ByteRange bytes() const {
    if (tables_ != nullptr) return {};
    return byte_range(data_, extents_, strides_, static_cast<std::size_t>(width()));
  }
  /// The tokens [first, end) of a view.
  Operand slice(Index first, Index end) const {
    Operand some = *this;
    some.extents_[2] = end - first;
    if (end > first) some.data_ = static_cast<const char*>(data_) + first * strides_[2] * width();
    return some;
  }

  /// The rows of a view from token `first` of a head on.
  simd::MatrixRef<T> rows(Index item, Index head, Index first, Index step = 1) const {
    return {static_cast<const T*>(data_) + offset(item, head, first), strides_[2] * step,
            strides_[3]};
  }
  /// `count` rows of a view from token `first` of a head on, `step` tokens apart, in T: in place,
  /// or copied to `scratch`, (count, dim).
  simd::MatrixRef<T> spaced_rows(Index item, Index head, Index first, Index count, Index step,
                                 T* scratch) const {
    if (kernels_ == nullptr) return rows(item, head, first, step);
    read(item, head, first, count, step, scratch, extents_[3]);
    return {scratch, extents_[3], 1};
  }
  /// The tokens [first, first + count) of a head in T: in place, or copied to `scratch`, (count,
  /// dim).
  simd::MatrixRef<T> rows(Index item, Index head, Index first, Index count, T* scratch) const {
    if (kernels_ == nullptr && is_contiguous(first, count)) return rows(item, head, first);
    for_each_run(item, first, count, [&](Index token, Index some) {
      read(item, head, token, some, 1, scratch + (token - first) * extents_[3], extents_[3]);
    });
    return {scratch, extents_[3], 1};
  }
  /// Copies `count` rows that lie in one run, `step` tokens apart, to rows of T `padded` apart;
  /// those of bfloat16 only where they are rounded or `padded` is their width.
  void read(Index item, Index head, Index first, Index count, Index step, T* to,
            Index padded) const {
    const Index dim = extents_[3];
    if (dim == 0) return;
    if (has_bits()) return kernels_->widen(bit_rows(item, head, first, step), count, dim, to);
    const simd::MatrixRef<T> from = rows(item, head, first, step);
    if (!rounds_) return copy_rows(from, count, dim, to, padded);
    kernels_->round(from, count, dim, to, padded);
    fill(to + dim, count, padded - dim, padded);
  }
  /// Copies `count` rows of a bfloat16 operand from token `first` of a head on, as bits for
  /// `pair_kernels`, to consecutive rows `padded` apart, with zeros after their columns.
  void copy_bits(Index item, Index head, Index first, Index count, Index padded,
                 std::uint16_t* to) const {
    for_each_run(item, first, count, [&](Index token, Index some) {
      read_bits(item, head, token, some, 1, padded, to + (token - first) * padded);
    });
  }
  /// `count` rows of a bfloat16 view from token `first` of a head on, `step` tokens apart, as bits:
  /// in place, or copied to `scratch`, (count, dim).
  simd::MatrixRef<std::uint16_t> spaced_bits(Index item, Index head, Index first, Index count,
                                             Index step, std::uint16_t* scratch) const {
    if (has_bits()) return bit_rows(item, head, first, step);
    read_bits(item, head, first, count, step, extents_[3], scratch);
    return {scratch, extents_[3], 1};
  }
  /// Adds `count` rows of a head from token `first` on, `step` tokens apart, to what kernels
  /// prefetch, where they can be read in place.
  void announce(Index item, Index head, Index first, Index count, Index step,
                simd::ComingRows& coming) const {
    if (is_view()) {
      coming.add(rows(item, head, first, step), extents_[3], count);
    } else if (has_bits() && tables_ == nullptr) {
      coming.add(bit_rows(item, head, first, step), extents_[3], count);
    }
  }
  /// An operand of these extents in other memory, (batch, heads, length, dim): in T, or as the bits
  /// of this bfloat16 operand.
  Operand at(const T* memory) const { return TensorView<const T, 4>(memory, extents_); }
  Operand at(const std::uint16_t* memory) const {
    Operand result = without_memory<const T>(extents_);
    result.data_ = memory;
    result.kernels_ = kernels_;
    result.pairs_ = pairs_;
    return result;
  }

  /// The bits of a token in an operand that is stored as bfloat16.
  const std::uint16_t* bits(Index item, Index head, Index token) const {
    return static_cast<const std::uint16_t*>(data_) + offset(item, head, token);
  }
  /// Whether kernels can read rows of bfloat16 where they lie.
  bool has_rows_of_bits() const { return has_bits() && tables_ == nullptr && strides_[3] == 1; }
  /// Those from token `first` of a head on, `step` tokens apart.
  simd::MatrixRef<std::uint16_t> bit_rows(Index item, Index head, Index first, Index step) const {
    return {bits(item, head, first), strides_[2] * step, strides_[3]};
  }
  /// Whether the tokens [first, first + count) are all stride(2) apart.
  bool is_contiguous(Index first, Index count) const {
    return tables_ == nullptr || contiguous_end(first) >= first + count;
  }

 private:
  template <class X>
  Operand(const X* data, const Extents<4>& extents, const Extents<4>& strides)
      : data_(data), extents_(extents), strides_(strides) {
    if constexpr (!std::is_same_v<std::remove_const_t<X>, T>) {
      static_assert(std::is_same_v<std::remove_const_t<X>, bfloat16>);
      kernels_ = &simd::bfloat16_kernels<T>();
      if constexpr (std::is_same_v<T, float>) pairs_ = simd::pair_kernels<T>();
    }
  }

  /// Calls use(token, count) for the contiguous runs of some tokens, but for those that a cache has
  /// forgotten.
  template <class Use>
  void for_each_run(Index item, Index first, Index count, const Use& use) const {
    for (Index token = first; extents_[3] > 0 && token < first + count;) {
      const Index end = smaller(contiguous_end(token), first + count);
      if (tables_ == nullptr || tables_[item][token / page_size_] >= 0) use(token, end - token);
      token = end;
    }
  }
  /// Like `read`, but as bits of bfloat16.
  void read_bits(Index item, Index head, Index first, Index count, Index step, Index padded,
                 std::uint16_t* to) const {
    const Index dim = extents_[3];
    if (!rounds_) return copy_rows(bit_rows(item, head, first, step), count, dim, to, padded);
    pairs_->narrow(rows(item, head, first, step), count, dim, to, padded);
    fill(to + dim, count, padded - dim, padded);
  }
  /// Zeros behind the columns of rows.
  template <class X>
  static void fill(X* to, Index rows, Index columns, Index stride) {
    for (Index row = 0; columns > 0 && row < rows; ++row) clear_numbers(to + row * stride, columns);
  }

  Index width() const { return static_cast<Index>(has_bits() ? sizeof(bfloat16) : sizeof(T)); }
  Index offset(Index item, Index head, Index token) const {
    if (tables_ == nullptr) {
      return item * strides_[0] + head * strides_[1] + token * strides_[2];
    }
    return tables_[item][token / page_size_] * strides_[0] + head * strides_[1] +
           token % page_size_ * strides_[2];
  }
  /// The end of the contiguous run that contains `token`.
  Index contiguous_end(Index token) const {
    return tables_ == nullptr ? extents_[2] : (token / page_size_ + 1) * page_size_;
  }

  const void* data_ = nullptr;
  Extents<4> extents_{};
  Extents<4> strides_{};
  const simd::Bfloat16Kernels<T>* kernels_ = nullptr;  // null: of T; else reads bfloat16
  const simd::PairKernels<T>* pairs_ = nullptr;        // only programs with bfloat16 compile them
  bool rounds_ = false;                                // stored in T, and rounded to bfloat16
  const Index* const* tables_ = nullptr;               // null: a view; else pages
  Index page_size_ = 0;
};

/// An operand as a call with these products reads it.
template <class T>
Operand<T> operand_of(const Operand<T>& stored, const AttentionProducts<T>& products) {
  const auto* rounding = products.rounding();
  if (rounding == nullptr) return stored;
  return stored.rounded(rounding->conversions(), rounding->pairs());
}

/// The output tensor of a call, (batch, heads, queries, value_dim): of T, or of bfloat16, to which
/// results are rounded once.
template <class T>
class Result {
 public:
  Result() = default;
  template <class X>
  Result(const TensorView<X, 4>& view)  // NOLINT(google-explicit-constructor)
      : data_(view.data_handle()), extents_(view.extents()), strides_(view.strides()) {
    if constexpr (!std::is_same_v<X, T>) {
      static_assert(std::is_same_v<X, bfloat16>);
      kernels_ = &simd::bfloat16_kernels<T>();
    }
  }

  const Extents<4>& extents() const { return extents_; }
  const Extents<4>& strides() const { return strides_; }
  Index stride(std::size_t axis) const { return strides_[axis]; }
  bool is_bfloat16() const { return kernels_ != nullptr; }
  const simd::Bfloat16Kernels<T>* kernels() const { return kernels_; }
  T& operator()(Index item, Index head, Index query, Index column) const {
    return rows(item, head, query)[column * strides_[3]];
  }
  ByteRange bytes() const {
    return byte_range(data_, extents_, strides_, static_cast<std::size_t>(width()));
  }
  /// The queries [first, end).
  Result slice(Index first, Index end) const {
    Result some = *this;
    some.extents_[2] = end - first;
    if (end > first) some.data_ = static_cast<char*>(data_) + first * strides_[2] * width();
    return some;
  }

  /// The row of a query in a tensor of T.
  T* rows(Index item, Index head, Index query) const {
    return static_cast<T*>(data_) + offset(item, head, query);
  }
  /// The bits of a query's row in a tensor of bfloat16.
  std::uint16_t* bits(Index item, Index head, Index query) const {
    return static_cast<std::uint16_t*>(data_) + offset(item, head, query);
  }
  /// Rounds `count` rows, (count, value_dim), to the rows of a head from `query` on.
  void round(const T* from, Index count, Index item, Index head, Index query,
             Index step = 1) const {
    const Index columns = extents_[3], row = strides_[2] * step;
    std::uint16_t* to = bits(item, head, query);
    if (columns == 0) return;
    if (strides_[3] == 1) return kernels_->narrow({from, columns, 1}, count, columns, to, row);
    for (Index i = 0; i < count * columns; ++i) {
      const bfloat16 number(static_cast<float>(from[i]));
      to[i / columns * row + i % columns * strides_[3]] = number.bits;
    }
  }

 private:
  Index width() const { return static_cast<Index>(is_bfloat16() ? sizeof(bfloat16) : sizeof(T)); }
  Index offset(Index item, Index head, Index query) const {
    return item * strides_[0] + head * strides_[1] + query * strides_[2];
  }

  void* data_ = nullptr;
  Extents<4> extents_{};
  Extents<4> strides_{};
  const simd::Bfloat16Kernels<T>* kernels_ = nullptr;  // null: of T; else writes bfloat16
};

}  // namespace heed::detail
