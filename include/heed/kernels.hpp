// SPDX-License-Identifier: MIT
#pragma once

/// The choice of the instruction set, heed::simd. Everything else in kernels/ is for the library
/// alone.
#include <heed/kernels/isa.hpp>
