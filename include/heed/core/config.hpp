// SPDX-License-Identifier: MIT
#pragma once

/// Build-wide switches. A program sets none of them to use heed; see docs/architecture.md.
///
/// HEED_COMPILED       defined by the target heed::compiled: definitions are linked, not included.
/// HEED_ALLOW_FAST_MATH  accept -ffast-math, under which NaN, infinity and bit promises do not
/// hold.
/// HEED_CHECKED        check internal invariants (HEED_EXPECTS) although NDEBUG is defined.

#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0
/// "0.1.0".
#define HEED_VERSION HEED_VERSION_OF(HEED_VERSION_MAJOR, HEED_VERSION_MINOR, HEED_VERSION_PATCH)
#define HEED_VERSION_OF(major, minor, patch) HEED_VERSION_TEXT(major, minor, patch)
#define HEED_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#error "heed needs g++ 12 or newer, or clang 14"
#include <g++ 12>  // which no folder holds: the compiler stops here, and the error above stays alone
#elif defined(__clang_major__) && !defined(__apple_build_version__) && __clang_major__ < 14
#error "heed needs clang 14 or newer, or g++ 12"
#include <clang 14>
#elif __cplusplus < 202002L
#error "heed needs C++20: compile with -std=c++20"
#include <C++20>
#endif

#if (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) ||  \
     (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)) && \
    !defined(HEED_ALLOW_FAST_MATH)
#error \
    "heed: -ffast-math (or -ffinite-math-only, -funsafe-math-optimizations) breaks masked rows, NaN and the bit-exactness promises; define HEED_ALLOW_FAST_MATH to accept that"
#endif

#ifdef HEED_COMPILED
#define HEED_INLINE
#else
#define HEED_INLINE inline
#endif

/// True if this translation unit needs the definitions (`*.inl`).
#if !defined(HEED_COMPILED) || defined(HEED_COMPILED_SOURCE)
#define HEED_DEFINITIONS 1
#else
#define HEED_DEFINITIONS 0
#endif

/// What heed::compiled has of a class template, and of a layer with the walk through its
/// parameters: the code for float and double. NOLINTBEGIN(bugprone-macro-parentheses)
#define HEED_CODE_OF_TEMPLATE(prefix, kind, name) \
  prefix template kind name<float>;               \
  prefix template kind name<double>;
#define HEED_CODE_OF_LAYER(prefix, name)                                                  \
  HEED_CODE_OF_TEMPLATE(prefix, struct, name)                                             \
  prefix template void detail::walk_parameters<name<float>>(detail::ParameterWalk&,       \
                                                            const detail::PartOfModels&); \
  prefix template void detail::walk_parameters<name<double>>(detail::ParameterWalk&,      \
                                                             const detail::PartOfModels&);
// NOLINTEND(bugprone-macro-parentheses)
/// Declares such a template: units that link heed::compiled do not compile theirs, except functions
/// defined within the class, which are inline; so the long ones are defined outside.
#if defined(HEED_COMPILED)
#define HEED_LINKED_TEMPLATE(kind, name) HEED_CODE_OF_TEMPLATE(extern, kind, name)
#define HEED_LINKED_LAYER(name) HEED_CODE_OF_LAYER(extern, name)
#else
#define HEED_LINKED_TEMPLATE(kind, name)
#define HEED_LINKED_LAYER(name)
#endif

// The containers of _GLIBCXX_DEBUG have other sizes. This is part of the names of functions that
// every program calls, so units do not link with a heed::compiled that has the others.
#if defined(_GLIBCXX_DEBUG)
#define HEED_CONTAINERS with_glibcxx_debug
#else
#define HEED_CONTAINERS without_glibcxx_debug
#endif

// The scalar set is for machines without another one, and for checking the others: heed::compiled
// has it everywhere, header-only units on x86 and AArch64 are spared its compile time.
#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(HEED_COMPILED)
#define HEED_SIMD_HAS_SCALAR 1
#else
#define HEED_SIMD_HAS_SCALAR 0
#endif

// Some kernels that are for speed alone, such as the backward pass of short sequences, take seconds
// to compile: heed::compiled has them, header-only units compute the same bits without.
#if defined(HEED_COMPILED)
#define HEED_SIMD_ALL_KERNELS 1
#else
#define HEED_SIMD_ALL_KERNELS 0
#endif

// So do kernels on tiles, which Linux alone grants: in heed::compiled they are sets of their own.
#if HEED_SIMD_ALL_KERNELS && defined(__x86_64__) && defined(__linux__)
#define HEED_SIMD_HAS_TILES 1
#else
#define HEED_SIMD_HAS_TILES 0
#endif

// Passes of g++ that bring code of long vectors nothing, and code that runs once a call too little:
// header-only programs do without them, which saves a tenth of their compile time. What has them
// off is not inlined where they are on, so they stay on for views and other small functions.
#if defined(__GNUC__) && !defined(__clang__) && !HEED_SIMD_ALL_KERNELS
// clang-format off
#define HEED_FEWER_PASSES                                                                          \
  _Pragma("GCC optimize(\"no-thread-jumps\", \"no-tree-vrp\", \"no-gcse\", \"no-tree-pre\")")      \
  _Pragma("GCC optimize(\"no-tree-dominator-opts\", \"no-schedule-insns2\", \"no-tree-pta\")")     \
  _Pragma("GCC optimize(\"no-tree-slp-vectorize\", \"no-tree-loop-vectorize\", \"no-ree\")")       \
  _Pragma("GCC optimize(\"no-cse-follow-jumps\", \"no-rerun-cse-after-loop\")")                    \
  _Pragma("GCC optimize(\"no-peephole2\", \"no-reorder-blocks\", \"no-cprop-registers\")")         \
  _Pragma("GCC optimize(\"no-if-conversion\", \"no-if-conversion2\", \"no-crossjumping\")")        \
  _Pragma("GCC optimize(\"no-split-wide-types\", \"no-tree-switch-conversion\")")                  \
  _Pragma("GCC optimize(\"no-code-hoisting\", \"no-optimize-strlen\", \"no-store-merging\")")      \
  _Pragma("GCC optimize(\"no-forward-propagate\", \"no-partial-inlining\", \"no-ipa-vrp\")")       \
  _Pragma("GCC optimize(\"no-ipa-cp\", \"no-ipa-icf\", \"no-ipa-sra\", \"no-ipa-ra\")")            \
  _Pragma("GCC optimize(\"no-ipa-modref\", \"no-ipa-pure-const\")")
// clang-format on
#define HEED_DRIVERS_BEGIN _Pragma("GCC push_options") HEED_FEWER_PASSES
#define HEED_DRIVERS_END _Pragma("GCC pop_options")
#else
#define HEED_FEWER_PASSES
#define HEED_DRIVERS_BEGIN
#define HEED_DRIVERS_END
#endif

// clang has no way to optimize some functions of a unit that it is told not to optimize.
#if defined(__clang__) && !defined(__OPTIMIZE__) && !defined(HEED_COMPILED)
#pragma message( \
    "heed: without optimization clang makes kernels some forty times slower; add -O1 or more, or link heed::compiled, which is always optimized")
#endif

/// Checks an internal invariant, with HEED_CHECKED or without NDEBUG; free otherwise.
#if defined(HEED_CHECKED) || !defined(NDEBUG)
#include <cstdio>

#define HEED_EXPECTS(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::heed::detail::broken_invariant(#condition, __FILE__, __LINE__))

namespace heed::detail {
/// Prints a broken invariant and its place, and stops the program there for a debugger or
/// sanitizer.
[[noreturn]] __attribute__((cold, noinline)) inline void broken_invariant(const char* condition,
                                                                          const char* file,
                                                                          int line) {
  std::fprintf(stderr, "%s:%d: heed expects %s\n", file, line, condition);
  __builtin_trap();
}
}  // namespace heed::detail
#else
#define HEED_EXPECTS(condition) static_cast<void>(0)
#endif
