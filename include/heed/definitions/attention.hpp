// SPDX-License-Identifier: MIT
#pragma once

/// Definitions of the functions declared in <heed/attention/detail/call.hpp>, and of their kernels,
/// for programs that compile them. Public headers include this, or a header that does; no .inl file
/// may include such a header.
#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
HEED_DRIVERS_BEGIN
#include <heed/attention/detail/backward_schedule.inl>
#include <heed/attention/detail/schedule.inl>
HEED_DRIVERS_END
#if !defined(HEED_COMPILED)  // which has units for the kernels
#include <heed/kernels/attention_tables.inl>
#endif
#endif
