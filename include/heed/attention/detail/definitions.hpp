// SPDX-License-Identifier: MIT
#pragma once

/// What <heed/attention/detail/run.hpp> declares and the kernels behind it, for programs that
/// compile them. Public headers end with this line; nothing that stands in an .inl includes such a
/// header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <heed/attention/detail/backward_schedule.inl>
#include <heed/attention/detail/schedule.inl>
#include <heed/simd/attention_tables.inl>
#endif
