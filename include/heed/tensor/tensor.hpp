// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/tensor/extents.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

// Memory. -----------------------------------------------------------------------------------------

namespace detail {

/// A cache of freed tensor memory, kept by the thread that freed it for the next tensors of the
/// same size. A training step allocates and frees the same tensors every time; fetching their pages
/// from the system each time cost a fifth of the step, and a quarter for small models, because the
/// allocator returns the end of its memory after every step. Keeps at most `most_bytes` per thread
/// and drops the oldest blocks first. Blocks up to 4 KiB are kept in lists by size, since aligned
/// ones cost the allocator a tenth of the time that a small model takes for a token. Where memory
/// runs out, all that the thread keeps is freed first. Under an address sanitizer all blocks come
/// from the allocator.
struct TensorMemory {
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  /// 64-byte aligned memory of at least `bytes` bytes. Throws std::bad_alloc.
  static void* take(std::size_t bytes);
  /// The same for `count` values of a tensor; null for none. Throws OutOfMemory with its extents.
  static void* take(std::size_t count, std::size_t element_bytes, const Index* extents,
                    std::size_t rank);
  /// Frees memory from `take(bytes)`.
  static void give(void* memory, std::size_t bytes) noexcept;
  /// Number of bytes this thread keeps in large blocks.
  static std::size_t kept_bytes();
};

// Nested lists of values. -------------------------------------------------------------------------

/// The type of the values in a list in braces. A number becomes a bfloat16 only where that is said:
/// its lists are of double, and it is rounded once.
template <class T>
using ListedValue =
    std::conditional_t<std::is_convertible_v<T, double> && !std::is_convertible_v<double, T> &&
                           std::is_constructible_v<T, double>,
                       double, T>;

/// Values written as nested lists: {{1, 2}, {3, 4}} has rank 2.
template <class T, std::size_t Rank>
struct NestedListOf {
  using Type = std::initializer_list<typename NestedListOf<T, Rank - 1>::Type>;
};
template <class T>
struct NestedListOf<T, 0> {
  using Type = ListedValue<T>;
};
template <class T, std::size_t Rank>
using NestedList = typename NestedListOf<T, Rank>::Type;

/// The extents of a nested list, by its first rows.
template <std::size_t Rank, class List>
Extents<Rank> extents_of_list(const List& list) {
  Extents<Rank> extents{};
  extents[0] = static_cast<Index>(list.size());
  if constexpr (Rank > 1) {
    if (list.size() == 0) return extents;
    const auto inner = extents_of_list<Rank - 1>(*list.begin());
    for (std::size_t axis = 1; axis < Rank; ++axis) extents[axis] = inner[axis - 1];
  }
  return extents;
}

/// Writes the values row by row. Throws ShapeError for rows of different lengths.
template <class T, class List, std::size_t Rank>
T* write_list(const List& list, const Extents<Rank>& extents, std::size_t axis, T* to) {
  if (static_cast<Index>(list.size()) != extents[axis]) {
    throw_shape_error("tensor: a list of ", list.size(), " beside one of ", extents[axis],
                      " along axis ", axis,
                      "; lists of values must be equally long, extents with values go into "
                      "parentheses: ({2, 2}, {1, 2, 3, 4})");
  }
  for (const auto& item : list) {
    if constexpr (requires { item.begin(); }) {
      to = write_list(item, extents, axis + 1, to);
    } else {
      *to++ = static_cast<T>(item);
    }
  }
  return to;
}

/// A list whose values convert to T, of any type and in any container.
template <class Values, class T>
concept ListToConvert = requires(const Values& values) {
  { values.size() } -> std::convertible_to<std::size_t>;
  static_cast<T>(*values.begin());
}
&&!requires(const Values& values) { values.rows(); };

template <class Values>
inline constexpr bool is_extents = false;
template <std::size_t Rank>
inline constexpr bool is_extents<Extents<Rank>> = true;
/// What a tensor may be copied of: a container, a view, an Eigen matrix; no extents.
template <class Values>
concept ValuesToCopy =
    !is_extents<Values> &&
    (
        HoldsRun<const Values> || requires(const Values& values) { values.data_handle(); } ||
        requires(const Values& values) { values.rows(); });

/// Sets `count` numbers to +0. memset, since a loop of stores is slow wherever the compiler does
/// not optimize it.
template <class T>
void clear_numbers(T* to, Index count) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (count > 0) std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
  } else {
    for (Index i = 0; i < count; ++i) to[i] = T{};
  }
}

}  // namespace detail

// The tensor. -------------------------------------------------------------------------------------

/// A row-major array that owns its values, 64-byte aligned and initialized to zero. A value type:
/// copies copy, moves move. Views of it become invalid with it.
template <class T, std::size_t Rank>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "Tensor holds plain values (float, double, …)");
  using Listed = detail::ListedValue<T>;

 public:
  using value_type = T;

  Tensor() = default;
  /// Zeros. Like all functions that make a tensor, throws ShapeError for a negative extent or more
  /// elements than an Index counts, and OutOfMemory.
  explicit Tensor(const Extents<Rank>& extents) : extents_(extents) {
    detail::row_major_strides<Rank>(extents);  // refuses negative and overflowing extents
    allocate();
    detail::clear_numbers(data_, size());
  }
  /// The same for extents in braces, `({5, n})`, which could otherwise be read as a tensor to copy.
  template <std::size_t Count>
  requires(Rank > 1 || Count == 1) explicit Tensor(const detail::ListedExtent (&extents)[Count])
      : Tensor(detail::listed<Rank>(extents)) {}
  /// The same extents one by one: `Tensor<float, 2> t(5, 8)`.
  template <detail::ExtentNumber... Numbers>
  requires(sizeof...(Numbers) == Rank && Rank > 0) explicit Tensor(Numbers... extents)
      : Tensor(Extents<Rank>{extents...}) {}
  template <detail::ExtentNumber... Numbers>
  requires(sizeof...(Numbers) != Rank && sizeof...(Numbers) > 1 && Rank > 1)  //
      explicit Tensor(Numbers...) {
    static_assert(sizeof...(Numbers) == Rank,
                  "a tensor has as many extents as axes: Tensor<float, 3>(2, 3, 4); its values are "
                  "in nested braces");
  }
  /// The same extents in an array. An array for a vector, of rank 1, is a list of its values.
  template <detail::ExtentNumber Number>
  requires(Rank > 1) explicit Tensor(const std::array<Number, Rank>& extents)
      : Tensor(Extents<Rank>(extents)) {}
  /// A tensor with uninitialized values, for callers that write every one.
  static Tensor uninitialized(const Extents<Rank>& extents) {
    detail::row_major_strides<Rank>(extents);
    Tensor result;
    result.extents_ = extents;
    result.allocate();
    return result;
  }
  /// A tensor from its values, as nested lists: {{1, 2}, {3, 4}} is 2 × 2, and {{2, 2}} is 1 × 2.
  /// Extents go in parentheses. Throws ShapeError for lists of different lengths.
  Tensor(const detail::NestedList<T, Rank>& values) requires(Rank > 1)  // NOLINT
      : Tensor(detail::extents_of_list<Rank>(values)) {
    detail::write_list(values, extents_, 0, data_);
  }
  /// A vector of two values or more, {1, 2, 3}; (3), ({3}) and {{3}} are extents.
  template <class First, class... Values>
  requires(Rank == 1 && sizeof...(Values) > 0 && std::convertible_to<First, Listed> &&
           (std::convertible_to<Values, Listed> && ...))
      Tensor(First first, Values... values)  // NOLINT
      : Tensor(Extents<1>{static_cast<Index>(sizeof...(Values)) + 1},
               {static_cast<T>(first), static_cast<T>(values)...}) {}
  template <std::floating_point Number>
  requires(Rank == 1) explicit Tensor(Number) {
    static_assert(detail::never<Number>,
                  "a vector of one value says its extent: Tensor<float, 1>({1}, {x}); n zeros are "
                  "Tensor<float, 1>(n), two values or more {x, y}");
  }
  /// The given values in row-major order, as many as the extents require.
  Tensor(const Extents<Rank>& extents, std::span<const T> values) : Tensor(uninitialized(extents)) {
    take(values);
  }
  Tensor(const Extents<Rank>& extents, std::initializer_list<T> values)
      : Tensor(extents, std::span<const T>(values.begin(), values.size())) {}
  Tensor(const Extents<Rank>& extents, std::initializer_list<Listed> values)  //
      requires(!std::same_as<Listed, T>)
      : Tensor(extents) {
    take(values);
  }
  /// The same for values of another type, which convert.
  template <detail::ListToConvert<T> Values>
  requires(!std::convertible_to<const Values&, std::span<const T>>)
      Tensor(const Extents<Rank>& extents, const Values& values)
      : Tensor(extents) {
    take(values);
  }
  template <detail::HoldsRun Values>
  requires(!std::convertible_to<Values, Extents<Rank>>) Tensor(Values&&, const Extents<Rank>&) {
    static_assert(detail::never<Values>,
                  "a tensor has its extents first, Tensor<float, 2>({2, 3}, values): it copies "
                  "them; a view of values has them first, TensorView(values, {2, 3})");
  }
  /// One number everywhere. Of two numbers, (3, 1.5f), a vector is made with both as its values.
  template <class Number>
  requires(std::is_arithmetic_v<Number> || std::same_as<Number, T>)
      Tensor(const Extents<Rank>& extents, Number value)
      : Tensor(uninitialized(extents)) {
    fill(static_cast<T>(value));
  }
  /// `copy_of(values)`: a vector's values, or those of a view or an Eigen matrix.
  template <detail::ValuesToCopy Values>
  requires(!std::same_as<Values, Tensor>) explicit Tensor(const Values& values)
      : Tensor(copy_of(values)) {}
  Tensor(const Tensor& other) : extents_(other.extents_) {
    allocate();
    if (data_ != nullptr) {
      std::memcpy(data_, other.data_, static_cast<std::size_t>(size()) * sizeof(T));
    }
  }
  Tensor(Tensor&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        extents_(std::exchange(other.extents_, Extents<Rank>{})) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(data_, other.data_);
    std::swap(extents_, other.extents_);
    return *this;
  }
  template <class U, std::size_t Any>
  Tensor& operator=(const TensorView<U, Any>&) {
    static_assert(
        detail::never<U>,
        "a view is no tensor: t = heed::Tensor(view) copies it, copy(view, t) its values");
    return *this;
  }
  template <class U, std::size_t Any>
  requires(!std::same_as<Tensor<U, Any>, Tensor>) Tensor& operator=(const Tensor<U, Any>&) {
    static_assert(detail::never<U>,
                  "a tensor is assigned one of its own type and rank: copy(from, to) converts "
                  "values, Tensor<float, 2>(other) makes a tensor of them");
    return *this;
  }
  ~Tensor() { detail::TensorMemory::give(data_, static_cast<std::size_t>(size()) * sizeof(T)); }

  /// The values of any view, copied into row-major order.
  static Tensor copy_of(const TensorView<const T, Rank>& source) { return converted(source); }
  /// Those of anything that `view_of` accepts. Other scalars convert as in `copy`: floats are
  /// rounded to bfloat16.
  template <class Values>
  requires(!std::convertible_to<const Values&, TensorView<const T, Rank>>) static Tensor
      copy_of(const Values& values);

  /// The same values in the same order under other extents, without a copy; this tensor is left
  /// empty. Throws ShapeError if the numbers of elements differ.
  template <std::size_t Other>
  Tensor<T, Other> reshaped(const Extents<Other>& extents) && {
    detail::row_major_strides<Other>(extents);
    if (detail::element_count(extents) != size()) {
      throw_shape_error("reshaped: from ", extents_, " to ", extents);
    }
    Tensor<T, Other> result;
    result.data_ = std::exchange(data_, nullptr);
    result.extents_ = extents;
    extents_ = {};
    return result;
  }
  template <std::size_t Other>
  Tensor<T, Other> reshaped(const detail::ListedExtent (&extents)[Other]) && {
    return std::move(*this).reshaped(detail::listed<Other>(extents));
  }
  template <std::size_t Other>
  Tensor<T, Other> reshaped(const Extents<Other>&) const& {
    return of_a_kept_tensor<Other>();
  }
  template <std::size_t Other>
  Tensor<T, Other> reshaped(const detail::ListedExtent (&)[Other]) const& {
    return of_a_kept_tensor<Other>();
  }

  static constexpr std::size_t rank() { return Rank; }
  const Extents<Rank>& extents() const { return extents_; }
  /// The extents, as NumPy and PyTorch call them.
  const Extents<Rank>& shape() const { return extents_; }
  /// One of them. Axes count from 0; throws ShapeError for others, −1 as well.
  Index extent(std::size_t axis) const { return extents_[detail::checked_axis(axis, Rank)]; }
  Index size() const { return detail::element_count(extents_); }
  bool empty() const { return size() == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size(); }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size(); }

  TensorView<T, Rank> view() & { return {data_, extents_}; }
  TensorView<const T, Rank> view() const& { return {data_, extents_}; }
  TensorView<const T, Rank> view() const&& { return of_a_temporary(); }
  /// A view of the same values under other extents, row-major: `x.view({4, 12})`. Throws ShapeError
  /// if their number differs.
  template <std::size_t Axes>
  TensorView<T, Axes> view(const detail::ListedExtent (&extents)[Axes]) & {
    return {*this, detail::listed<Axes>(extents)};
  }
  template <std::size_t Axes>
  TensorView<const T, Axes> view(const detail::ListedExtent (&extents)[Axes]) const& {
    return {*this, detail::listed<Axes>(extents)};
  }
  template <std::size_t Axes>
  TensorView<const T, Axes> view(const detail::ListedExtent (&)[Axes]) const&& {
    return of_a_temporary(), TensorView<const T, Axes>();
  }
  operator TensorView<T, Rank>() & { return view(); }             // NOLINT
  operator TensorView<const T, Rank>() const& { return view(); }  // NOLINT
  operator TensorView<T, Rank>() const&& {
    return of_a_temporary(), TensorView<T, Rank>();
  }                                                                          // NOLINT
  operator TensorView<const T, Rank>() const&& { return of_a_temporary(); }  // NOLINT

  // Parts of its view, as TensorView has them: of a named tensor, whose memory they refer to.
#define HEED_OF_VIEW(part, parameters, arguments)               \
  auto part parameters& { return view().part arguments; }       \
  auto part parameters const& { return view().part arguments; } \
  auto part parameters const&& { return of_a_temporary().part arguments; }
  HEED_OF_VIEW(slice, (std::size_t axis, Index begin, Index end, Index step = 1),
               (axis, begin, end, step))
  HEED_OF_VIEW(permute, (const Extents<Rank>& order), (order))
  HEED_OF_VIEW(permute, (std::convertible_to<Index> auto... order), (order...))
  HEED_OF_VIEW(transpose, (std::size_t a = Rank - 2, std::size_t b = Rank - 1), (a, b))
  HEED_OF_VIEW(reverse, (std::size_t axis), (axis))
  HEED_OF_VIEW(broadcast, (std::size_t axis, Index extent), (axis, extent))
  HEED_OF_VIEW(split, (std::size_t axis, Index inner), (axis, inner))
  HEED_OF_VIEW(select, (std::size_t axis, Index index), (axis, index))
  HEED_OF_VIEW(with_leading_axis, (), ())
#undef HEED_OF_VIEW

  /// Sets every element to `value`.
  void fill(T value) { detail::fill_run(data_, size(), value); }
  /// The same for bfloat16 and others that a float is rounded to.
  void fill(float value) requires(!std::convertible_to<float, T>) { fill(T(value)); }

  /// An element. Indices are checked in debug and sanitizer builds only, as in t[i] of a vector.
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) == Rank) T& operator()(Indices... indices) {
    return data_[offset({static_cast<Index>(indices)...})];
  }
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) == Rank) const T& operator()(Indices... indices) const {
    return data_[offset({static_cast<Index>(indices)...})];
  }
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) != Rank) T& operator()(Indices...) const {
    return detail::expect_index_per_axis<sizeof...(Indices), Rank>(), *data_;
  }
  T& operator[](Index index) & requires(Rank == 1) { return data_[offset({index})]; }
  const T& operator[](Index index) const& requires(Rank == 1) { return data_[offset({index})]; }
  /// A view of row `index`: `t[2]` of a matrix, `t[0][3]` of a rank-3 tensor. Throws ShapeError for
  /// an index out of range.
  TensorView<T, Rank - 1> operator[](Index index) & requires(Rank > 1) { return view()[index]; }
  TensorView<const T, Rank - 1> operator[](Index index) const& requires(Rank > 1) {
    return view()[index];
  }
  TensorView<const T, Rank - 1> operator[](Index index) const&& requires(Rank > 1) {
    return of_a_temporary()[index];
  }

 private:
  template <class, std::size_t>
  friend class Tensor;

  template <class Source>
  static Tensor converted(const Source& source) {
    Tensor result = uninitialized(source.extents());
    detail::copy_values(source, result.view());
    return result;
  }
  template <class Values>
  void take(const Values& values) {
    const auto count = static_cast<Index>(values.size());
    if (count != size()) {
      throw_shape_error("tensor: ", count, " values for extents ", extents_);
    }
    T* to = data_;
    if constexpr (std::is_same_v<Values, std::span<const T>>) {
      if (count > 0) std::memcpy(to, values.data(), values.size_bytes());
    } else {
      for (const auto& value : values) *to++ = static_cast<T>(value);
    }
  }

  static TensorView<const T, Rank> of_a_temporary() {
    static_assert(Rank == 0, "a view of a temporary tensor dangles: give the tensor a name first");
    return {};
  }
  template <std::size_t Other>
  static Tensor<T, Other> of_a_kept_tensor() {
    static_assert(Other > Other,
                  "reshaped hands the memory on: std::move(x).reshaped({6, 4}), "
                  "Tensor(x).reshaped({6, 4}) of a copy, or TensorView(x.data(), {6, 4})");
    return {};
  }
  Index offset(const Extents<Rank>& at) const {
    Index sum = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      HEED_EXPECTS(at[axis] >= 0 && at[axis] < extents_[axis]);
      sum = sum * extents_[axis] + at[axis];
    }
    return sum;
  }
  void allocate() {
    data_ = static_cast<T*>(detail::TensorMemory::take(static_cast<std::size_t>(size()), sizeof(T),
                                                       extents_.data(), Rank));
  }

  T* data_ = nullptr;
  Extents<Rank> extents_{};
};

// `Tensor t({2, 3}, values)` and `Tensor t(view)` are of the type and the rank that they are given.
template <std::size_t Rank, detail::HoldsRun Values>
Tensor(const detail::ListedExtent (&)[Rank], const Values&)
    -> Tensor<std::remove_const_t<detail::RunElement<const Values>>, Rank>;
template <detail::ExtentNumber Number, std::size_t Rank, detail::HoldsRun Values>
Tensor(const std::array<Number, Rank>&, const Values&)
    -> Tensor<std::remove_const_t<detail::RunElement<const Values>>, Rank>;
template <class T, std::size_t Rank>
Tensor(const TensorView<T, Rank>&) -> Tensor<std::remove_const_t<T>, Rank>;

template <class T, std::size_t Rank>
TensorView(Tensor<T, Rank>&) -> TensorView<T, Rank>;
template <class T, std::size_t Rank>
TensorView(const Tensor<T, Rank>&) -> TensorView<const T, Rank>;

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/tensor/detail/tensor.inl>
#endif
