// SPDX-License-Identifier: MIT
#pragma once

/// What <heed/attention/detail/run.hpp> declares and the kernels behind it, for programs that
/// compile them. Public headers end with this line; nothing that stands in an .inl includes such a
/// header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/attention/detail/backward.inl>
#include <heed/attention/detail/decode.inl>
#include <heed/attention/detail/forward.inl>
#include <heed/attention/detail/run_backward.inl>
#include <heed/simd/attention_tables.inl>
#include <heed/simd/backward_tables.inl>
#include <heed/simd/bfloat16_tables.inl>
#endif
