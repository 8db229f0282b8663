// SPDX-License-Identifier: MIT
// Any bytes give a tensor or a FileError.
#include <heed/io/npy.hpp>

#include "fuzz/fuzz.hpp"

namespace {

template <class T, std::size_t Rank>
void parse(std::span<const std::byte> bytes) {
  try {
    const auto tensor = heed::parse_npy<T, Rank>(bytes);
    heed::fuzz::require(static_cast<std::size_t>(tensor.size()) <= bytes.size());
  } catch (const heed::FileError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = heed::fuzz::bytes_of(data, size);
  parse<float, 1>(bytes);
  parse<float, 2>(bytes);
  parse<double, 3>(bytes);
  parse<std::int32_t, 1>(bytes);
  parse<std::int64_t, 1>(bytes);
  parse<bool, 1>(bytes);
  return 0;
}
