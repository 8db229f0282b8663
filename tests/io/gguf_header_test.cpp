// SPDX-License-Identifier: MIT
#include <heed/io/gguf.hpp>

#include <gtest/gtest.h>

#include <string>

#include <heed/core/quantized.hpp>

#include "support/file_bytes.hpp"
#include "support/gguf_file.hpp"

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

namespace heed {
namespace {

TEST(GgufType, TheTableHoldsEachNumberOnceAndSizesOfOurBlocks) {
  for (const GgufType& type : detail::gguf_types) {
    EXPECT_EQ(gguf_type(type.id), &type) << type.name;
    EXPECT_GT(type.block_bytes, 0);
  }
  for (const std::uint32_t unknown : {4u, 5u, 31u, 36u, 42u, 4294967295u}) {
    EXPECT_EQ(gguf_type(unknown), nullptr);
  }
  const auto expect_block = [](std::uint32_t id, Index length, std::size_t bytes) {
    EXPECT_EQ(gguf_type(id)->block_length, length);
    EXPECT_EQ(gguf_type(id)->block_bytes, static_cast<Index>(bytes));
    EXPECT_TRUE(is_dequantizable(*gguf_type(id)));
  };
  expect_block(2, Q4_0::length, sizeof(Q4_0));
  expect_block(3, Q4_1::length, sizeof(Q4_1));
  expect_block(8, Q8_0::length, sizeof(Q8_0));
  expect_block(14, Q6_K::length, sizeof(Q6_K));
}

GgufField field_of(GgufValueType type, const std::string& value, std::size_t count = 1) {
  return {"k", type, count != 1, count, reinterpret_cast<const std::byte*>(value.data())};
}

TEST(GgufField, IntegersOfEveryWidthAndWhatDoesNotFit) {
  const std::string minus = test::raw<std::int64_t>(-3), large = test::raw(~std::uint64_t{0});
  const GgufField field = field_of(GgufValueType::i64, minus);
  EXPECT_EQ(field.values<std::int8_t>()[0], -3);
  EXPECT_EQ(test::error_of([&] { field.values<std::uint32_t>(); }), "'k': -3 is out of range");
  EXPECT_EQ(field_of(GgufValueType::u64, large).values<std::uint64_t>()[0], ~std::uint64_t{0});
  EXPECT_THROW(field_of(GgufValueType::u64, large).values<std::int64_t>(), FileError);
  const std::string bytes = "\x80\xff";
  EXPECT_EQ(field_of(GgufValueType::i8, bytes, 2).values<int>(), (std::vector<int>{-128, -1}));
  EXPECT_EQ(field_of(GgufValueType::u8, bytes, 2).values<int>(), (std::vector<int>{128, 255}));
}

TEST(GgufField, EveryKindStaysItsKind) {
  const std::string half = test::raw(0.5f), one = test::raw<std::uint8_t>(1),
                    text = test::gguf_text("ab");
  const GgufField real = field_of(GgufValueType::f32, half),
                  boolean = field_of(GgufValueType::boolean, one),
                  words = field_of(GgufValueType::text, text);
  EXPECT_EQ(real.values<double>()[0], 0.5);
  EXPECT_EQ(boolean.values<bool>()[0], true);
  EXPECT_EQ(words.values<std::string_view>()[0], "ab");
  EXPECT_EQ(test::error_of([&] { real.values<int>(); }), "'k' is f32, expected an integer");
  EXPECT_EQ(test::error_of([&] { boolean.values<int>(); }), "'k' is bool, expected an integer");
  EXPECT_EQ(test::error_of([&] { words.values<bool>(); }), "'k' is text, expected bool");
  EXPECT_EQ(test::error_of([&] { real.values<std::string_view>(); }), "'k' is f32, expected text");
  EXPECT_EQ(test::error_of([&] { words.values<float>(); }),
            "'k' is text, expected a floating-point number");
  EXPECT_THROW(field_of(GgufValueType::array, text).values<int>(), FileError);
}

}  // namespace
}  // namespace heed

namespace heed::detail {
namespace {

using test::gguf_text;
using test::GgufFile;
using test::raw;

std::string verdict(const std::string& file) {
  return test::error_of([&] { GgufContents(std::as_bytes(std::span(file)), "x"); });
}
void expect_says(const GgufFile& file, const std::string& words) {
  const std::string said = verdict(file.text());
  EXPECT_NE(said.find(words), std::string::npos) << said << "\nexpected: " << words;
  EXPECT_EQ(said.find("x: "), 0u) << said;
}
/// One F32 tensor of 2 x 3.
GgufFile good() {
  GgufFile file;
  file.field("a", 4, raw<std::uint32_t>(1));
  file.tensor("t", {3, 2}, 0, 0);
  file.data = std::string(24, '\0');
  return file;
}
GgufFile with_field(std::uint32_t type, const std::string& value) {
  GgufFile file = good();
  file.field("k", type, value);
  return file;
}
GgufFile with_tensor(std::initializer_list<std::uint64_t> shape, std::uint32_t type,
                     std::uint64_t offset) {
  GgufFile file = good();
  file.tensor("n", shape, type, offset);
  return file;
}

TEST(GgufHeader, ReadsFieldsAndTensors) {
  const std::string text = good().text();
  const GgufContents header(std::as_bytes(std::span(text)), "x");
  EXPECT_EQ(header.version, 3u);
  ASSERT_EQ(header.fields.size(), 1u);
  EXPECT_EQ(header.fields[0].key, "a");
  ASSERT_EQ(header.entries.size(), 1u);
  EXPECT_EQ(header.entries[0].shape()[0], 2);
  EXPECT_EQ(header.entries[0].shape()[1], 3);
  EXPECT_EQ(header.entries[0].end, text.size());
  EXPECT_EQ(header.entries[0].begin % 32, 0u);
  GgufFile second = good();
  second.version = 2;
  EXPECT_EQ(verdict(second.text()), "accepted");
  EXPECT_EQ(verdict(GgufFile().text()), "accepted") << "nothing in it";
}

TEST(GgufHeader, NotOurs) {
  EXPECT_EQ(verdict(""), "x: byte 0: the file ends inside the magic");
  EXPECT_EQ(verdict("GGUX" + good().text().substr(4)), "x: byte 0: not a GGUF file");
  GgufFile file = good();
  for (const std::uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    file.version = version;
    EXPECT_EQ(verdict(file.text()).find("x: byte 4: "), 0u) << verdict(file.text());
  }
  EXPECT_NE(verdict(file.text()).find("big-endian"), std::string::npos);
}

TEST(GgufHeader, CountsAndLengthsThatLie) {
  for (const std::uint64_t lie :
       {std::uint64_t{1000}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    GgufFile file = good();
    file.field_count = lie;
    expect_says(file, "the number of metadata fields is " + std::to_string(lie));
    file = good();
    file.tensor_count = lie;
    expect_says(file, "the number of tensors is " + std::to_string(lie));
    expect_says(with_field(8, raw(lie) + "ab"), "text of " + std::to_string(lie) + " bytes");
    for (const std::uint32_t type : {0u, 5u, 8u, 9u, 12u}) {
      expect_says(with_field(9, raw(type) + raw(lie) + "ab"),
                  "the length of an array is " + std::to_string(lie));
    }
    file = good();
    file.fields += raw(lie) + "k";
    file.field_count = 2;
    expect_says(file, "a metadata key of " + std::to_string(lie) + " bytes");
  }
  GgufFile file = good();
  file.tensor_count = 2;
  expect_says(file, "x: byte ");
}

TEST(GgufHeader, Metadata) {
  expect_says(with_field(13, "abcd"), "unknown type of metadata 13");
  expect_says(with_field(9, raw(13u) + raw<std::uint64_t>(0)), "unknown type of metadata 13");
  expect_says(with_field(7, "\2"), "'k': a bool that is neither 0 nor 1");
  expect_says(with_field(9, raw(7u) + raw<std::uint64_t>(2) + "\1\3"), "neither 0 nor 1");
  GgufFile file = good();
  file.field("", 0, "a");
  expect_says(file, "empty or not UTF-8");
  file = good();
  file.field("\xff", 0, "a");
  expect_says(file, "empty or not UTF-8");
  std::string nested = raw(0u) + raw<std::uint64_t>(1) + "a";
  for (int depth = 1; depth < 4; ++depth) nested = raw(9u) + raw<std::uint64_t>(1) + nested;
  EXPECT_EQ(verdict(with_field(9, nested).text()), "accepted");
  expect_says(with_field(9, raw(9u) + raw<std::uint64_t>(1) + nested), "arrays more than 4 deep");
}

TEST(GgufHeader, Tensors) {
  EXPECT_EQ(verdict(with_tensor({0, 5}, 8, 0).text()), "accepted");
  expect_says(with_tensor({1, 1, 1, 1, 1}, 0, 0), "tensor 'n': rank 5");
  expect_says(with_tensor({1}, 4, 0), "tensor 'n': unknown type 4");
  expect_says(with_tensor({1}, 4294967295, 0), "tensor 'n': unknown type 4294967295");
  expect_says(with_tensor({33}, 8, 0), "rows of 33 are not blocks of 32 (Q8_0)");
  expect_says(with_tensor({}, 2, 0), "rows of 1 are not blocks of 32 (Q4_0)");
  expect_says(with_tensor({std::uint64_t{1} << 63}, 0, 0), "an extent of 9223372036854775808");
  expect_says(with_tensor({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0, 0), "is too large");
  expect_says(with_tensor({std::uint64_t{1} << 62}, 0, 0), "is too large");
  // 2^63 weights in less than 2^63 bytes: more than an Index counts.
  expect_says(with_tensor({std::uint64_t{1} << 62, 2}, 8, 0), "is too large");
  expect_says(with_tensor({7}, 0, 0), "ends at byte");
  expect_says(with_tensor({700}, 0, 0), "bytes at offset 0 in a file of");
  expect_says(with_tensor({1}, 0, ~std::uint64_t{0} - 31), "at offset 18446744073709551584");
  expect_says(with_tensor({1}, 0, 1), "offset 1 is not aligned to 32");
  expect_says(with_tensor({1}, 0, 0), "tensor 't': overlaps 'n'");
  GgufFile file = good();
  file.data.resize(23);
  expect_says(file, "ends at byte");
  file = good();
  file.tensor("", {1}, 0, 0);
  expect_says(file, "empty or not UTF-8");
}

TEST(GgufHeader, ErrorsOfPlacesNameTheByteOfTheOffset) {
  const auto byte_of_offset = [](const GgufFile& file, std::size_t tensors_before) {
    const std::string first = raw<std::uint64_t>(1) + "t" + raw(2u) + std::string(16 + 4 + 8, '\0');
    const std::size_t tensors = 24 + file.fields.size();
    const std::size_t last = tensors_before == 0 ? first.size() : file.tensors.size();
    return "x: byte " + std::to_string(tensors + last - 8) + ": tensor ";
  };
  const auto begins = [](const std::string& said, const std::string& words) {
    EXPECT_EQ(said.substr(0, words.size()), words) << said;
  };
  GgufFile file = with_tensor({1}, 0, 1);
  begins(verdict(file.text()), byte_of_offset(file, 1) + "'n': offset 1 is not aligned to 32");
  file = with_tensor({7}, 0, 0);
  begins(verdict(file.text()), byte_of_offset(file, 1) + "'n': ends at byte ");
  file = with_tensor({1}, 0, 0);
  begins(verdict(file.text()), byte_of_offset(file, 0) + "'t': overlaps 'n'");
  file = with_tensor({700}, 0, 0);
  begins(verdict(file.text()), byte_of_offset(file, 1) + "'n': 2800 bytes at offset 0 in a file");
}

TEST(GgufHeader, Alignment) {
  const auto aligned = [](std::uint32_t type, const std::string& value, std::size_t alignment) {
    GgufFile file = good();
    file.field("general.alignment", type, value);
    file.alignment = alignment;
    return file;
  };
  EXPECT_EQ(verdict(aligned(4, raw(8u), 8).text()), "accepted");
  EXPECT_EQ(verdict(aligned(4, raw(4096u), 4096).text()), "accepted");
  for (const std::uint32_t bad : {0u, 1u, 4u, 12u, 33u, 4294967295u}) {
    expect_says(aligned(4, raw(bad), 32), "'general.alignment' must be");
  }
  const std::string text = aligned(4, raw(12u), 32).text();
  const auto value = text.find("general.alignment") + 17 + 4;
  expect_says(aligned(4, raw(12u), 32),
              "x: byte " + std::to_string(value) + ": 'general.alignment'");
  expect_says(aligned(5, raw(32), 32), "'general.alignment' must be");
  expect_says(aligned(9, raw(4u) + raw<std::uint64_t>(0), 32), "'general.alignment' must be");
  expect_says(aligned(4, raw(0x80000000u), 32), "ends at byte");
}

}  // namespace
}  // namespace heed::detail
