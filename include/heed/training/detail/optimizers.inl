// SPDX-License-Identifier: MIT
#pragma once

// Definitions of <heed/training/optimizers.hpp>, which includes this file.

#include <algorithm>

namespace heed::detail {

HEED_INLINE void for_each_stretch(Index count, FunctionRef<void(Index, Index, Index)> body) {
  constexpr Index stretch = stretch_numbers;
  const auto one = [&](Index at) { body(at, at * stretch, std::min(count, (at + 1) * stretch)); };
  const Index stretches = parts_of(count, stretch);
  if (stretches == 1) {
    one(0);
  } else if (stretches > 1) {
    parallel_for(stretches, one);
  }
}

HEED_INLINE void check_setting(const char* caller, const char* name, double value, double least,
                               double most) {
  if (value >= least && value < most) return;
  throw_invalid_argument(caller, ": ", name, " ", value, ", expected ", least, " or more",
                         most < 2 ? " and below 1" : "");
}

}  // namespace heed::detail
