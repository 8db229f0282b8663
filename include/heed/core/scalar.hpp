// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>

#include <heed/core/config.hpp>

namespace heed {

/// What the kernels compute in.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double>;

/// What the readable references compute in: anything with the field operations, `long double` too.
template <class T>
concept ReferenceScalar = std::floating_point<T>;

}  // namespace heed
