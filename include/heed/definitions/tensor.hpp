// SPDX-License-Identifier: MIT
#pragma once

/// Definitions of matrix products and row kernels, for programs that compile them. Public headers
/// include this, or a header that does; no .inl file may include such a header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/tensor/detail/gemm.inl>
#if !defined(HEED_COMPILED)  // which has units for the kernels
#include <heed/kernels/layer_tables.inl>
#endif
#endif
