// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/core/detail/math.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/tensor/rows.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// A loss and its gradient with respect to the predictions, in their extents.
template <ModelScalar T, std::size_t Rank>
struct MeanSquaredError {
  double loss = 0;
  Tensor<T, Rank> grad_predictions;
};

/// Mean squared error over all elements, floats or doubles, with its gradient,
/// 2 · (prediction − target) / elements: `auto [loss, grad_predictions] =
/// mean_squared_error(predictions, targets)`. Computed in double, row by row; the sum of a row is
/// four sums of every fourth element. 0 for no elements. Throws ShapeError when the extents differ.
template <Viewable Predictions, Viewable Targets>
auto mean_squared_error(const Predictions& predictions, const Targets& targets) {
  using T = ValueOf<const Predictions>;
  constexpr std::size_t rank = ViewOf<const Predictions>::rank();
  static_assert(std::is_same_v<T, ValueOf<const Targets>> && rank == ViewOf<const Targets>::rank(),
                "mean_squared_error: predictions and targets must have one scalar type and rank");
  const TensorView<const T, rank> from = view_of(predictions), to = view_of(targets);
  if (from.extents() != to.extents()) {
    throw_shape_error("mean_squared_error: predictions are ", from.extents(), ", targets ",
                      to.extents());
  }
  MeanSquaredError<T, rank> result{0, Tensor<T, rank>(from.extents())};
  const auto count = static_cast<double>(from.size());
  const double slope = from.size() > 0 ? 2 / count : 0;
  T* gradient = result.grad_predictions.data();
  detail::for_each_row(from.extents(), [&](const Extents<rank>& at) {
    const auto predicted = detail::row_at(from, at), target = detail::row_at(to, at);
    constexpr Index chains = 4;  // since each addition waits for the one before it
    double sums[chains] = {};
    const auto add = [&](Index i, double& sum) {
      const double difference = static_cast<double>(predicted(i)) - static_cast<double>(target(i));
      sum += difference * difference;
      *gradient++ = static_cast<T>(slope * difference);
    };
    const Index size = predicted.extent(0);
    Index i = 0;
    for (; i + chains <= size; i += chains) {
      for (Index j = 0; j < chains; ++j) add(i + j, sums[j]);
    }
    for (; i < size; ++i) add(i, sums[0]);
    result.loss += (sums[0] + sums[1]) + (sums[2] + sums[3]);
  });
  if (from.size() > 0) result.loss /= count;
  return result;
}

/// Options of cross_entropy.
struct CrossEntropyOptions {
  /// The target of positions that do not count: padding.
  Index ignored = -100;
  /// The share of every target that is spread evenly over all classes, 0 to 1. Szegedy et al. 2016.
  double label_smoothing = 0;
  /// The divisor of the sum over targets; 0: the number of targets that count. Set it where one
  /// batch is computed in parts.
  Index divisor = 0;
};

/// A loss and its gradient with respect to the logits.
template <ModelScalar T, std::size_t Rank>
struct CrossEntropy {
  double loss = 0;
  Tensor<T, Rank> grad_logits;
};

namespace detail {

template <class X>
concept WholeNumbers = Viewable<const X> && std::integral<ValueOf<const X>>;
template <class Targets, std::size_t Rank>
concept TargetsOf = WholeNumbers<Targets> &&
    (ViewOf<const Targets>::rank() + 1 == (EigenVector<Targets> ? Rank + 1 : Rank));
template <class Targets, class Logits>
concept SharesOf = Viewable<const Targets> && Scalar<ValueOf<const Targets>> &&
    std::same_as<ValueOf<const Targets>, ValueOf<const Logits>> &&
    (ViewOf<const Targets>::rank() == ViewOf<const Logits>::rank());

/// Class numbers, of which a vector of Eigen's has one axis here, and two as a view.
template <class Targets>
auto class_numbers(const Targets& targets) {
  const auto view = view_of(targets);
  if constexpr (EigenVector<Targets>) {
    return view.select(EigenColumn<Targets> ? 1 : 0, 0);
  } else {
    return view;
  }
}

template <class Logits, class Targets>
constexpr bool expect_targets() {
  constexpr bool expected = TargetsOf<Targets, ViewOf<const Logits>::rank()>;
  static_assert(expected,
                "targets are whole numbers, the class of each position: they have the axes of the "
                "logits but for the last one; or they are shares of all classes, of the logits' "
                "extents and type");
  return expected;
}

/// Checks what all calls share.
template <class Logits, class Targets>
void check_cross_entropy_call(const Logits& logits, const Targets& targets,
                              const CrossEntropyOptions& options) {
  for (std::size_t axis = 0; axis < Targets::rank(); ++axis) {
    if (logits.extent(axis) == targets.extent(axis)) continue;
    throw_shape_error("cross_entropy: logits are ", logits.extents(), ", targets ",
                      targets.extents());
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw_invalid_argument("cross_entropy: label_smoothing ", options.label_smoothing,
                           ", expected 0 to 1");
  }
  if (options.divisor < 0) {
    throw_invalid_argument("cross_entropy: divisor ", options.divisor, ", expected 0 or more");
  }
}

/// Checks the arguments of a call and returns the number of targets that count.
template <class Logits, class Targets>
Index check_cross_entropy(const Logits& logits, const Targets& targets,
                          const CrossEntropyOptions& options) {
  check_cross_entropy_call(logits, targets, options);
  const Index classes = logits.extent(Logits::rank() - 1);
  Index kept = 0, at = 0;
  for_each_row(targets.extents(), [&](const auto& row) {
    const auto values = row_at(targets, row);
    for (Index i = 0; i < values.extent(0); ++i, ++at) {
      const auto target = static_cast<Index>(values(i));
      if (target == options.ignored) continue;
      if (target < 0 || target >= classes) {
        throw_invalid_argument("cross_entropy: target ", target, " at ", at, " of ",
                               targets.extents(), "; there are ", classes, " classes, and ",
                               options.ignored, " is ignored");
      }
      ++kept;
    }
  });
  return kept;
}

/// One target that counts, with its logits.
template <class T>
struct CrossEntropyRow {
  TensorView<const T, 1> logits;
  T* gradient = nullptr;  // none: the loss alone
  Index target = 0;
  double loss = 0;
};

/// Settings that all rows of a call share.
struct CrossEntropyCall {
  double smoothing = 0;
  double divisor = 1;
};

/// Turns the powers e^(x − max) of a row into (p − y) / divisor, y being the target smoothed.
template <class T>
void finish_gradient(T* powers, Index classes, Index target, double sum,
                     const CrossEntropyCall& call) {
  const double even = call.smoothing / static_cast<double>(classes);
  const double at_target = powers[target] / sum - even - (1 - call.smoothing);
  const double factor = 1 / (sum * call.divisor);
  simd::row_kernels<T>().shift_scale(powers, static_cast<T>(even * sum), static_cast<T>(factor),
                                     powers, classes);
  powers[target] = static_cast<T>(at_target / call.divisor);
}

/// A row of nothing but −inf has no probabilities: p counts as 0.
template <class T>
void empty_row(CrossEntropyRow<T>& row, const CrossEntropyCall& call) {
  const Index classes = row.logits.extent(0);
  row.loss = std::numeric_limits<double>::infinity();
  for (Index i = 0; row.gradient != nullptr && i < classes; ++i) {
    const double aim =
        call.smoothing / static_cast<double>(classes) + (i == row.target ? 1 - call.smoothing : 0);
    row.gradient[i] = static_cast<T>(-aim / call.divisor);
  }
}

/// Σ (x − max) in double.
template <class T>
double sum_below(const T* x, Index classes, T most) {
  const auto top = static_cast<double>(most);
  double sum = simd::training_kernels<T>().sum(x, classes) - static_cast<double>(classes) * top;
  if (std::isfinite(sum)) return sum;
  sum = 0;  // Σ x of huge logits overflows where their differences need not
  for (Index i = 0; i < classes; ++i) sum += static_cast<double>(x[i]) - top;
  return sum;
}

/// Loss and gradient of one row; `buffer` holds as many numbers as there are classes.
template <class T>
void compute_row(CrossEntropyRow<T>& row, T* buffer, const CrossEntropyCall& call) {
  const auto& kernels = simd::training_kernels<T>();
  const Index classes = row.logits.extent(0);
  T* powers = row.gradient != nullptr ? row.gradient : buffer;
  const T* x = row.logits.data_handle();
  if (row.logits.stride(0) != 1) {
    for (Index i = 0; i < classes; ++i) powers[i] = row.logits(i);
    x = powers;
  }
  const T most = kernels.maximum(x, classes);
  const double at_target = static_cast<double>(x[row.target]) - static_cast<double>(most);
  const double shifted = call.smoothing != 0 ? sum_below(x, classes, most) : 0;
  if (most == -std::numeric_limits<T>::infinity() &&
      std::none_of(x, x + classes, [](T value) { return value != value; })) {
    return empty_row(row, call);
  }
  kernels.exponentials(x, most, powers, classes);
  const double sum = kernels.sum(powers, classes);
  if (sum != sum) {  // a NaN, or +inf
    row.loss = sum;
    if (row.gradient != nullptr) std::fill(powers, powers + classes, static_cast<T>(sum));
    return;
  }
  const double log_sum = detail::log(sum);
  row.loss = call.smoothing == 1 ? 0 : (1 - call.smoothing) * (log_sum - at_target);
  if (call.smoothing != 0) {
    row.loss += call.smoothing * (log_sum - shifted / static_cast<double>(classes));
  }
  if (row.gradient != nullptr) finish_gradient(powers, classes, row.target, sum, call);
}

/// Computes rows of `classes` logits, on several threads, and returns the sum of their losses.
template <class LossRow>
double sum_of_rows(std::vector<LossRow>& rows, Index classes, const CrossEntropyCall& call) {
  using T = std::remove_pointer_t<decltype(LossRow::gradient)>;
  const auto count = static_cast<Index>(rows.size());
  // As many rows as are worth waking a thread for.
  const Index rows_a_task = std::max<Index>(1, 16384 / std::max<Index>(1, classes));
  parallel_for(parts_of(count, rows_a_task), [&](Index task) {
    T* const buffer = row_buffer<CrossEntropyCall, T>(classes);
    for (Index i = task * rows_a_task; i < std::min(count, (task + 1) * rows_a_task); ++i) {
      compute_row(rows[static_cast<std::size_t>(i)], buffer, call);
    }
  });
  double sum = 0;
  for (const auto& row : rows) sum += row.loss;  // in order, whoever computed them
  return sum;
}

/// The loss, and the gradients too where `gradients` is not empty; it must be zero before the call.
template <ModelScalar T, class Logits, class Targets, std::size_t Rank>
double compute_cross_entropy(const Logits& logits, const Targets& targets,
                             const TensorView<T, Rank>& gradients,
                             const CrossEntropyOptions& options) {
  const Index kept = check_cross_entropy(logits, targets, options);
  if (kept == 0) return 0;
  const auto divisor = static_cast<double>(options.divisor > 0 ? options.divisor : kept);
  const CrossEntropyCall call{options.label_smoothing, divisor};
  std::vector<CrossEntropyRow<T>> rows;
  rows.reserve(static_cast<std::size_t>(kept));
  for_each_row(logits.extents(), [&](const Extents<Rank>& at) {
    Index offset = 0;
    for (std::size_t axis = 0; axis + 1 < Rank; ++axis) offset += at[axis] * targets.stride(axis);
    const auto target = static_cast<Index>(targets.data_handle()[offset]);
    if (target == options.ignored) return;
    T* gradient = gradients.empty() ? nullptr : row_at(gradients, at).data_handle();
    rows.push_back({row_at(logits, at), gradient, target, 0});
  });
  return sum_of_rows(rows, logits.extent(Rank - 1), call) / divisor;
}

/// One row of logits with a target that gives every class a share.
template <class T>
struct SharedRow {
  TensorView<const T, 1> logits, shares;
  T* gradient = nullptr;  // none: the loss alone
  double loss = 0;

  /// The share of a class after smoothing.
  double share(Index i, const CrossEntropyCall& call) const {
    const double even = call.smoothing / static_cast<double>(shares.extent(0));
    return (1 - call.smoothing) * static_cast<double>(shares(i)) + even;
  }
};

/// Loss and gradient of one row; nothing for shares of nothing but 0.
template <class T>
void compute_row(SharedRow<T>& row, T* buffer, const CrossEntropyCall& call) {
  const Index classes = row.logits.extent(0);
  double whole = 0;
  for (Index i = 0; i < classes; ++i) whole += row.share(i, call);
  if (whole == 0) return;
  const RowSum total = sum_row(Row<T>{row.logits, {}}, buffer, buffer);
  const bool empty = total.empty();
  const double log_sum = detail::log(total.sum), scale = whole / total.sum;
  const double part = 1 / call.divisor;
  if (empty) row.loss = std::numeric_limits<double>::infinity();
  for (Index i = 0; i < classes; ++i) {
    const double share = row.share(i, call);
    const double distance = static_cast<double>(row.logits(i)) - total.maximum;
    if (share != 0 && !empty) row.loss += share * (log_sum - distance);
    if (row.gradient == nullptr) continue;
    const double p = empty ? 0 : scale * static_cast<double>(buffer[i]);
    row.gradient[i] = static_cast<T>((p - share) * part);
  }
}

/// Throws InvalidArgument for a share that is no number of 0 or more.
template <class T, std::size_t Rank>
void check_shares(const TensorView<const T, Rank>& shares) {
  for_each_row(shares.extents(), [&](const Extents<Rank>& at) {
    const auto row = row_at(shares, at);
    for (Index i = 0; i < row.extent(0); ++i) {
      if (row(i) >= 0 && row(i) <= std::numeric_limits<T>::max()) continue;
      throw_invalid_argument("cross_entropy: a target gives class ", i, " the share ", row(i),
                             ", expected 0 or more");
    }
  });
}

/// compute_cross_entropy with targets of shares, of which an Eigen column has one row.
template <class Logits, class Targets, class T, std::size_t Rank>
double compute_shared_cross_entropy(const Logits& of_classes, const Targets& targets,
                                    const TensorView<T, Rank>& of_logits,
                                    const CrossEntropyOptions& options) {
  using View = TensorView<const T, Rank>;
  const auto logits = with_rows_last<Logits>(View(view_of(of_classes)));
  const auto shares = with_rows_last<Targets>(View(view_of(targets)));
  const auto gradients = with_rows_last<Logits>(of_logits);
  check_cross_entropy_call(logits, shares, options);
  check_shares(shares);
  std::vector<SharedRow<T>> rows;
  for_each_row(logits.extents(), [&](const Extents<Rank>& at) {
    T* gradient = gradients.empty() ? nullptr : row_at(gradients, at).data_handle();
    rows.push_back({row_at(logits, at), row_at(shares, at), gradient, 0});
  });
  if (logits.empty()) return 0;
  const auto count = static_cast<double>(rows.size());
  const double divisor = options.divisor > 0 ? static_cast<double>(options.divisor) : count;
  return sum_of_rows(rows, logits.extent(Rank - 1), {options.label_smoothing, divisor}) / divisor;
}

#if !HEED_DEFINITIONS
// Instantiated in heed::compiled for what most models answer: a second of a program that trains.
#define HEED_LINKED_CROSS_ENTROPY(T, rank)                                        \
  extern template double compute_cross_entropy(                                   \
      const TensorView<const T, rank>&, const TensorView<const Index, (rank)-1>&, \
      const TensorView<T, rank>&, const CrossEntropyOptions&);
HEED_LINKED_CROSS_ENTROPY(float, 2)
HEED_LINKED_CROSS_ENTROPY(float, 3)
HEED_LINKED_CROSS_ENTROPY(double, 2)
HEED_LINKED_CROSS_ENTROPY(double, 3)
#undef HEED_LINKED_CROSS_ENTROPY
#endif

}  // namespace detail

/// Cross-entropy of logits (…, classes) and class numbers `targets` (…): the mean over all targets
/// that are not `ignored`, with its gradient: `auto [loss, grad_logits] = cross_entropy(logits,
/// targets)`. Rows are summed in double, so that 200,000 classes are as accurate as ten.
///
/// Logits of ignored targets are not read and get gradients of exactly 0; if every target is
/// ignored, the loss is 0. Let y be the share of a class in its target, after smoothing, and n the
/// divisor. A logit of −inf is a class of probability 0: its gradient is −y / n, and the loss is
/// +inf where y is not 0. A row of nothing but −inf has a loss of +inf too. NaN or +inf makes the
/// loss and the gradients of its row NaN. Throws ShapeError for shapes that do not match, and
/// InvalidArgument for targets that are not a class number, a label_smoothing outside 0 to 1, and a
/// divisor below 0.
///
/// Targets may also be shares of all classes, in the extents and the type of the logits, as a
/// teacher's softmax gives them: the sum over classes of −share · log p, with its gradient (the sum
/// of the shares · p − share) / n, where n counts all rows and none is `ignored`. A row whose
/// shares are all 0 is not read, and columns of Eigen's are one row. A share below 0 or not finite
/// is an InvalidArgument.
template <Viewable Logits, Viewable Targets>
auto cross_entropy(const Logits& logits, const Targets& targets,
                   const CrossEntropyOptions& options = {}) {
  using T = ValueOf<const Logits>;
  constexpr std::size_t rank = ViewOf<const Logits>::rank();
  const TensorView<const T, rank> source = view_of(logits);
  CrossEntropy<T, rank> result{0, Tensor<T, rank>(source.extents())};
  if constexpr (detail::SharesOf<Targets, Logits>) {
    result.loss =
        detail::compute_shared_cross_entropy(logits, targets, result.grad_logits.view(), options);
  } else if constexpr (detail::expect_targets<Logits, Targets>()) {
    result.loss = detail::compute_cross_entropy<T>(source, detail::class_numbers(targets),
                                                   result.grad_logits.view(), options);
  }
  return result;
}

/// The same for targets in braces, of logits (positions, classes).
template <Viewable Logits>
requires(ViewOf<const Logits>::rank() ==
         2) auto cross_entropy(const Logits& logits, std::initializer_list<Index> targets,
                               const CrossEntropyOptions& options = {}) {
  return cross_entropy(logits, std::span(targets.begin(), targets.size()), options);
}

// Refuse targets before logits.
template <Viewable Logits, Viewable Targets>
requires detail::WholeNumbers<Logits>
auto cross_entropy(const Logits&, const Targets&, const CrossEntropyOptions& = {}) {
  static_assert(detail::never<Logits>, "the logits come first: cross_entropy(logits, targets)");
  return CrossEntropy<float, 2>();
}
template <Viewable Logits, Viewable Targets>
requires detail::WholeNumbers<Logits>
double cross_entropy_loss(const Logits&, const Targets&, const CrossEntropyOptions& = {}) {
  static_assert(detail::never<Logits>,
                "the logits come first: cross_entropy_loss(logits, targets)");
  return 0;
}

/// The loss of cross_entropy without gradients, with the same bits: for validation.
template <Viewable Logits, Viewable Targets>
double cross_entropy_loss(const Logits& logits, const Targets& targets,
                          const CrossEntropyOptions& options = {}) {
  using T = ValueOf<const Logits>;
  constexpr std::size_t rank = ViewOf<const Logits>::rank();
  const TensorView<const T, rank> source = view_of(logits);
  if constexpr (detail::SharesOf<Targets, Logits>) {
    return detail::compute_shared_cross_entropy(logits, targets, TensorView<T, rank>(), options);
  } else if constexpr (detail::expect_targets<Logits, Targets>()) {
    return detail::compute_cross_entropy<T>(source, detail::class_numbers(targets),
                                            TensorView<T, rank>(), options);
  }
  return 0;
}
template <Viewable Logits>
requires(ViewOf<const Logits>::rank() ==
         2) double cross_entropy_loss(const Logits& logits, std::initializer_list<Index> targets,
                                      const CrossEntropyOptions& options = {}) {
  return cross_entropy_loss(logits, std::span(targets.begin(), targets.size()), options);
}

}  // namespace heed
