// SPDX-License-Identifier: MIT
#pragma once

/// Matrix products and the kernels of rows, for programs that compile them. Public headers end with
/// this line; nothing that stands in an .inl includes such a header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/simd/layer_tables.inl>
#include <heed/tensor/detail/matrix_product.inl>
#include <heed/tensor/detail/product_list.inl>
#include <heed/tensor/detail/product_tile.inl>
#include <heed/tensor/detail/rounded_product.inl>
#endif
