// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include <heed/core/config.hpp>

#if HEED_DEFINITIONS
#include <cstdlib>
#include <string>

#include <heed/core/error.hpp>
#if HEED_SIMD_HAS_TILES
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace heed::simd {

/// The instruction sets that the kernels are compiled for, slowest first but for `amx_twin`. Within
/// one set, results have the same bits for any batch, tiling and thread count; different sets
/// differ in the last bits. `amx_twin` has the bits of `amx` on any machine with avx512, and is for
/// checking: its products on tiles are a hundred times slower.
enum class Isa { scalar, neon, sse2, avx2, avx512, avx512_bf16, amx, amx_twin };

/// The name in HEED_ISA, as spelled above: "scalar", …, "avx512_bf16" and "amx", which are avx512
/// with products of bfloat16 pairs and of bfloat16 tiles, and "amx_twin".
std::string_view name(Isa isa);

/// Whether this machine and this build can run the set. Header-only programs leave out `amx` and
/// `amx_twin` and, on x86 and AArch64, `scalar`, which is for checking; heed::compiled has them.
/// Asking for `amx` asks the operating system, once, to let this process use tiles: larger frames
/// of signal handlers are the price, and a refusal means no. Linux refuses if a thread has a stack
/// for signal handlers (sigaltstack) that such a frame does not fit on.
bool supported(Isa isa);

/// The set in use: the one that `use` chose last, else the one that the environment variable
/// HEED_ISA names, else the best supported one, which on processors of Intel is not avx512_bf16:
/// they multiply pairs more slowly than floats. An unknown or unsupported name in HEED_ISA is an
/// InvalidArgument on first use.
Isa active();

/// Chooses the set for all later calls in this process, for tests and comparisons. Throws
/// InvalidArgument if the machine cannot run it. Must not be called while kernels run.
void use(Isa isa);

namespace detail {

/// What `active` begins with: of the sets that `can_run` accepts, the one that `wanted`, the value
/// of HEED_ISA, names; if that is null, the best.
Isa choose(const char* wanted, bool (*can_run)(Isa));

/// What `use` does with a set that can run; for tests that emulate what the processor lacks.
void set_active(Isa isa);

/// Whether what is read from memory once, keys and values while decoding and weights of 16 bits, is
/// prefetched into the first-level cache instead of the second. On AMD's Zen 5 decoding then takes
/// 0.60 to 0.96 of the time; the first level of Zen 4 has too few slots for pending lines (14 of 24
/// GB/s). Zen 5 is known by instructions that Zen 4 lacks.
inline bool prefetches_near() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512vp2intersect");
#else
  return false;
#endif
}

/// Whether the first-level cache holds twelve lines whose addresses differ by multiples of 4 KiB,
/// as those of Intel's processors with AVX-512 do from Ice Lake on. Others hold eight.
inline bool holds_twelve_lines() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512vbmi2");
#else
  return false;
#endif
}

/// Whether the processor is one of Intel's, whose third-level cache is far: 130 ns on an Emerald
/// Rapids. Decoding then prefetches what it reads next into the first-level cache and, only if the
/// call exceeds the caches, what it reads later into the second. A prefetch into the second level
/// of what is there costs a load's slot and brings nothing: within caches an Emerald Rapids takes
/// 0.83 to 0.87 of the time with the first alone, from memory 0.86 to 0.93 with both. So does a row
/// by weights of floats that exceed the second level, and blocks of queries announce rows earlier.
inline bool prefetches_soon() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

}  // namespace detail

}  // namespace heed::simd

#if HEED_DEFINITIONS
// Defined in one unit of heed::compiled, inline everywhere else.
// NOLINTBEGIN(misc-definitions-in-headers)

// The choice among the instruction sets of this architecture at run time.

namespace heed::simd {

HEED_INLINE std::string_view name(Isa isa) {
  constexpr std::string_view names[] = {"scalar", "neon",        "sse2", "avx2",
                                        "avx512", "avx512_bf16", "amx",  "amx_twin"};
  return names[static_cast<int>(isa)];
}

#if HEED_SIMD_HAS_TILES
namespace detail {

/// Whether the processor multiplies tiles of bfloat16 and of bytes, and the system lets this
/// process use them.
inline bool tiles_granted() {
  unsigned a = 0, b = 0, c = 0, features = 0;
  constexpr unsigned wanted = 1u << 22 | 1u << 24 | 1u << 25;  // amx_bf16, amx_tile, amx_int8
  if (__get_cpuid_count(7, 0, &a, &b, &c, &features) == 0) return false;
  if ((features & wanted) != wanted) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // of arch_prctl(2)
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace detail
#endif

HEED_INLINE bool supported(Isa isa) {
  if (isa == Isa::scalar) return HEED_SIMD_HAS_SCALAR == 1;
#if defined(__aarch64__)
  return isa == Isa::neon;
#elif defined(__x86_64__)
  __builtin_cpu_init();  // libgcc's own call may come later: static objects may compute before it
  switch (isa) {
    case Isa::sse2:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case Isa::avx512_bf16:
      return supported(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
#if HEED_SIMD_HAS_TILES
    case Isa::amx: {
      static const bool granted = supported(Isa::avx512_bf16) && detail::tiles_granted();
      return granted;
    }
    case Isa::amx_twin:
      return supported(Isa::avx512);
#endif
    default:
      break;
  }
#endif
  return false;
}

namespace detail {

/// Whether the processor multiplies pairs of bfloat16 faster than floats. AMD's do it at twice the
/// rate (Zen 4), Intel's at half of it (Sapphire Rapids, where tiles are the fast way).
inline bool pairs_pay() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return !__builtin_cpu_is("intel");
#else
  return true;
#endif
}

HEED_INLINE Isa choose(const char* wanted, bool (*can_run)(Isa)) {
  if (wanted != nullptr && *wanted == '\0') wanted = nullptr;
  constexpr Isa fastest_first[] = {Isa::amx,  Isa::avx512_bf16, Isa::avx512, Isa::avx2,
                                   Isa::sse2, Isa::neon,        Isa::scalar, Isa::amx_twin};
  for (const Isa isa : fastest_first) {
    const bool fits = wanted ? name(isa) == wanted : isa != Isa::avx512_bf16 || pairs_pay();
    if (fits && can_run(isa)) return isa;
  }
  std::string possible;
  for (const Isa isa : fastest_first) {
    if (can_run(isa)) possible.append(possible.empty() ? "" : ", ").append(name(isa));
  }
  throw_invalid_argument("HEED_ISA=", wanted ? wanted : "", ": expected one of ", possible);
}

/// The choice of this process; the only state of kernels/.
inline Isa& chosen() {
  static Isa isa = choose(std::getenv("HEED_ISA"), supported);
  return isa;
}

}  // namespace detail

HEED_INLINE void detail::set_active(Isa isa) { detail::chosen() = isa; }

HEED_INLINE Isa active() { return detail::chosen(); }

HEED_INLINE void use(Isa isa) {
  if (!supported(isa)) {
    throw_invalid_argument("simd::use: this machine cannot run ", name(isa));
  }
  detail::set_active(isa);
}

}  // namespace heed::simd
// NOLINTEND(misc-definitions-in-headers)
#endif  // HEED_DEFINITIONS
