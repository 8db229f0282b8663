// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

namespace heed {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// 128 random bits for every counter and key: a pure function, so that random numbers can belong to
/// positions (seed, layer, head, query, key) instead of an order of drawing. Philox4x32-10, Salmon,
/// Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

}  // namespace heed
