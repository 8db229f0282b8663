// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heed::test {

/// FNV-1a over the bytes of many results: one number that says "the same bits as everywhere".
class BitHash {
 public:
  void add(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3;
    }
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(float value) { add(std::uint64_t{std::bit_cast<std::uint32_t>(value)}); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

/// |got − exact| in units of the last place of T at `exact`, subnormal spacing included.
template <class T>
double ulps(T got, long double exact) {
  using Limits = std::numeric_limits<T>;
  int exponent = 0;
  std::frexp(exact, &exponent);
  if (exact == 0 || exponent < Limits::min_exponent) exponent = Limits::min_exponent;
  const long double unit = std::ldexp(1.0L, exponent - Limits::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

}  // namespace heed::test
