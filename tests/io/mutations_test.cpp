// SPDX-License-Identifier: MIT
// What the fuzzers' mutators make of a file: much that is read, and every kind of error.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <heed/io/file.hpp>

#include "fuzz/fuzz.hpp"
#include "support/gguf_mutation.hpp"
#include "support/safetensors_mutation.hpp"

namespace heed::test {
namespace {

std::string golden(const std::string& name) {
  const auto bytes = read_file(HEED_TEST_DATA "/" + name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Changes one byte, or one more where there is none.
std::size_t one_byte(std::uint8_t* data, std::size_t size, std::size_t room) {
  if (size == 0 && room == 0) return 0;
  ++data[size / 2];
  return std::max<std::size_t>(size, 1);
}

struct Outcomes {
  int accepted = 0;
  std::set<std::string> errors;  // without what differs from file to file
};

template <class Pieces, class Read>
Outcomes outcomes_of(const std::string& file, const Read& read) {
  constexpr std::size_t room = 32768;
  Outcomes outcomes;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    std::string text = file;
    text.resize(room);
    auto* data = reinterpret_cast<std::uint8_t*>(text.data());
    text.resize(fuzz::mutate<Pieces>(data, file.size(), room, seed, one_byte));
    const std::string said = error_of([&] { read(SharedBytes(bytes_of(text))); });
    if (said == "accepted") {
      ++outcomes.accepted;
      continue;
    }
    EXPECT_TRUE(fuzz::names_a_byte(said, text.size())) << said;
    std::string kind;
    bool quoted = false;
    for (const char letter : said) {
      if (letter == '\'') quoted = !quoted;
      if (!quoted && (letter < '0' || letter > '9')) kind += letter;
    }
    outcomes.errors.insert(kind);
  }
  return outcomes;
}

template <class Pieces>
void expect_whole(const std::string& file) {
  const std::string again = Pieces(file).file();
  EXPECT_EQ(Pieces(again).file(), again);
}

TEST(Mutations, PiecesPutTogetherAreTheFile) {
  const std::string gguf = golden("gguf/all_types.gguf");
  EXPECT_EQ(GgufPieces(gguf).file(), gguf);
  EXPECT_TRUE(GgufPieces(gguf).is_of(Gguf(SharedBytes(bytes_of(gguf)), "x")));
  const std::string other = golden("text/small_bpe.gguf");
  EXPECT_FALSE(GgufPieces(gguf).is_of(Gguf(SharedBytes(bytes_of(other)), "x")));
  expect_whole<GgufPieces>(other);
  expect_whole<SafetensorsPieces>(golden("safetensors/all_types.safetensors"));
  EXPECT_THROW(GgufPieces("GGUF"), FileError);
  EXPECT_THROW(SafetensorsPieces("x"), FileError);
}

TEST(Mutations, GgufFilesAreReadDeep) {
  const auto outcomes = outcomes_of<GgufPieces>(golden("gguf/all_types.gguf"),
                                                [](const SharedBytes& bytes) { Gguf(bytes, "x"); });
  EXPECT_GT(outcomes.accepted, 1000);
  EXPECT_GT(outcomes.errors.size(), 15u);
}

TEST(Mutations, SafetensorsFilesAreReadDeep) {
  const auto outcomes =
      outcomes_of<SafetensorsPieces>(golden("safetensors/all_types.safetensors"),
                                     [](const SharedBytes& bytes) { Safetensors(bytes, "x"); });
  EXPECT_GT(outcomes.accepted, 1000);
  EXPECT_GT(outcomes.errors.size(), 15u);
}

}  // namespace
}  // namespace heed::test
