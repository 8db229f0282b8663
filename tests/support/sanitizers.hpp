// SPDX-License-Identifier: MIT
#pragma once

namespace heed::test {

/// Whether a sanitizer runs along, which takes address space and time of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// The thread sanitizer is slow, and what threads do does not depend on the instruction set.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool threads_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool threads_sanitized = true;
#else
inline constexpr bool threads_sanitized = false;
#endif
#else
inline constexpr bool threads_sanitized = false;
#endif

}  // namespace heed::test
