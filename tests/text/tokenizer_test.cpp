// SPDX-License-Identifier: MIT
#include <heed/text/tokenizer.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

/// A user's tokenizer, complete: the length of each word.
struct Lengths {
  std::vector<Index> encode(std::string_view text) const {
    return {static_cast<Index>(text.size())};
  }
  std::string decode(std::span<const Index> tokens) const {
    return std::string(static_cast<std::size_t>(tokens[0]), 'x');
  }
  Index vocab_size() const { return 100; }
};
struct NoDecode {
  std::vector<Index> encode(std::string_view) const { return {}; }
  Index vocab_size() const { return 0; }
};

static_assert(Tokenizer<Lengths> && !Tokenizer<NoDecode> && !Tokenizer<int>);

template <Tokenizer X>
std::string round_trip(const X& tokenizer, std::string_view text) {
  return tokenizer.decode(tokenizer.encode(text));
}

TEST(Tokenizer, AUsersOwnTakesPart) { EXPECT_EQ(round_trip(Lengths(), "abc"), "xxx"); }

}  // namespace
}  // namespace heed
