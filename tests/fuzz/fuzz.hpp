// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <heed/io/file.hpp>

#include "support/mutation.hpp"

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

/// "x: byte N: …" with a byte of the file, on one line and not long, whatever stands in the file.
inline bool names_a_byte(std::string_view said, std::size_t size) {
  constexpr std::string_view start = "x: byte ";
  if (!said.starts_with(start) || said.size() > 600) return false;
  std::size_t at = start.size(), byte = 0;
  for (; said[at] >= '0' && said[at] <= '9'; ++at) {
    byte = 10 * byte + static_cast<std::size_t>(said[at] - '0');
  }
  return at > start.size() && said[at] == ':' && byte <= size &&
         std::all_of(said.begin(), said.end(),
                     [](char letter) { return letter < 0 || letter >= ' '; });
}

/// The file that the input is, as a `File`; none if it is refused, which must name a byte.
template <class File>
std::optional<File> opened(const std::uint8_t* data, std::size_t size) {
  try {
    return File(SharedBytes(bytes_of(data, size)), "x");
  } catch (const FileError& error) {
    require(names_a_byte(error.what(), size));
  }
  return {};
}

/// Changes a piece of a file that `Pieces` takes apart, so that what comes out is well formed far
/// enough to be read deep; what heed does not read is changed as fuzzers do.
template <class Pieces, class Mutate>
std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed,
                   const Mutate& plain) {
  test::Mutation mutation(seed, plain);
  if (mutation.pick(8) == 0) return plain(data, size, room);
  try {
    Pieces pieces(std::string(data, data + size));
    for (std::size_t left = 1 + mutation.pick(3); left > 0; --left) pieces.change(mutation);
    const std::string file = pieces.file();
    if (file.size() <= room) return file.copy(reinterpret_cast<char*>(data), room);
  } catch (const FileError&) {
  }
  return plain(data, size, room);
}

}  // namespace heed::fuzz

/// Tells libFuzzer how to change its inputs.
#ifdef HEED_FUZZ
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);
#define HEED_FUZZ_PIECES(Pieces)                                                       \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, \
                                                 std::size_t room, unsigned seed) {    \
    return heed::fuzz::mutate<Pieces>(data, size, room, seed, LLVMFuzzerMutate);       \
  }
#else
#define HEED_FUZZ_PIECES(Pieces) static_assert(sizeof(Pieces) > 0)
#endif
