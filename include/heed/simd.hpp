// SPDX-License-Identifier: MIT
#pragma once

/// The choice among instruction sets. What else stands in simd/ is kernels, for the library alone.
#include <heed/simd/isa.hpp>
