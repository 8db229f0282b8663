// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include <heed/core/config.hpp>

namespace heed::simd {

/// Instruction sets the kernels exist in, slowest first. Results are the same bits for any batch,
/// tiling and thread count within one set; sets differ among each other in the last bits.
enum class Isa { scalar, neon, sse2, avx2, avx512, avx512_bf16 };

/// The name as HEED_ISA takes it: "scalar", "neon", "sse2", "avx2", "avx512",
/// "avx512_bf16": the same as avx512, with the products of bfloat16 and integer pairs.
std::string_view name(Isa isa);

/// Whether this machine, and this build, can run the set. Header-only programs on x86 and AArch64
/// leave `scalar` out, which is there for checking; heed::compiled has it.
bool supported(Isa isa);

/// The set in use: the best supported one, or what the environment variable HEED_ISA names, or what
/// `use` chose last. A name in HEED_ISA that is unknown or not supported is an error on first use.
Isa active();

/// Chooses the set for all later calls in this process, for tests and comparisons. Throws
/// std::invalid_argument when the machine cannot run it. Not to be called beside running kernels.
void use(Isa isa);

}  // namespace heed::simd

#if HEED_DEFINITIONS
#include <heed/simd/dispatch.inl>
#endif
