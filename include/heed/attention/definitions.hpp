// SPDX-License-Identifier: MIT
#pragma once

/// What <heed/attention/run.hpp> declares and the kernels behind it, for programs that compile
/// them. Public headers end with this line; nothing that stands in an .inl includes such a header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/attention/backward.inl>
#include <heed/attention/bfloat16_call.inl>
#include <heed/attention/decode.inl>
#include <heed/attention/forward.inl>
#include <heed/attention/run_backward.inl>
#include <heed/simd/attention_tables.inl>
#include <heed/simd/backward_tables.inl>
#include <heed/simd/bfloat16_tables.inl>
#endif
