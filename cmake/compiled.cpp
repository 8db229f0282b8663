// SPDX-License-Identifier: MIT
// The definitions behind heed::compiled, in one translation unit.
#define HEED_COMPILED_SOURCE
#include <heed/attention/forward.hpp>
#include <heed/attention/weights.hpp>
#include <heed/core/parallel.hpp>
#include <heed/simd/isa.hpp>
#include <heed/simd/kernels.hpp>
