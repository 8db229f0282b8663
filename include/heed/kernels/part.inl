// SPDX-License-Identifier: MIT
// One part of the kernels of one instruction set. Included by each_isa.inl, inside a region that
// targets the set, with
//   HEED_SIMD_PART       which part: 0 base, 1 forward, 2 backward, 3 layers, 4 bfloat16
//   HEED_SIMD_NAMESPACE  the set's namespace
//   HEED_SIMD_BYTES      bytes in a vector; 0: no vectors
//   HEED_SIMD_VECTORS    vectors in a strip of lanes
// Nothing in here may call a function from outside: it would be compiled for another set.

namespace HEED_SIMD_NAMESPACE {

#if HEED_SIMD_PART == 0
#include <heed/kernels/lanes.inl>
// The micro tile: 6 rows by HEED_SIMD_VECTORS vectors of sums stay in registers. The sse2 set has
// to emulate a fused multiply-add and waits for that, not for loads: 2 rows suffice, and compile
// faster. So they do for the scalar set of machines that have a faster one.
#if HEED_SIMD_BYTES <= 16 && (defined(__x86_64__) || (HEED_SIMD_BYTES == 0 && defined(__aarch64__)))
inline constexpr int micro_tile_rows = 2;
#else
inline constexpr int micro_tile_rows = 6;
#endif
// Rows of a micro tile of `Vectors` vectors. One vector alone takes more rows: its sums must
// outnumber the multiply-adds that are under way at a time.
template <int Vectors>
inline constexpr int rows_of{Vectors == 1 && HEED_SIMD_VECTORS == 4 ? 8 : micro_tile_rows};
// Rows of the micro tile for what is left. With two vectors, four rows have the eight sums that a
// core works on at a time; with four vectors two have, but wait for loads: four rows take 0.98 to
// 0.99 of the time. To save compile time, header-only programs do without those.
inline constexpr int fewer_rows{
    micro_tile_rows == 6 && (HEED_SIMD_VECTORS == 2 || HEED_SIMD_ALL_KERNELS) ? 4 : 2};
#include <heed/kernels/micro_tile.inl>
template <class S>
inline constexpr int strip_stride{HEED_SIMD_VECTORS * S::width};
// The fewest vectors that kernels take at a time: single ones where four lie side by side.
inline constexpr int fewest_vectors{HEED_SIMD_VECTORS == 4 ? 1 : HEED_SIMD_VECTORS};
#if HEED_SIMD_BYTES == 64 && HEED_SIMD_HAS_TILES
#include <heed/kernels/amx.inl>
#endif
#elif HEED_SIMD_PART == 1
#include <heed/kernels/online_softmax.inl>
// After attend_strip of online_softmax.inl.
#include <heed/kernels/attend_queries.inl>
#if HEED_SIMD_BYTES == 32
#include <heed/kernels/decode_halves.inl>
#endif
// After the Table of attend_queries.inl.
#include <heed/kernels/attend_keys.inl>
#include <heed/kernels/short_forward.inl>
#elif HEED_SIMD_PART == 2
#include <heed/kernels/backward.inl>
#if HEED_SIMD_ALL_KERNELS
#include <heed/kernels/short_backward.inl>
#endif
#elif HEED_SIMD_PART == 3
#include <heed/kernels/gemm.inl>
// After gemm.inl.
#include <heed/kernels/gemm_quantized.inl>
// After gemm_quantized.inl.
#include <heed/kernels/gemm_bfloat16.inl>
#include <heed/kernels/gemm_int16.inl>
#if HEED_SIMD_BYTES == 64 && HEED_SIMD_HAS_TILES
// After amx.inl, of part 0, gemm_bfloat16.inl and gemm_int16.inl.
#include <heed/kernels/amx_product.inl>
#endif
// After gemm.inl.
#include <heed/kernels/rows.inl>
#elif HEED_SIMD_PART == 4
#include <heed/kernels/bfloat16.inl>
#if HEED_SIMD_BYTES == 64
#include <heed/kernels/pairs.inl>
// After pairs.inl.
#include <heed/kernels/pair_decode.inl>
#if HEED_SIMD_HAS_TILES
// After amx.inl, of part 0, and pair_decode.inl.
#include <heed/kernels/amx_decode.inl>
// After amx_decode.inl.
#include <heed/kernels/amx_attention.inl>
#endif
// After pairs.inl.
#include <heed/kernels/pair_backward.inl>
#endif
#endif

}  // namespace HEED_SIMD_NAMESPACE

#undef HEED_SIMD_NAMESPACE
#undef HEED_SIMD_BYTES
#undef HEED_SIMD_VECTORS
