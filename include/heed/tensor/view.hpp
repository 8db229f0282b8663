// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>  // and the tags of iterators: <iterator> would bring streams
#include <type_traits>
#include <utility>

#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/extents.hpp>

namespace heed {

template <class T, std::size_t Rank>
class TensorView;

namespace detail {

/// Writes one value `count` times, mostly by copies: compilers would store it one at a time.
template <class T>
void fill_run(T* to, Index count, T value) {
  Index done = smaller(count, 64);
  for (Index i = 0; i < done; ++i) to[i] = value;
  while (done < count) {
    const Index more = smaller(smaller(done, count - done), 4096);
    std::memcpy(to + done, to, static_cast<std::size_t>(more) * sizeof(T));
    done += more;
  }
}

/// A container of contiguous values: std::vector, std::array, std::span, a Tensor. Not an Eigen
/// matrix, which is column-major.
template <class X, class T = const volatile void>
concept HoldsRun = requires(X& x) {
  { x.data() } -> std::convertible_to<T*>;
  { x.size() } -> std::convertible_to<std::size_t>;
}
&&!requires(X & x) { x.rows(); };

template <class X>
using RunElement = std::remove_reference_t<decltype(*std::declval<X&>().data())>;

/// A type that allocates its values, like std::vector.
template <class T>
concept KeepsValuesElsewhere = requires {
  typename T::allocator_type;
};

/// The address of the first value. `Values` is deduced as by a forwarding reference, so that
/// temporaries that own their values are refused.
template <class Values>
auto* begin_of_run(std::remove_reference_t<Values>& values) {
  static_assert(!KeepsValuesElsewhere<RunElement<Values>>,
                "a vector of vectors is no tensor: flatten it, row behind row in one "
                "std::vector<float>, and pass heed::TensorView(flat, {rows, columns})");
  static_assert(std::is_lvalue_reference_v<Values> || std::ranges::enable_borrowed_range<Values>,
                "a view of temporary values dangles: give them a name first");
  return values.data();
}

/// Throws if `count` differs from the element count of the extents.
template <std::size_t Rank>
void check_run_fits(std::size_t count, const Extents<Rank>& extents) {
  if (static_cast<Index>(count) != element_count(extents)) {
    throw_shape_error("view: ", count, " values for extents ", extents);
  }
}
/// Throws if the strides, counted from the first value, leave `count` values.
template <std::size_t Rank>
void check_run_fits(std::size_t count, const Extents<Rank>& extents, const Extents<Rank>& strides) {
  if (element_count(extents) == 0) return;
  Index last = 0;
  bool inside = true;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    const Index reach = extents[axis] < 2 ? 0 : (extents[axis] - 1) * strides[axis];
    inside = inside && reach >= 0;
    last += reach;
  }
  if (!inside || last >= static_cast<Index>(count)) {
    throw_shape_error("view: strides ", strides, " of extents ", extents, " leave the ", count,
                      " values");
  }
}

struct AcceptedView {};

template <std::size_t Count, std::size_t Rank>
void expect_index_per_axis() {
  static_assert(Count == Rank,
                "an element has one index for each axis, as x(row, column) of a matrix; x[row] is "
                "the view of a row");
}

/// A row-major view that stands for its extents: its values are never read or written.
template <class T, std::size_t Rank>
TensorView<T, Rank> without_memory(const Extents<Rank>& extents) {
  const Extents<Rank> strides = row_major_strides<Rank>(extents);
  check_reach(extents.data(), strides.data(), Rank, sizeof(T));
  return {AcceptedView{}, nullptr, extents, strides};
}

/// Walks the elements of a view in row-major order.
template <class View>
class ElementIterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = typename View::value_type;
  using difference_type = Index;
  using pointer = typename View::element_type*;
  using reference = typename View::element_type&;

  ElementIterator() = default;
  /// At the first element, with `number` 0, or behind the last.
  ElementIterator(const View& view, Index number) : view_(view), number_(number) {}

  reference operator*() const { return view_.data_handle()[offset_]; }
  pointer operator->() const { return &**this; }
  ElementIterator& operator++() {
    ++number_;
    for (std::size_t axis = View::rank(); axis-- > 0;) {
      if (at_[axis] + 1 < view_.extent(axis)) {
        ++at_[axis];
        offset_ += view_.stride(axis);
        break;
      }
      offset_ -= at_[axis] * view_.stride(axis);
      at_[axis] = 0;
    }
    return *this;
  }
  ElementIterator operator++(int) {
    ElementIterator before = *this;
    ++*this;
    return before;
  }
  ElementIterator& operator+=(Index steps) {
    Index rest = number_ += steps;
    offset_ = 0;
    for (std::size_t axis = View::rank(); axis-- > 0;) {
      const Index extent = larger(view_.extent(axis), 1);
      at_[axis] = rest % extent;
      rest /= extent;
      offset_ += at_[axis] * view_.stride(axis);
    }
    return *this;
  }
  ElementIterator& operator-=(Index steps) { return *this += -steps; }
  ElementIterator& operator--() { return *this += -1; }
  ElementIterator operator--(int) {
    ElementIterator before = *this;
    --*this;
    return before;
  }
  friend ElementIterator operator+(ElementIterator at, Index steps) { return at += steps; }
  friend ElementIterator operator+(Index steps, ElementIterator at) { return at += steps; }
  friend ElementIterator operator-(ElementIterator at, Index steps) { return at -= steps; }
  Index operator-(const ElementIterator& other) const { return number_ - other.number_; }
  reference operator[](Index steps) const { return *(*this + steps); }
  auto operator<=>(const ElementIterator& other) const { return number_ <=> other.number_; }
  bool operator==(const ElementIterator& other) const { return number_ == other.number_; }

 private:
  View view_;
  Extents<View::rank()> at_{};
  Index offset_ = 0;
  Index number_ = 0;  // of elements before this one
};

}  // namespace detail

/// A non-owning, rectangular view of values: pointer, extents and strides. Any stride is legal: 0
/// (broadcast), negative (reversed), non-unit in the last axis. The terms are those of std::mdspan;
/// strides count elements. `TensorView<const T, Rank>` only reads. The memory must outlive the
/// view. Constructors throw ShapeError for a negative extent and for a view that spans more bytes
/// than an Index counts, and InvalidArgument for values at a null pointer; functions that make
/// other views throw ShapeError for an axis, index or size that does not fit.
template <class T, std::size_t Rank>
class TensorView {
  static_assert(Rank > 0, "a TensorView has at least one axis");
  static_assert(!std::is_array_v<T>,
                "a view of an array of arrays begins at its first number: "
                "heed::TensorView(&x[0][0], {rows, columns})");

 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  /// An empty view: no memory, every extent 0.
  constexpr TensorView() = default;

  /// Row-major values at `data`.
  TensorView(T* data, const Extents<Rank>& extents)
      : data_(data), extents_(extents), strides_(detail::row_major_strides<Rank>(extents)) {
    Index bytes = 0;  // of all elements, whose number fits; an empty view may still reach too far
    const bool fits = !__builtin_mul_overflow(extents_[0] * strides_[0], Index{sizeof(T)}, &bytes);
    if (!fits || bytes == 0 || data == nullptr) check();
  }

  /// Values at `data`, element (i, j, …) at `data[i * strides[0] + j * strides[1] + …]`.
  TensorView(T* data, const Extents<Rank>& extents, const Extents<Rank>& strides)
      : data_(data), extents_(extents), strides_(strides) {
    check();
  }

  /// The values of a std::vector, std::array, std::span or Tensor under these extents, row-major.
  /// Throws ShapeError if the number of values differs.
  template <detail::HoldsRun<T> Values>
  TensorView(Values&& values, const Extents<Rank>& extents)
      : TensorView(detail::begin_of_run<Values>(values), extents) {
    detail::check_run_fits(values.size(), extents);
  }
  /// The same with strides, counted from the first value. Throws ShapeError if they leave the
  /// values.
  template <detail::HoldsRun<T> Values>
  TensorView(Values&& values, const Extents<Rank>& extents, const Extents<Rank>& strides)
      : TensorView(detail::begin_of_run<Values>(values), extents, strides) {
    detail::check_run_fits(values.size(), extents, strides);
  }

  // Values of another type and lists in braces of another length do not compile.
  template <detail::HoldsRun Values>
  requires(!detail::HoldsRun<Values, T>) TensorView(Values&&, const Extents<Rank>&) {
    static_assert(detail::never<Values>,
                  "a view has the type of its values: TensorView<const float, 2> of const floats, "
                  "TensorView<double, 2> of doubles, or TensorView(values, {rows, columns})");
  }
  template <class Values, std::size_t Count>
  requires(Count != Rank) TensorView(Values&&, const detail::ListedExtent (&extents)[Count])
      : extents_(detail::listed<Rank>(extents)) {}
  template <class Values, std::size_t Axes, std::size_t Count>
  requires(Axes != Rank || Count != Rank)  //
      TensorView(Values&&, const detail::ListedExtent (&extents)[Axes],
                 const detail::ListedExtent (&strides)[Count])
      : extents_(detail::listed<Rank>(extents)), strides_(detail::listed<Rank>(strides)) {}

  /// A span of values as a vector.
  TensorView(std::span<T> values)  // NOLINT(google-explicit-constructor): spans are rank-1 views
      requires(Rank == 1)
      : TensorView(values.data(), {static_cast<Index>(values.size())}) {}

  /// A read-only view of a writable one.
  template <class U>
  requires(std::is_const_v<T>&& std::is_same_v<U, value_type>)
      TensorView(const TensorView<U, Rank>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data_handle()), extents_(other.extents()), strides_(other.strides()) {}

  TensorView(const TensorView&) = default;
  /// Makes this view one of other values; `copy` copies values.
  TensorView& operator=(const TensorView&) & = default;
  template <class Values>
  void operator=(const Values&) && {
    static_assert(Rank > 0 && sizeof(Values) == 0,
                  "assigning to a temporary view, as in a[0] = b[0], would change no value: "
                  "copy(from, to) copies values, a[0].fill(x) sets them");
  }

  static constexpr std::size_t rank() { return Rank; }
  T* data_handle() const { return data_; }
  const Extents<Rank>& extents() const { return extents_; }
  /// The extents, as NumPy and PyTorch call them.
  const Extents<Rank>& shape() const { return extents_; }
  const Extents<Rank>& strides() const { return strides_; }
  /// One of them. Axes count from 0; throws ShapeError for others, −1 as well.
  Index extent(std::size_t axis) const { return extents_[detail::checked_axis(axis, Rank)]; }
  Index stride(std::size_t axis) const { return strides_[detail::checked_axis(axis, Rank)]; }

  Index size() const { return detail::element_count(extents_); }
  bool empty() const { return size() == 0; }
  /// The elements in row-major order: `for (float& x : view)`.
  detail::ElementIterator<TensorView> begin() const { return {*this, 0}; }
  detail::ElementIterator<TensorView> end() const { return {*this, size()}; }

  /// Element access; indices are checked in debug and sanitizer builds.
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) == Rank) T& operator()(Indices... indices) const {
    const Extents<Rank> at{static_cast<Index>(indices)...};
    return data_[offset(at)];
  }
  template <std::convertible_to<Index>... Indices>
  requires(sizeof...(Indices) != Rank) T& operator()(Indices...) const {
    return detail::expect_index_per_axis<sizeof...(Indices), Rank>(), *data_;
  }
  T& operator[](Index index) const requires(Rank == 1) { return (*this)(index); }
  /// Row `index`: `select(0, index)`.
  TensorView<T, Rank - 1> operator[](Index index) const requires(Rank > 1) {
    return select(0, index);
  }

  /// Sets every element to `value`.
  void fill(const value_type& value) const requires(!std::is_const_v<T>) {
    if constexpr (Rank == 1) {
      if (strides_[0] == 1) return detail::fill_run(data_, extents_[0], value);
      for (Index i = 0; i < extents_[0]; ++i) data_[i * strides_[0]] = value;
    } else {
      for (Index i = 0; i < extents_[0]; ++i) select(0, i).fill(value);
    }
  }
  /// The same for bfloat16 and others that a float is rounded to.
  void fill(float value) const
      requires(!std::is_const_v<T> && !std::convertible_to<float, value_type>) {
    fill(value_type(value));
  }
  template <class Value>
  void fill(const Value&) const requires(std::is_const_v<T>) {
    static_assert(detail::never<Value>,
                  "this view only reads: it is one of const values, or of a Tensor that is const "
                  "here");
  }

  /// Elements `begin, begin + step, …` below `end` of one axis.
  TensorView slice(std::size_t axis, Index begin, Index end, Index step = 1) const {
    detail::checked_axis(axis, Rank);
    if (begin < 0 || end < begin || end > extents_[axis] || step < 1) {
      throw_shape_error("slice: [", begin, ", ", end, ") in steps of ", step, " of axis ", axis,
                        " with extent ", extents_[axis],
                        ", expected 0 <= begin <= end <= extent, steps of 1 or more");
    }
    const Index count = begin == end ? 0 : (end - begin - 1) / step + 1;
    TensorView result = *this;
    if (count > 0) result.data_ = at_index(axis, begin);
    result.extents_[axis] = count;
    // With one element left the step is meaningless, and its product may not fit.
    if (count > 1) result.strides_[axis] *= step;
    return result;
  }

  template <class Begin>
  TensorView slice(std::size_t, Begin) const {
    static_assert(detail::never<Begin>,
                  "a slice has an axis, a begin and an end: slice(axis, begin, end); select(axis, "
                  "index) is one index");
    return *this;
  }

  /// Axes in another order: axis `i` of the result is axis `order[i]` of this view.
  TensorView permute(const Extents<Rank>& order) const {
    TensorView result = *this;
    std::array<bool, Rank> seen{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      const auto from = static_cast<std::size_t>(order[axis]);
      if (order[axis] < 0 || from >= Rank || seen[from]) {
        throw_shape_error("permute: ", order, " is no permutation of ", Rank, " axes");
      }
      seen[from] = true;
      result.extents_[axis] = extents_[from];
      result.strides_[axis] = strides_[from];
    }
    return result;
  }
  /// The same as `permute(0, 2, 1, 3)`.
  TensorView permute(std::convertible_to<Index> auto... order) const
      requires(Rank > 1 && sizeof...(order) == Rank) {
    return permute(Extents<Rank>{static_cast<Index>(order)...});
  }

  /// Two axes exchanged: the last two, a matrix's transpose, if none are named.
  TensorView transpose(std::size_t first = Rank - 2, std::size_t second = Rank - 1) const
      requires(Rank > 1) {
    detail::checked_axis(first, Rank);
    detail::checked_axis(second, Rank);
    TensorView result = *this;
    std::swap(result.extents_[first], result.extents_[second]);
    std::swap(result.strides_[first], result.strides_[second]);
    return result;
  }

  /// One axis in reverse order.
  TensorView reverse(std::size_t axis) const {
    detail::checked_axis(axis, Rank);
    TensorView result = *this;
    if (extents_[axis] > 1) {
      result.data_ = at_index(axis, extents_[axis] - 1);
      result.strides_[axis] = -strides_[axis];
    }
    return result;
  }

  /// An axis of extent 1 repeated `extent` times without copying (stride 0).
  TensorView broadcast(std::size_t axis, Index extent) const {
    detail::checked_axis(axis, Rank);
    if (extents_[axis] != 1 || extent < 0) {
      throw_shape_error("broadcast: axis ", axis, " of ", extents_, " to ", extent,
                        "; only an axis of extent 1 can be repeated");
    }
    TensorView result = *this;
    result.extents_[axis] = extent;
    result.strides_[axis] = 0;
    result.check();
    return result;
  }

  /// One axis split into two: `inner` consecutive elements become the new axis `axis + 1`.
  TensorView<T, Rank + 1> split(std::size_t axis, Index inner) const {
    detail::checked_axis(axis, Rank);
    if (inner < 1 || extents_[axis] % inner != 0) {
      throw_shape_error("split: axis ", axis, " of ", extents_, " does not divide by ", inner);
    }
    Extents<Rank + 1> extents{}, strides{};
    for (std::size_t from = 0, to = 0; from < Rank; ++from, ++to) {
      extents[to] = extents_[from];
      strides[to] = strides_[from];
      if (from == axis) {
        extents[to] = extents_[axis] / inner;
        strides[to] = extents[to] > 1 ? strides_[axis] * inner : strides_[axis];
        ++to;
        extents[to] = inner;
        strides[to] = strides_[axis];
      }
    }
    return {Accepted{}, data_, extents, strides};
  }

  /// The sub-view at one index of one axis, which is removed.
  TensorView<T, Rank - 1> select(std::size_t axis, Index index) const requires(Rank > 1) {
    detail::checked_axis(axis, Rank);
    if (index < 0 || index >= extents_[axis]) {
      throw_shape_error("select: index ", index, " of axis ", axis, " with extent ",
                        extents_[axis]);
    }
    Extents<Rank - 1> extents{}, strides{};
    for (std::size_t from = 0, to = 0; from < Rank; ++from) {
      if (from == axis) continue;
      extents[to] = extents_[from];
      strides[to++] = strides_[from];
    }
    return {Accepted{}, at_index(axis, index), extents, strides};
  }

  /// The same values with a new leading axis of extent 1.
  TensorView<T, Rank + 1> with_leading_axis() const {
    Extents<Rank + 1> extents{}, strides{};
    extents[0] = 1;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      extents[axis + 1] = extents_[axis];
      strides[axis + 1] = strides_[axis];
    }
    return {Accepted{}, data_, extents, strides};
  }

 private:
  template <class, std::size_t>
  friend class TensorView;
  template <class U, std::size_t Axes>
  friend TensorView<U, Axes> detail::without_memory(const Extents<Axes>& extents);

  using Accepted = detail::AcceptedView;
  /// A part of an accepted view, or the same values under other axes: its reach is no larger.
  TensorView(Accepted, T* data, const Extents<Rank>& extents, const Extents<Rank>& strides)
      : data_(data), extents_(extents), strides_(strides) {}

  Index offset(const Extents<Rank>& at) const {
    Index sum = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      HEED_EXPECTS(at[axis] >= 0 && at[axis] < extents_[axis]);
      sum += at[axis] * strides_[axis];
    }
    return sum;
  }
  /// The address of index `index` of one axis; a view without elements has none and keeps its
  /// pointer.
  T* at_index(std::size_t axis, Index index) const {
    return empty() ? data_ : data_ + index * strides_[axis];
  }
  void check() const {
    detail::row_major_strides<Rank>(extents_);  // the element count fits
    detail::check_reach(extents_.data(), strides_.data(), Rank, sizeof(T));
    if (data_ == nullptr && !empty()) {
      throw_invalid_argument("view: a null pointer has no values for extents ", extents_);
    }
  }

  T* data_ = nullptr;
  Extents<Rank> extents_{};
  Extents<Rank> strides_{};
};

template <class T, std::size_t Rank>
TensorView(T*, const detail::ListedExtent (&)[Rank]) -> TensorView<T, Rank>;
template <class T, std::size_t Rank, std::size_t Count>
TensorView(T*, const detail::ListedExtent (&)[Rank], const detail::ListedExtent (&)[Count])
    -> TensorView<T, Rank>;
template <class T, class Number, std::size_t Rank>
TensorView(T*, const std::array<Number, Rank>&) -> TensorView<T, Rank>;
template <detail::HoldsRun Values, std::size_t Rank>
TensorView(Values&&, const detail::ListedExtent (&)[Rank])
    -> TensorView<detail::RunElement<Values>, Rank>;
template <detail::HoldsRun Values, class Number, std::size_t Rank>
TensorView(Values&&, const std::array<Number, Rank>&)
    -> TensorView<detail::RunElement<Values>, Rank>;
template <detail::HoldsRun Values, std::size_t Rank, std::size_t Count>
TensorView(Values&&, const detail::ListedExtent (&)[Rank], const detail::ListedExtent (&)[Count])
    -> TensorView<detail::RunElement<Values>, Rank>;

namespace detail {

/// Calls visit(at) for every index of all axes but the last, in row-major order; at[last] is 0.
/// Rows of length 0 are visited too.
template <std::size_t Rank, class Visit>
void for_each_row(const Extents<Rank>& extents, Visit&& visit) {
  Extents<Rank> leading = extents;
  leading[Rank - 1] = 1;
  for (const Index extent : leading) {
    if (extent == 0) return;
  }
  Extents<Rank> at{};
  for (;;) {
    visit(static_cast<const Extents<Rank>&>(at));
    std::size_t axis = Rank - 1;
    while (axis > 0 && ++at[axis - 1] == leading[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

/// The last axis of a view, at one index of the other axes.
template <class T, std::size_t Rank>
TensorView<T, 1> row_at(const TensorView<T, Rank>& view, const Extents<Rank>& at) {
  constexpr std::size_t last = Rank - 1;
  T* data = view.data_handle();
  if (view.extent(last) > 0) {
    for (std::size_t axis = 0; axis < last; ++axis) data += at[axis] * view.stride(axis);
  }
  return {data, {view.extent(last)}, {view.stride(last)}};
}

template <class From, class To>
void copy_row(const TensorView<From, 1>& from, const TensorView<To, 1>& to) {
  const Index count = to.extent(0), from_stride = from.stride(0), to_stride = to.stride(0);
  From* source = from.data_handle();
  To* target = to.data_handle();
  Index i = 0;
  if (from_stride == 1 && to_stride == 1) {
    if constexpr (std::is_same_v<std::remove_const_t<From>, To>) {
      if (count > 0) std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(To));
      return;
    }
    constexpr Index part = 64;  // a fixed number, of which compilers make vectors at -O2 too
    for (; i + part <= count; i += part) {
      To run[part];
      for (Index j = 0; j < part; ++j) run[j] = static_cast<To>(source[i + j]);
      std::memcpy(target + i, run, sizeof(run));
    }
  }
  for (; i < count; ++i) target[i * to_stride] = static_cast<To>(source[i * from_stride]);
}

/// Copies a matrix that is transposed on one side, by squares: a line of memory is read and written
/// at once, and not held in a cache whose places other lines want.
template <class From, class To>
void copy_squares(const TensorView<From, 2>& from, const TensorView<To, 2>& to) {
  constexpr Index side = 16;
  To square[side * side];
  for (Index row = 0; row < to.extent(0); row += side) {
    const Index rows = smaller(side, to.extent(0) - row);
    for (Index column = 0; column < to.extent(1); column += side) {
      const Index columns = smaller(side, to.extent(1) - column);
      for (Index j = 0; j < columns; ++j) {
        From* x = from.data_handle() + row * from.stride(0) + (column + j) * from.stride(1);
        if (column + j + side < to.extent(1)) {  // read next
          From* next = x + side * from.stride(1);
          __builtin_prefetch(next);
          __builtin_prefetch(next + (rows - 1) * from.stride(0));
        }
        for (Index i = 0; i < rows; ++i) {
          square[i * side + j] = static_cast<To>(x[i * from.stride(0)]);
        }
      }
      for (Index i = 0; i < rows; ++i) {
        To* y = to.data_handle() + (row + i) * to.stride(0) + column * to.stride(1);
        for (Index j = 0; j < columns; ++j) y[j * to.stride(1)] = square[i * side + j];
      }
    }
  }
}

/// Copies the values of one view to another, which do not overlap and have the same extents.
template <class From, class To, std::size_t Rank>
void copy_values(const TensorView<From, Rank>& from, const TensorView<To, Rank>& to) {
  if constexpr (Rank == 1) {
    copy_row(from, to);
  } else {
    if constexpr (Rank == 2) {
      if (from.stride(1) != 1 || to.stride(1) != 1) return copy_squares(from, to);
    }
    for (Index i = 0; i < to.extent(0); ++i) copy_values(from.select(0, i), to.select(0, i));
  }
}

}  // namespace detail

}  // namespace heed

/// Iterators refer to the values and outlive the view.
template <class T, std::size_t Rank>
inline constexpr bool std::ranges::enable_borrowed_range<heed::TensorView<T, Rank>> = true;
