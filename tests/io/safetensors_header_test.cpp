// SPDX-License-Identifier: MIT
#include <heed/io/safetensors.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/file_bytes.hpp"

namespace heed::detail {
namespace {

std::string file_with(const std::string& json, std::size_t data) {
  return test::raw<std::uint64_t>(json.size()) + json + std::string(data, '\0');
}

std::string verdict(const std::string& file) {
  return test::error_of([&] { SafetensorsHeader(std::as_bytes(std::span(file)), "x"); });
}

/// A header with one tensor of 6 bytes.
std::string one(const std::string& fields) { return file_with("{\"a\":{" + fields + "}}", 6); }

TEST(SafetensorsHeader, ReadsEntriesInTheirOrder) {
  const std::string file = file_with(
      R"( {"b":{"dtype":"U8","shape":[2,1],"data_offsets":[2,4]},"__metadata__":{"k":"v"},)"
      R"("a":{"data_offsets":[0,2],"shape":[],"dtype":"F16"},"c":{"dtype":"F32","shape":[0,9],"data_offsets":[4,4]}}  )",
      4);
  SafetensorsHeader header(std::as_bytes(std::span(file)), "x");
  EXPECT_EQ(header.metadata(), R"({"k":"v"})");
  const auto entries = header.take_entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].name, "a");
  EXPECT_EQ(entries[1].type, ElementType::f16);
  EXPECT_EQ(entries[1].rank, 0);
  EXPECT_EQ(entries[0].end, file.size());
  EXPECT_EQ(entries[0].shape()[0], 2);
  EXPECT_EQ(entries[2].begin, file.size());
}

TEST(SafetensorsHeader, AnEmptyFileOfTensorsIsFine) {
  EXPECT_EQ(verdict(file_with("{}", 0)), "accepted");
  EXPECT_EQ(verdict(file_with("{}", 1)), "x: byte 10: tensors end, the file has 11 bytes");
}

TEST(SafetensorsHeader, WhatATensorMustSay) {
  EXPECT_EQ(verdict(one(R"("dtype":"U8","shape":[6],"data_offsets":[0,6])")), "accepted");
  const auto says = [](const std::string& fields, const std::string& words) {
    const std::string said = verdict(one(fields));
    EXPECT_NE(said.find(words), std::string::npos) << fields << ": " << said;
    EXPECT_NE(said.find("tensor 'a'"), std::string::npos) << said;
    EXPECT_EQ(said.find("x: byte "), 0u) << said;
  };
  says(R"("dtype":"U9","shape":[6],"data_offsets":[0,6])", "unknown type 'U9'");
  says(R"("dtype":"U8","shape":[6])", "must all be given");
  says(R"("dtype":"U8","shape":[6],"data_offsets":[0,6],"x":1)", "unknown field 'x'");
  says(R"("dtype":"U8","dtype":"U8","shape":[6],"data_offsets":[0,6])", "field 'dtype' twice");
  says(R"("dtype":"U8","shape":[6],"data_offsets":[0,6,6])", "not a pair");
  says(R"("dtype":"U8","shape":[6],"data_offsets":[0])", "not a pair");
  says(R"("dtype":"U8","shape":[5],"data_offsets":[0,6])",
       "shape (5) of U8 needs 5 bytes, data_offsets hold 6");
  EXPECT_EQ(verdict(one(R"("dtype":"U8","shape":[5],"data_offsets":[0,6])")),
            "x: byte 13: tensor 'a': shape (5) of U8 needs 5 bytes, data_offsets hold 6");
  says(R"("dtype":"F32","shape":[6],"data_offsets":[0,6])", "needs 24 bytes");
  says(R"("dtype":"U8","shape":[6],"data_offsets":[0,7])", "the file has 6 bytes of data");
  says(R"("dtype":"U8","shape":[6],"data_offsets":[6,0])", "[6, 0]");
  says(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,6],"data_offsets":[0,6])", "more than 8 axes");
  says(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,6])", "is too large");
  says(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])", "is too large");
  says(R"("dtype":"U8","shape":[9223372036854775807,9223372036854775807,0],"data_offsets":[0,6])",
       "needs 0 bytes");
  for (const char* fields :
       {R"("dtype":"U8","shape":[-6],"data_offsets":[0,6])",
        R"("dtype":"U8","shape":[6],"data_offsets":[-0,6])",
        R"("dtype":"U8","shape":[6,-0],"data_offsets":[0,0])",
        R"("dtype":1,"shape":[6],"data_offsets":[0,6])",
        R"("dtype":"U8","shape":[6.0],"data_offsets":[0,6])",
        R"("dtype":"U8","shape":6,"data_offsets":[0,6])",
        R"("dtype":"U8","shape":[6],"data_offsets":[0,18446744073709551622])"}) {
    EXPECT_EQ(verdict(one(fields)).find("x: byte "), 0u) << verdict(one(fields));
  }
}

TEST(SafetensorsHeader, NoHolesNoOverlap) {
  const auto pair = [](const std::string& a, const std::string& b,
                       const std::string& second = "b") {
    return verdict(file_with("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + a +
                                 "},\"" + second +
                                 "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + b + "}}",
                             4));
  };
  EXPECT_EQ(pair("[0,2]", "[2,4]"), "accepted");
  EXPECT_EQ(pair("[2,4]", "[0,2]"), "accepted");
  EXPECT_NE(pair("[0,2]", "[1,3]").find("'b': begins at byte"), std::string::npos);
  const std::size_t data =
      8 + 2 * std::string(R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)").size() + 1;
  EXPECT_EQ(pair("[0,2]", "[1,3]"), "x: byte " + std::to_string(data + 2) +
                                        ": tensor 'b': begins at byte " + std::to_string(data + 1) +
                                        ", the one before ends here");
  EXPECT_NE(pair("[0,2]", "[0,2]").find("begins at byte"), std::string::npos);
  EXPECT_NE(pair("[1,3]", "[2,4]").find("'a': begins at byte"), std::string::npos);
}

TEST(SafetensorsHeader, LengthsThatLie) {
  const auto with = [](std::uint64_t length, const std::string& rest) {
    return verdict(test::raw(length) + rest);
  };
  EXPECT_EQ(verdict(""), "x: byte 0: not a safetensors file");
  EXPECT_EQ(verdict("\1\0\0\0\0\0\0"), "x: byte 0: not a safetensors file");
  EXPECT_EQ(with(3, "{}"),
            "x: byte 0: not a safetensors file: a header of 3 bytes in a file of 10");
  EXPECT_NE(with(std::uint64_t{1} << 63, "{}"), "accepted");
  EXPECT_NE(with(~std::uint64_t{0}, "{}"), "accepted");
  EXPECT_NE(with(~std::uint64_t{0} - 7, "{}"), "accepted");
  EXPECT_NE(with(0, ""), "accepted");
  const std::string huge =
      test::raw<std::uint64_t>(100'000'001) + "{}" + std::string(99'999'999, ' ');
  EXPECT_EQ(
      verdict(huge),
      "x: byte 0: not a safetensors file: a header of 100000001 bytes in a file of 100000009");
}

TEST(SafetensorsHeader, MetadataIsTextToText) {
  const auto with = [](const std::string& value) {
    return verdict(file_with("{\"__metadata__\":" + value + "}", 0));
  };
  EXPECT_EQ(with("{}"), "accepted");
  EXPECT_EQ(with(R"({"a":"b","c":""})"), "accepted");
  for (const char* value : {"1", "[]", R"({"a":1})", R"({"a":null})", R"({"a":{}})"}) {
    EXPECT_NE(with(value), "accepted") << value;
  }
  EXPECT_NE(with(R"({"a":"b","\u0061":"c"})").find("'a' twice"), std::string::npos);
  EXPECT_NE(with(R"({"":"b","a":"c","":"d"})").find("'' twice"), std::string::npos);
  EXPECT_EQ(with(R"({"ab":"","a":"","b":"","":"","ba":"","\"":""})"), "accepted");
  EXPECT_NE(with(R"({},"__metadata__":{})").find("twice"), std::string::npos);
}

TEST(SafetensorsHeader, AHundredThousandTensorsInASecond) {
  std::string json = "{";
  for (int i = 0; i < 100'000; ++i) {
    json += "\"t" + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[" +
            std::to_string(i) + "," + std::to_string(i + 1) + "]},";
  }
  json.back() = '}';
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(verdict(file_with(json, 100'000)), "accepted");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 5)
      << "far above what it takes, far below what a quadratic reader would";
}

}  // namespace
}  // namespace heed::detail
