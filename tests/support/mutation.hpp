// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace heed::test {

/// What a structure-aware fuzzer changes: one piece of a file that was taken apart.
class Mutation {
 public:
  /// Changes bytes as fuzzers do: (bytes, size, room) to the new size.
  using Mutate = std::function<std::size_t(std::uint8_t*, std::size_t, std::size_t)>;

  Mutation(std::uint64_t seed, Mutate mutate) : state_(seed), mutate_(std::move(mutate)) {}

  /// 0 to count − 1; by splitmix64.
  std::size_t pick(std::size_t count) {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t bits = state_;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return static_cast<std::size_t>((bits ^ bits >> 31) % count);
  }
  /// A number near what code compares with.
  std::uint64_t number(std::uint64_t now) {
    constexpr std::uint64_t one = 1;
    const std::array<std::uint64_t, 16> numbers = {
        0,         1,         2,         3,         8,         31,      32,      33,
        one << 16, one << 31, one << 32, one << 62, one << 63, now + 1, now - 1, ~std::uint64_t{0}};
    return numbers[pick(numbers.size())];
  }
  void bytes(std::string& text, std::size_t room = 64) {
    const std::size_t size = text.size();
    text.resize(size + room);
    text.resize(mutate_(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  }
  /// Drops, doubles or moves one of many.
  template <class X>
  void order(std::vector<X>& items) {
    if (items.empty()) return;
    const std::size_t at = pick(items.size()), how = pick(3);
    const auto place = items.begin() + static_cast<std::ptrdiff_t>(at);
    if (how == 0) items.erase(place);
    if (how == 1) items.push_back(X(*place));
    if (how == 2) std::swap(*place, items[pick(items.size())]);
  }

 private:
  std::uint64_t state_;
  Mutate mutate_;
};

}  // namespace heed::test
