// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/training/gradient_check.hpp>, which includes this file.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace heed {

HEED_INLINE GradientCheckReport gradient_check(std::span<const CheckedGradient> tensors,
                                               FunctionRef<double()> loss,
                                               const GradientCheckOptions& options) {
  GradientCheckReport report;
  double squares = 0, largest = -1;
  for (const CheckedGradient& tensor : tensors) {
    if (tensor.values.size() != tensor.gradient.size()) {
      throw_shape_error("gradient_check: ", tensor.name, " has ", tensor.values.size(),
                        " values and a gradient of ", tensor.gradient.size());
    }
    const auto count = static_cast<Index>(tensor.values.size());
    const Index tried = options.most > 0 ? std::min(options.most, count) : count;
    for (Index i = 0; i < tried; ++i) {
      const auto at = static_cast<std::size_t>(i * count / tried);
      double& value = tensor.values[at];
      const double kept = value, h = options.step;
      const auto moved = [&](double by) {
        value = kept + by;
        return loss();
      };
      const double outer = moved(2 * h) - moved(-2 * h), inner = moved(h) - moved(-h);
      value = kept;
      const double measured = (8 * inner - outer) / (12 * h);
      const double difference = std::fabs(tensor.gradient[at] - measured);
      squares += measured * measured;
      ++report.checked;
      if (difference <= largest || largest != largest) continue;
      largest = difference;
      report.name = tensor.name;
      report.element = static_cast<Index>(at);
      report.claimed = tensor.gradient[at];
      report.measured = measured;
    }
  }
  report.norm = std::sqrt(squares);
  if (report.checked > 0) report.worst = report.norm == 0 ? largest : largest / report.norm;
  return report;
}

}  // namespace heed
