// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <heed/core/detail/math.hpp>
#include <heed/core/detail/scratch.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/tensor/eigen_views.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

// Options. ----------------------------------------------------------------------------------------

/// A mask for the row functions over a rank-`Rank` tensor: an element counts where it is true.
/// Converts from a bool view or tensor of that rank or less; axes are aligned at the last one, and
/// a missing axis or one of extent 1 is broadcast. Empty: all elements count.
template <std::size_t Rank>
class RowMask {
 public:
  RowMask() = default;
  template <class X>
  requires(!std::same_as<X, RowMask> && Viewable<const X>)
      RowMask(const X& mask)  // NOLINT(google-explicit-constructor): a bool tensor is a mask
      : given_(true) {
    using View = ViewOf<const X>;
    static_assert(std::same_as<typename View::value_type, bool>, "a mask is made of bool");
    static_assert(View::rank() <= Rank, "the mask has more axes than the tensor it is for");
    const View view = view_of(mask);
    Extents<Rank> extents{}, strides{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      const bool missing = axis + View::rank() < Rank;
      extents[axis] = missing ? 1 : view.extent(axis + View::rank() - Rank);
      strides[axis] = missing ? 0 : view.stride(axis + View::rank() - Rank);
    }
    view_ = {view.data_handle(), extents, strides};
  }
  /// A std::vector<bool> has bits, of which there is no view: they are copied.
  template <class Bits>
  requires requires(Bits& bits) {
    bits.flip();
    bits.size();
  }
  RowMask(const Bits& bits) : given_(true) {  // NOLINT
    Extents<Rank> extents{};
    for (Index& extent : extents) extent = 1;
    extents[Rank - 1] = static_cast<Index>(bits.size());
    copied_ = Tensor<bool, Rank>(extents);
    bool* to = copied_.data();
    for (std::size_t i = 0; i < bits.size(); ++i) *to++ = bits[i];
    view_ = detail::without_memory<const bool>(extents);
  }
  template <class X>
  requires(Viewable<const X>&& detail::OwnsValues<X>) RowMask(const X&&) {  // NOLINT
    static_assert(!Viewable<const X>, "a mask of temporary values dangles: give them a name first");
  }

  bool given() const { return given_; }
  Index extent(std::size_t axis) const { return view_.extent(axis); }

  /// The mask broadcast to a tensor of these extents. Throws ShapeError if it does not fit.
  TensorView<const bool, Rank> fitted(const char* caller, const Extents<Rank>& extents) const {
    auto result = copied_.empty() ? view_ : copied_.view();
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      if (view_.extent(axis) == extents[axis]) continue;
      if (view_.extent(axis) != 1) {
        throw_shape_error(caller, ": mask ", view_.extents(), " does not fit ", extents);
      }
      result = result.broadcast(axis, extents[axis]);
    }
    return result;
  }

 private:
  TensorView<const bool, Rank> view_;
  Tensor<bool, Rank> copied_;
  bool given_ = false;
};

/// Options of the row functions.
template <std::size_t Rank>
struct RowOptions {
  /// Divides every element first: below 1 sharpens, above 1 flattens. Finite and above 0.
  double temperature = 1;
  /// True where an element counts. Hidden elements are not read, NaN or not.
  RowMask<Rank> mask = {};
};

namespace detail {

/// The options of row functions on X.
template <class X>
using RowOptionsFor = RowOptions<ViewOf<const X>::rank()>;

/// A view of X with its rows along the last axis. A column vector of Eigen's is one row, although
/// its view is (n, 1): as n rows of one element, every softmax would be 1.
template <class X, class View>
View with_rows_last(const View& view) {
  if constexpr (EigenColumn<X>) return view.transpose();
  return view;
}

// One row at a time. ------------------------------------------------------------------------------

/// One row with its options, ready to be normalized.
template <class T>
struct Row {
  TensorView<const T, 1> values;
  TensorView<const bool, 1> mask;  // not read unless masked
  bool masked = false;
  double temperature = 1;

  Index count() const { return values.extent(0); }
  bool visible(Index i) const { return !masked || mask(i); }
};

/// The statistics of a row: its largest visible element, and the sum of its powers, e^((x − max) /
/// temperature), over visible elements.
struct RowSum {
  double maximum = -std::numeric_limits<double>::infinity();
  double sum = 0;

  /// No visible element is above −inf: such a row has no distribution.
  bool empty() const { return sum == 0; }
  /// A visible element is NaN or +inf: every visible result is NaN.
  bool broken() const { return sum != sum; }
};

/// Working memory of a row function for one row. Each `Purpose` has memory of its own.
template <class Purpose, class T>
T* row_buffer(Index count) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  return reinterpret_cast<T*>(Scratch::of_this_thread<Purpose>(bytes));
}

/// Where a row function computes a row of its output: there, unless strides forbid it.
template <class T>
T* row_memory(const TensorView<T, 1>& out) {
  return out.stride(0) == 1 ? out.data_handle() : row_buffer<Row<T>, T>(out.extent(0));
}
template <class T>
void write_row(const T* from, const TensorView<T, 1>& out) {
  if (from == out.data_handle()) return;
  for (Index i = 0; i < out.extent(0); ++i) out(i) = from[i];
}
/// Writes `all` to visible elements and `hidden` to the others.
template <class T>
void fill_row(const Row<T>& row, T all, T hidden, T* out) {
  for (Index i = 0; i < row.count(); ++i) out[i] = row.visible(i) ? all : hidden;
}

/// The elements of a row side by side: the row itself, or what is gathered in `memory`, which may
/// be the row's own, with −inf for hidden ones.
template <class T>
const T* gathered_row(const Row<T>& row, T* memory) {
  if (!row.masked && row.values.stride(0) == 1) return row.values.data_handle();
  for (Index i = 0; i < row.count(); ++i) {
    memory[i] = row.visible(i) ? row.values(i) : -std::numeric_limits<T>::infinity();
  }
  return memory;
}

/// Writes (x − maximum) / temperature to `shifted`, which may be x. The maximum is subtracted
/// first, so that large elements lose no precision.
template <class T>
void shift_row(const T* x, T maximum, double temperature, T* shifted, Index count) {
  if (temperature == 1) {
    return simd::row_kernels<T>().shift_scale(x, maximum, T{1}, shifted, count);
  }
  for (Index i = 0; i < count; ++i) {
    const double distance = static_cast<double>(x[i]) - static_cast<double>(maximum);
    shifted[i] = static_cast<T>(distance / temperature);
  }
}

/// The statistics of a row. Writes its powers to `powers`, and its shifted elements to `shifted`,
/// which may be the row's own memory; where both are one, the powers. Nothing for an empty row.
template <class T>
RowSum sum_row(const Row<T>& row, T* shifted, T* powers) {
  const auto& kernels = simd::training_kernels<T>();
  const Index count = row.count();
  const T* x = gathered_row(row, shifted);
  const T maximum = kernels.maximum(x, count);
  RowSum result{static_cast<double>(maximum), 0};
  if (maximum == -std::numeric_limits<T>::infinity()) {
    for (Index i = 0; i < count; ++i) {  // a NaN is never the maximum
      if (x[i] != x[i]) result.sum = static_cast<double>(x[i]);
    }
    return result;
  }
  const bool at_once = shifted == powers && row.temperature == 1;
  if (!at_once) shift_row(x, maximum, row.temperature, shifted, count);
  kernels.exponentials(at_once ? x : shifted, at_once ? maximum : T{0}, powers, count);
  result.sum = kernels.sum(powers, count);
  return result;
}

/// Calls visit(at, number) for every row, on several threads where that is worth it: `at` is the
/// row's index, and `number` counts rows in order.
template <std::size_t Rank, class Visit>
void visit_row_indices(const Extents<Rank>& extents, const Visit& visit) {
  Index count = 1;
  for (std::size_t axis = 0; axis + 1 < Rank; ++axis) count *= extents[axis];
  const Index width = larger(extents[Rank - 1], 1);
  const Index run = larger(16384 / width, 1);  // rows that a thread takes at a time
  const auto rows_of = [&](Index part) {
    for (Index number = part * run; number < smaller((part + 1) * run, count); ++number) {
      Extents<Rank> at{};
      Index left = number;
      for (std::size_t axis = Rank - 1; axis-- > 0; left /= extents[axis]) {
        at[axis] = left % extents[axis];
      }
      visit(at, number);
    }
  };
  const Index nanoseconds = width + 50;  // of a row
  parallel_for_if_worth(parts_of(count, run), count * nanoseconds, rows_of);
}

/// Refuses invalid arguments, then calls visit(row, its index, its number) for every row of X's
/// view, perhaps on several threads.
template <class X, class In, class Visit>
void visit_rows(const char* caller, const In& in, const RowOptions<In::rank()>& options,
                const Visit& visit) {
  using T = typename In::value_type;
  static_assert(Scalar<T>, "row functions compute in float or double");
  if (!(options.temperature > 0 && options.temperature <= std::numeric_limits<double>::max())) {
    throw_invalid_argument(caller, ": temperature ", options.temperature,
                           ", expected a finite number above 0");
  }
  const In rows = with_rows_last<X>(in);
  TensorView<const bool, In::rank()> mask;
  if (options.mask.given()) {
    const bool lies = EigenColumn<X> && options.mask.extent(0) == 1;  // a list, as a row has it
    mask = lies ? options.mask.fitted(caller, rows.extents())
                : with_rows_last<X>(options.mask.fitted(caller, in.extents()));
  }
  visit_row_indices(rows.extents(), [&](const Extents<In::rank()>& at, Index number) {
    Row<T> row{row_at(rows, at), {}, options.mask.given(), options.temperature};
    if (row.masked) row.mask = row_at(mask, at);
    visit(row, at, number);
  });
}

/// Refuses an output that does not fit the input. It may be the input itself, with the same
/// strides.
template <class In, class Out>
void check_row_output(const char* caller, const In& in, const Out& out) {
  static_assert(In::rank() == Out::rank(), "row functions: in and out must have one rank");
  static_assert(std::is_same_v<typename In::value_type, typename Out::element_type>,
                "row functions: in and out must have one scalar type, and out must be writable");
  if (out.extents() != in.extents()) {
    throw_shape_error(caller, ": out is ", out.extents(), ", the input ", in.extents());
  }
  if (has_internal_overlap(out)) throw_shape_error(caller, ": elements of out share memory");
  const bool in_place = out.data_handle() == in.data_handle() && out.strides() == in.strides();
  if (!in_place && overlaps(in, out)) {
    throw_shape_error(caller, ": out overlaps the input without being the same view");
  }
}

template <class Axis, class In>
auto refuse_axis(const In& in) {
  static_assert(never<Axis>,
                "row functions work along the last axis: a view with another one there is "
                "view.transpose(axis, last)");
  return new_result<In>(view_of(in).extents());
}

template <class T>
void softmax_row(const Row<T>& row, const TensorView<T, 1>& out) {
  T* const weights = row_memory(out);
  const RowSum total = sum_row(row, weights, weights);
  if (total.empty() || total.broken()) {
    fill_row(row, static_cast<T>(total.sum), T{0}, weights);
  } else {
    simd::row_kernels<T>().shift_scale(weights, T{0}, static_cast<T>(1 / total.sum), weights,
                                       row.count());
  }
  write_row(weights, out);
}

template <class T>
void log_softmax_row(const Row<T>& row, const TensorView<T, 1>& out) {
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  T* const logs = row_memory(out);
  const RowSum total = sum_row(row, logs, row_buffer<RowSum, T>(row.count()));
  if (total.empty() || total.broken()) {
    fill_row(row, total.empty() ? nothing : static_cast<T>(total.sum), nothing, logs);
  } else {
    const auto log_sum = static_cast<T>(detail::log(total.sum));
    simd::row_kernels<T>().shift_scale(logs, log_sum, T{1}, logs, row.count());
  }
  write_row(logs, out);
}

template <class T>
T log_sum_exp_row(const Row<T>& row) {
  T* const powers = row_buffer<RowSum, T>(row.count());
  const RowSum total = sum_row(row, powers, powers);
  if (total.empty()) return -std::numeric_limits<T>::infinity();
  return static_cast<T>(total.maximum / row.temperature + detail::log(total.sum));
}

}  // namespace detail

// Functions of all rows. --------------------------------------------------------------------------

/// The softmax: exp(x / temperature) divided by its sum along the last axis, and along a column
/// vector of Eigen's. `out` has the extents of `in` and may be `in`. Masked elements are exactly 0,
/// and so is a row without visible elements; a visible NaN or +inf makes every visible element of
/// its row NaN. Relative error at most u · (8 + |x − max|), with a temperature u · (8 + 2 |x − max|
/// / temperature), where u is 2⁻²⁴ for float and 2⁻⁵³ for double, and twice that on processors
/// without fused multiply-add; n doubles add u · n / 16, since sums are doubles too. Weights below
/// the smallest normal number may be 0. Throws before the first write: ShapeError for an `out` of
/// other extents, for one that overlaps `in` without being the same view and for a mask that does
/// not fit, InvalidArgument for a temperature that is not finite or not above 0.
template <Viewable In, Viewable Out>
void softmax(const In& in, Out&& out, const detail::RowOptionsFor<In>& options = {}) {
  const auto target = view_of(out);
  const TensorView<const ValueOf<In>, ViewOf<const In>::rank()> source = view_of(in);
  detail::check_row_output("softmax", source, target);
  const auto rows = detail::with_rows_last<In>(target);
  detail::visit_rows<In>("softmax", source, options, [&](const auto& row, const auto& at, Index) {
    detail::softmax_row(row, detail::row_at(rows, at));
  });
}

// An axis does not compile, here and below.
template <Viewable In, std::integral Axis>
auto softmax(const In& in, Axis) {
  return detail::refuse_axis<Axis>(in);
}

/// x / temperature − log Σ exp(x / temperature) along the last axis. `out` has the extents of `in`
/// and may be `in`. Masked elements are −inf, and so is a row without visible elements; NaN and
/// +inf as for softmax. Throws as softmax does.
template <Viewable In, Viewable Out>
void log_softmax(const In& in, Out&& out, const detail::RowOptionsFor<In>& options = {}) {
  const auto target = view_of(out);
  const TensorView<const ValueOf<In>, ViewOf<const In>::rank()> source = view_of(in);
  detail::check_row_output("log_softmax", source, target);
  const auto rows = detail::with_rows_last<In>(target);
  detail::visit_rows<In>("log_softmax", source, options,
                         [&](const auto& row, const auto& at, Index) {
                           detail::log_softmax_row(row, detail::row_at(rows, at));
                         });
}

template <Viewable In, std::integral Axis>
auto log_softmax(const In& in, Axis) {
  return detail::refuse_axis<Axis>(in);
}

/// log Σ exp(x / temperature) along the last axis, which the result lacks (a rank-1 input gives one
/// element, rank 1). −inf for a row without visible elements, NaN for one with a visible NaN or
/// +inf. Throws as softmax does.
template <Viewable In>
auto log_sum_exp(const In& in, const detail::RowOptionsFor<In>& options = {}) {
  using T = ValueOf<In>;
  constexpr std::size_t rank = ViewOf<const In>::rank();
  const TensorView<const T, rank> source = view_of(in);
  constexpr std::size_t result_rank = rank == 1 ? 1 : rank - 1;
  Extents<result_rank> extents{};
  extents[0] = 1;
  const auto rows = detail::with_rows_last<In>(source);
  for (std::size_t axis = 0; axis + 1 < rank; ++axis) extents[axis] = rows.extent(axis);
  Tensor<T, result_rank> result(extents);
  T* const sums = result.data();
  detail::visit_rows<In>(
      "log_sum_exp", source, options,
      [&](const auto& row, const auto&, Index i) { sums[i] = detail::log_sum_exp_row(row); });
  return result;
}
template <Viewable In, std::integral Axis>
auto log_sum_exp(const In& in, Axis) {
  return detail::refuse_axis<Axis>(in);
}

/// softmax and log_softmax, returning a new tensor, or a new Eigen matrix for an Eigen matrix.
template <Viewable In>
auto softmax(const In& in, const detail::RowOptionsFor<In>& options = {}) {
  auto out = detail::new_result<In>(view_of(in).extents());
  softmax(in, out, options);
  return out;
}
template <Viewable In>
auto log_softmax(const In& in, const detail::RowOptionsFor<In>& options = {}) {
  auto out = detail::new_result<In>(view_of(in).extents());
  log_softmax(in, out, options);
  return out;
}

}  // namespace heed
