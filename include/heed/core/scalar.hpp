// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>

#include <heed/core/config.hpp>

namespace heed {

/// The types that the kernels compute in.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double>;

/// The types that the reference implementations compute in: any floating-point type, `long double`
/// too.
template <class T>
concept ReferenceScalar = std::floating_point<T>;

}  // namespace heed
