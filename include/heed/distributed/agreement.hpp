// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/config.hpp>
#include <heed/core/detail/exceptions.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/token_shards.hpp>
#include <heed/kernels/isa.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// What all ranks must bring alike to a collective call: texts by name, compared before anything is
/// computed. Every rank gets the same answer, so that all go on or all throw, and none waits for
/// one that has left.
class Agreement {
 public:
  /// `call` begins the messages.
  explicit Agreement(std::string call) : call_(std::move(call)) {}

  /// Adds a thing to compare; `parts` are joined as in a message.
  template <class... Parts>
  void add(const char* name, const Parts&... parts) {
    text_ += detail::message(name, '\t', parts..., '\n');
  }
  /// This rank cannot take part: `check` throws on every rank, and says why.
  void refuse(std::string_view why) {
    text_.assign(1, '!');
    text_ += why;
  }

  /// Throws InvalidArgument, with one message on all ranks, if a rank refuses or brings something
  /// else than rank 0. Collective.
  void check(const Communicator& ranks) const {
    const std::vector<std::string> texts = gathered(ranks);
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (!texts[rank].starts_with('!')) continue;
      throw_invalid_argument(call_, ": rank ", rank, ": ", texts[rank].substr(1));
    }
    for (std::size_t rank = 1; rank < texts.size(); ++rank) compare(texts[0], texts[rank], rank);
  }
  /// Calls prepare(), which checks what this rank brings and adds to this; then check(ranks). An
  /// std::exception of one rank is thrown on all, as InvalidArgument.
  template <class Prepare>
  void check(const Communicator& ranks, const Prepare& prepare) {
    detail::handled<std::exception>([&] { prepare(); },
                                    [&](const std::exception& error) { refuse(error.what()); });
    check(ranks);
  }

 private:
  std::vector<std::string> gathered(const Communicator& ranks) const {
    Tensor<Index, 1> mine({Index{1}}), sizes({ranks.size()});
    mine(0) = static_cast<Index>(text_.size());
    ranks.all_gather(mine, sizes.view().with_leading_axis().transpose());
    Index longest = 0;
    for (const Index size : sizes) longest = detail::larger(longest, size);
    Tensor<char, 1> bytes({longest});
    Tensor<char, 2> all({ranks.size(), longest});
    for (std::size_t i = 0; i < text_.size(); ++i) bytes(static_cast<Index>(i)) = text_[i];
    ranks.all_gather(bytes, all);
    std::vector<std::string> texts;
    for (Index rank = 0; rank < ranks.size(); ++rank) {
      texts.emplace_back(all.data() + rank * longest, static_cast<std::size_t>(sizes(rank)));
    }
    return texts;
  }

  /// Throws for the first line that differs: another value, or another call.
  void compare(std::string_view expected, std::string_view brought, std::size_t rank) const {
    while (!expected.empty() || !brought.empty()) {
      const auto [name, value] = next_line(expected);
      const auto [other_name, other] = next_line(brought);
      if (name == other_name && value == other) continue;
      if (name != other_name) {
        throw_invalid_argument(call_, ": rank ", rank, " makes another call than rank 0");
      }
      throw_invalid_argument(call_, ": rank ", rank, " brings ", name, ' ', other, ", rank 0 ",
                             name, ' ', value);
    }
  }
  static std::pair<std::string_view, std::string_view> next_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return {line, {}};
    return {line.substr(0, tab), line.substr(tab + 1)};
  }

  std::string call_;
  std::string text_;
};

namespace detail {

/// That of a collective call of the library.
inline Agreement agreement_of(const char* call, const Communicator& ranks) {
  return Agreement(message(call, " over ", ranks.size(), " ranks"));
}

/// Adds what decides the bits of every call.
inline void add_library(Agreement& agreement) {
  agreement.add("heed", HEED_VERSION);
  agreement.add("instruction set", simd::name(simd::active()));
}

/// A fingerprint of numbers, by their bits (FNV-1a).
class Fingerprint {
 public:
  void add(std::uint64_t bits) {
    for (int byte = 0; byte < 8; ++byte, bits >>= 8) {
      value_ = (value_ ^ (bits & 0xFF)) * 0x100000001B3u;
    }
  }
  template <class T>
  void add_bits(T value) {
    std::uint64_t bits = 0;
    static_assert(sizeof(T) <= sizeof bits);
    __builtin_memcpy(&bits, &value, sizeof value);
    add(bits);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

template <class Numbers>
std::uint64_t fingerprint_of(const Numbers& numbers) {
  Fingerprint print;
  for (const auto& number : numbers) print.add_bits(number);
  return print.value();
}
inline std::uint64_t fingerprint_of(const TokenShards& shards) {
  Fingerprint print;
  for (Index rank = 0; rank < shards.ranks(); ++rank) {
    for (const TokenRange& range : shards.ranges(rank)) {
      print.add_bits(rank);
      print.add_bits(range.first);
      print.add_bits(range.end);
    }
  }
  return print.value();
}

/// The tokens of a rank that has one run of them at most.
inline TokenRange run_of(const TokenShards& shards, Index rank) {
  const auto ranges = shards.ranges(rank);
  return ranges.empty() ? TokenRange{} : ranges[0];
}

/// Throws unless a tensor of this rank has the tokens of its shard.
template <class X>
void check_shard(const Communicator& ranks, const char* name, const TokenShards& shards,
                 const TensorView<const X, 4>& tensor) {
  if (shards.ranks() != ranks.size()) {
    throw_invalid_argument("shards for ", shards.ranks(), " ranks among ", ranks.size());
  }
  if (shards.count(ranks.rank()) != tensor.extent(2)) {
    throw_shape_error(name, " have ", tensor.extent(2), " tokens, their shard ",
                      shards.count(ranks.rank()));
  }
}

}  // namespace detail
}  // namespace heed
