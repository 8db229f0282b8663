// SPDX-License-Identifier: MIT
#pragma once

/// The instruction-set kernels and the choice among them.
#include <heed/simd/backward_kernels.hpp>
#include <heed/simd/bfloat16_kernels.hpp>
#include <heed/simd/decode_kernels.hpp>
#include <heed/simd/dropout_kernels.hpp>
#include <heed/simd/head_gradient_kernels.hpp>
#include <heed/simd/head_run_kernels.hpp>
#include <heed/simd/isa.hpp>
#include <heed/simd/kernels.hpp>
#include <heed/simd/norm_kernels.hpp>
#include <heed/simd/pair_kernels.hpp>
#include <heed/simd/product_kernels.hpp>
#include <heed/simd/product_tile.hpp>
#include <heed/simd/quantized_panel.hpp>
#include <heed/simd/rounded_kernels.hpp>
#include <heed/simd/row_kernels.hpp>
#include <heed/simd/strided.hpp>
#include <heed/simd/training_kernels.hpp>
