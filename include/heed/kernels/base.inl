// SPDX-License-Identifier: MIT
#pragma once

// Vectors and the product of micro tiles of every instruction set: the base of all kernels.

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <heed/core/index.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/kernels/matrix_ref.hpp>

#define HEED_SIMD_PART 0
#include <heed/kernels/each_isa.inl>
