// SPDX-License-Identifier: MIT
#pragma once

/// Matrix products and the kernels of rows, for programs that compile them. Public headers end with
/// this line; nothing that stands in an .inl includes such a header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/simd/layer_tables.inl>
#include <heed/tensor/detail/gemm.inl>
#endif
