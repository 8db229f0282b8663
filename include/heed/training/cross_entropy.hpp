// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <limits>
#include <type_traits>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/log.hpp>
#include <heed/core/parallel.hpp>
#include <heed/tensor/rows.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Options of cross_entropy.
struct CrossEntropyOptions {
  /// A target that takes no part: padding.
  Index ignored = -100;
  /// How much of the target is spread evenly over all classes, 0 to 1. Szegedy et al. 2016.
  double label_smoothing = 0;
  /// What the sum over targets is divided by; 0: how many are kept. For batches computed in parts.
  Index divisor = 0;
};

/// A loss and what it asks of the logits.
template <Scalar T, std::size_t Rank>
struct CrossEntropy {
  double loss = 0;
  Tensor<T, Rank> grad_logits;
};

namespace detail {

template <class Targets, std::size_t Rank>
concept TargetsOf = Viewable<const Targets> && std::integral<ValueOf<const Targets>> &&
    (ViewOf<const Targets>::rank() + 1 == Rank);

/// Refuses what cannot be computed; how many targets are kept.
template <class Logits, class Targets>
Index check_cross_entropy(const Logits& logits, const Targets& targets,
                          const CrossEntropyOptions& options) {
  constexpr std::size_t last = Logits::rank() - 1;
  for (std::size_t axis = 0; axis < last; ++axis) {
    if (logits.extent(axis) == targets.extent(axis)) continue;
    throw_shape_error("cross_entropy: logits are ", logits.extents(), ", targets ",
                      targets.extents());
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw_shape_error("cross_entropy: label_smoothing ", options.label_smoothing,
                      ", expected 0 to 1");
  }
  if (options.divisor < 0) throw_shape_error("cross_entropy: divisor ", options.divisor);
  const Index classes = logits.extent(last);
  Index kept = 0, at = 0;
  for_each_row(targets.extents(), [&](const auto& row) {
    const auto values = row_at(targets, row);
    for (Index i = 0; i < values.extent(0); ++i, ++at) {
      const auto target = static_cast<Index>(values(i));
      if (target == options.ignored) continue;
      if (target < 0 || target >= classes) {
        throw_shape_error("cross_entropy: target ", target, " at ", at, " of ", targets.extents(),
                          "; there are ", classes, " classes, and ", options.ignored,
                          " is ignored");
      }
      ++kept;
    }
  });
  return kept;
}

/// −Σ y log p of one row, y being `target` smoothed. Powers exp(x − max) are left in `powers`,
/// where it is not empty.
template <class T>
double row_cross_entropy(const Row<T>& row, Index target, double smoothing,
                         const TensorView<T, 1>& powers, RowSum& total) {
  const bool keep = !powers.empty();
  total = sum_row(row, [&](Index i, double power) {
    if (keep) powers(i) = static_cast<T>(power);
  });
  if (total.broken()) return total.sum;
  if (total.empty()) return std::numeric_limits<double>::infinity();
  const double log_sum = detail::log(total.sum);
  const double aim = log_sum - row.shifted(target, total.maximum);
  if (smoothing == 0) return aim;
  double shifted = 0;
  for (Index i = 0; i < row.values.extent(0); ++i) shifted += row.shifted(i, total.maximum);
  const double even = log_sum - shifted / static_cast<double>(row.values.extent(0));
  return smoothing == 1 ? even : (1 - smoothing) * aim + smoothing * even;
}

/// Turns powers into (p − y) / divisor.
template <class T>
void finish_gradient(const TensorView<T, 1>& gradient, const RowSum& total, Index target,
                     double smoothing, double divisor) {
  const Index classes = gradient.extent(0);
  const double even = smoothing / static_cast<double>(classes);
  for (Index i = 0; i < classes; ++i) {
    const double share = total.broken()  ? total.sum
                         : total.empty() ? 0
                                         : static_cast<double>(gradient(i)) / total.sum;
    const double aim = even + (i == target ? 1 - smoothing : 0);
    gradient(i) = static_cast<T>((share - aim) / divisor);
  }
}

/// The loss; gradients too where `gradients` is not empty, which is zero at first.
template <class T, class Logits, class Targets, std::size_t Rank>
double compute_cross_entropy(const Logits& logits, const Targets& targets,
                             const TensorView<T, Rank>& gradients,
                             const CrossEntropyOptions& options) {
  const Index kept = check_cross_entropy(logits, targets, options);
  if (kept == 0) return 0;
  const auto divisor = static_cast<double>(options.divisor > 0 ? options.divisor : kept);
  struct Job {
    Row<T> row;
    TensorView<T, 1> gradient;
    Index target;
    double loss;
  };
  std::vector<Job> jobs;
  jobs.reserve(static_cast<std::size_t>(kept));
  for_each_row(logits.extents(), [&](const Extents<Rank>& at) {
    Index offset = 0;
    for (std::size_t axis = 0; axis + 1 < Rank; ++axis) offset += at[axis] * targets.stride(axis);
    const auto target = static_cast<Index>(targets.data_handle()[offset]);
    if (target == options.ignored) return;
    const auto gradient = gradients.empty() ? TensorView<T, 1>() : row_at(gradients, at);
    jobs.push_back({{row_at(logits, at), {}, false, 1}, gradient, target, 0});
  });
  constexpr Index rows_a_task = 16;
  const auto count = static_cast<Index>(jobs.size());
  parallel_for((count + rows_a_task - 1) / rows_a_task, [&](Index task) {
    for (Index i = task * rows_a_task; i < std::min(count, (task + 1) * rows_a_task); ++i) {
      Job& job = jobs[static_cast<std::size_t>(i)];
      RowSum total;
      job.loss =
          row_cross_entropy(job.row, job.target, options.label_smoothing, job.gradient, total);
      if (job.gradient.empty()) continue;
      finish_gradient(job.gradient, total, job.target, options.label_smoothing, divisor);
    }
  });
  double sum = 0;
  for (const Job& job : jobs) sum += job.loss;  // in order, whoever computed them
  return sum / divisor;
}

}  // namespace detail

/// Cross-entropy of logits (…, classes) and class numbers `targets` (…), the mean over targets that
/// are not `ignored`, with its gradient: `auto [loss, grad_logits] = cross_entropy(logits,
/// targets)`. Rows are summed in double, so that 200,000 classes are as accurate as ten.
///
/// Logits of ignored targets are not looked at and get gradients of exactly 0; with nothing kept
/// the loss is 0. A logit of −inf is a class of probability 0: its gradient is −y / n, and the loss
/// is +inf where y is not 0, as it is for a row of nothing but −inf. NaN or +inf makes the loss NaN
/// and the gradients of its row. Throws ShapeError for shapes that do not fit and for targets that
/// are no class.
template <Viewable Logits, detail::TargetsOf<ViewOf<const Logits>::rank()> Targets>
auto cross_entropy(const Logits& logits, const Targets& targets,
                   const CrossEntropyOptions& options = {}) {
  using T = ValueOf<const Logits>;
  constexpr std::size_t rank = ViewOf<const Logits>::rank();
  const TensorView<const T, rank> source = view_of(logits);
  CrossEntropy<T, rank> result{0, Tensor<T, rank>(source.extents())};
  result.loss = detail::compute_cross_entropy<T>(source, view_of(targets),
                                                 result.grad_logits.view(), options);
  return result;
}

/// The loss of cross_entropy alone, the same bits: validation.
template <Viewable Logits, detail::TargetsOf<ViewOf<const Logits>::rank()> Targets>
double cross_entropy_loss(const Logits& logits, const Targets& targets,
                          const CrossEntropyOptions& options = {}) {
  using T = ValueOf<const Logits>;
  constexpr std::size_t rank = ViewOf<const Logits>::rank();
  const TensorView<const T, rank> source = view_of(logits);
  return detail::compute_cross_entropy<T>(source, view_of(targets), TensorView<T, rank>(), options);
}

}  // namespace heed
