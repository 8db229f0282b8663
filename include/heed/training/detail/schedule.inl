// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/training/schedule.hpp>, which includes this file.

#include <limits>
#include <utility>
#include <vector>

#include <heed/core/detail/math.hpp>

namespace heed {

namespace detail {

HEED_INLINE double cos_pi(double x) {
  const bool mirrored = x > 0.5;
  const double y = mirrored ? 1 - x : x;  // in [0, 1/2], exact
  constexpr double pi = 3.14159265358979323846;
  double value = 0;
  if (y <= 0.25) {
    const double t = pi * y, square = product(t, t);
    constexpr double terms[] = {1.0,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200.0,
                                1.0 / 20922789888000.0};
    value = polynomial(terms, square);
  } else {
    const double t = pi * (0.5 - y), square = product(t, t);
    constexpr double terms[] = {
        1.0,          -1.0 / 6,        1.0 / 120,          -1.0 / 5040,
        1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0};
    value = product(t, polynomial(terms, square));
  }
  return mirrored ? -value : value;
}

HEED_INLINE void check_steps(const char* what, Index steps, Index least) {
  if (steps < least)
    throw_invalid_argument(what, ": ", steps, " steps, expected ", least, " or more");
}

HEED_INLINE void check_schedule(const char* what, const Schedule& schedule) {
  if (!schedule) throw_invalid_argument(what, ": a schedule without a function");
}

}  // namespace detail

namespace schedules {

HEED_INLINE double Cosine::operator()(Index step) const {
  detail::check_steps("Cosine", steps, 1);
  detail::check_steps("Cosine growth", growth, 1);
  if (least > rate) throw_invalid_argument("Cosine: least ", least, " above the rate, ", rate);
  Index length = steps;
  if (restarts && growth == 1) step %= length;
  constexpr Index longest = std::numeric_limits<Index>::max();
  while (restarts && step >= length) {
    step -= length;
    length = length > longest / growth ? longest : length * growth;
  }
  const double share = step >= length ? 1 : static_cast<double>(step) / static_cast<double>(length);
  return least + (rate - least) * (1 + detail::cos_pi(share)) / 2;
}

HEED_INLINE double Linear::operator()(Index step) const {
  detail::check_steps("Linear", steps, 1);
  if (step >= steps) return last;
  return rate + (last - rate) * (static_cast<double>(step) / static_cast<double>(steps));
}

HEED_INLINE double Steps::operator()(Index step) const {
  detail::check_steps("Steps", every, 1);
  return rate * detail::whole_power(factor, step / every);
}

HEED_INLINE Schedule warm_up(Index steps, Schedule then) {
  detail::check_steps("warm_up", steps, 0);
  detail::check_schedule("warm_up", then);
  return [steps, then = std::move(then)](Index step) {
    if (step >= steps) return then(step - steps);
    return then(0) * (static_cast<double>(step + 1) / static_cast<double>(steps + 1));
  };
}

HEED_INLINE Schedule sequence(std::vector<std::pair<Schedule, Index>> parts) {
  if (parts.empty()) throw_invalid_argument("sequence: no schedules");
  for (const auto& part : parts) {
    detail::check_schedule("sequence", part.first);
    if (&part != &parts.back()) detail::check_steps("sequence", part.second, 0);
  }
  return [parts = std::move(parts)](Index step) {
    std::size_t at = 0;
    for (; at + 1 < parts.size() && step >= parts[at].second; ++at) step -= parts[at].second;
    return parts[at].first(step);
  };
}

}  // namespace schedules

}  // namespace heed
