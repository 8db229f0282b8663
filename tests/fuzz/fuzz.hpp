// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

/// What libFuzzer calls with every input, and replay.cpp with every file of the corpus.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace heed::fuzz {

/// Stops the program, for the fuzzer to see, when a promise is broken.
inline void require(bool promise) {
  if (!promise) __builtin_trap();
}

/// The input where a sanitizer sees every step beyond its end.
inline std::vector<std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  return {bytes.begin(), bytes.end()};
}

}  // namespace heed::fuzz
