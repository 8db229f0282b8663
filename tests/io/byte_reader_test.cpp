// SPDX-License-Identifier: MIT
#include <heed/io/gguf_header.hpp>

#include <gtest/gtest.h>

#include <string>

#include "support/file_bytes.hpp"

namespace heed::detail {
namespace {

TEST(ByteReader, FieldsOneAfterAnother) {
  const std::string file =
      test::raw<std::uint32_t>(7) + test::raw<std::uint64_t>(2) + "ab" + test::raw(1.5f);
  ByteReader reader(std::as_bytes(std::span(file)), "x");
  EXPECT_EQ(reader.number<std::uint32_t>("a number"), 7u);
  EXPECT_EQ(reader.text("text"), "ab");
  EXPECT_EQ(reader.at(), 14u);
  EXPECT_EQ(reader.number<float>("a number"), 1.5f);
  EXPECT_EQ(reader.left(), 0u);
  EXPECT_EQ(test::error_of([&] { reader.number<std::uint8_t>("the end"); }),
            "x: byte 18: the file ends inside the end");
}

TEST(ByteReader, LengthsAndCountsThatTheFileCannotHold) {
  for (const std::uint64_t size : {std::uint64_t{3}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const std::string file = test::raw(size) + "ab";
    const auto reader = [&] { return ByteReader(std::as_bytes(std::span(file)), "x"); };
    EXPECT_EQ(test::error_of([&] { reader().text("a name"); }),
              "x: byte 8: a name of " + std::to_string(size) + " bytes, the file has 2 more");
    EXPECT_EQ(test::error_of([&] { reader().count(1, "the count"); }),
              "x: byte 8: the count is " + std::to_string(size) + ", the file has 2 more bytes");
  }
  const std::string file = test::raw<std::uint64_t>(2) + std::string(8, '\0');
  EXPECT_EQ(ByteReader(std::as_bytes(std::span(file)), "x").count(4, "the count"), 2u);
  EXPECT_THROW(ByteReader(std::as_bytes(std::span(file)), "x").count(5, "the count"), FileError);
}

}  // namespace
}  // namespace heed::detail
