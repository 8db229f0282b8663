// SPDX-License-Identifier: MIT
#include <heed/io/detail/json_reader.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/file_bytes.hpp"

namespace heed::detail {
namespace {

/// What reading all of `text` as one value says.
std::string verdict(const std::string& text) {
  return test::error_of([&] {
    JsonReader json(text, "x.json");
    json.skip();
    json.end();
  });
}

TEST(JsonReader, ReadsValuesInOrder) {
  JsonReader json(
      R"( {"a" : [1, -2,9223372036854775807], "b":{"c":true,"d":false} ,"e":-1.5e2,"f":null} )",
      "x.json");
  std::string seen;
  json.object([&](const std::string& name) {
    seen += name + ' ';
    if (name == "a") json.array([&] { seen += std::to_string(json.integer()) + ' '; });
    if (name == "b")
      json.object([&](const std::string&) { seen += json.boolean() ? "yes " : "no "; });
    if (name == "e") seen += std::to_string(json.real()) + ' ';
    if (name == "f") json.skip();
  });
  json.end();
  EXPECT_EQ(seen, "a 1 -2 9223372036854775807 b yes no e -150.000000 f ");
}

TEST(JsonReader, Strings) {
  const auto string = [](const std::string& text) { return JsonReader(text, "x.json").string(); };
  EXPECT_EQ(string(R"("a\"\\\/\b\f\n\r\té")"), "a\"\\/\b\f\n\r\té");
  EXPECT_EQ(string(R"("\u00e9\u4e2d\ud83d\ude00\u0000")"), std::string("é中😀\0", 10));
  for (const char* broken : {R"("a)", R"("\x41")", R"("\u12g4")", R"("\u12)", R"("\ud83d")",
                             R"("\ud83dx")", R"("\ude00")", R"("\ud83d\u0041")", "\"\n\"",
                             "\"\x80\"", "\"\\", "\"\\u", "\"\\\"", R"("\ud83d\)", "a", ""}) {
    EXPECT_NE(test::error_of([&] { string(broken); }), "accepted") << broken;
  }
}

TEST(JsonReader, AcceptsJsonAndNothingElse) {
  for (const char* good : {"0", "-0", "10", "1.5", "1e5", "1E+5", "-1.25e-3", "true", "null", "[]",
                           "{}", "[[], {}, \"\"]", "\r\n\t 1 ", R"({"a":{"a":[]}})"}) {
    EXPECT_EQ(verdict(good), "accepted") << good;
  }
  for (const char* bad : {"",
                          " ",
                          "01",
                          "+1",
                          "-",
                          ".5",
                          "1.",
                          "1.e5",
                          "1e",
                          "1e+",
                          "1.2.3",
                          "0x10",
                          "1e999",
                          "nan",
                          "inf",
                          "-inf",
                          "Infinity",
                          "tru",
                          "[1,]",
                          "[1 2]",
                          "[",
                          "[1",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{a:1}",
                          "{\"a\":1,}",
                          "{\"a\":1",
                          "1 2",
                          "// 1",
                          "'a'",
                          "\xef\xbb\xbf"
                          "1"}) {
    EXPECT_NE(verdict(bad), "accepted") << bad;
  }
  EXPECT_EQ(verdict(std::string("1\0", 2)), "x.json: byte 1: something follows the value");
}

TEST(JsonReader, IntegersThatDoNotFitAreRefused) {
  EXPECT_NE(test::error_of([] { JsonReader("9223372036854775808", "x").integer(); }), "accepted");
  EXPECT_NE(test::error_of([] { JsonReader("1.0", "x").integer(); }), "accepted");
  EXPECT_EQ(JsonReader("-9223372036854775808", "x").integer(), INT64_MIN);
}

/// A file that is mapped goes on where its header ends.
TEST(JsonReader, WhatFollowsTheTextIsNotRead) {
  const std::string text = R"([12345, -1.5e10, "a\nb\u00e9\ud83d\ude00", true, {"k": null}])";
  for (std::size_t first = 0; first < text.size(); ++first) {
    for (std::size_t size = 0; size <= text.size() - first; ++size) {
      const auto verdict_of = [](std::string_view part) {
        double value = 0;
        const std::string said = test::error_of([&] {
          JsonReader json(part, "x.json");
          if (part.empty() || part[0] < '0' || part[0] > '9') {
            json.skip();
          } else {
            value = json.real();
          }
          json.end();
        });
        return said + " " + std::to_string(value);
      };
      const std::string alone = text.substr(first, size);
      ASSERT_EQ(verdict_of(std::string_view(text).substr(first, size)), verdict_of(alone)) << alone;
    }
  }
}

TEST(JsonReader, DepthIsBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(verdict(nested(16)), "accepted");
  EXPECT_EQ(verdict(nested(17)), "x.json: byte 17: more than 16 levels");
  EXPECT_NE(verdict(std::string(1'000'000, '[')), "accepted");
}

TEST(JsonReader, ErrorsCountBytesFromTheBeginningOfTheFile) {
  EXPECT_EQ(test::error_of([] { JsonReader("{\"a\" 1}", "m.safetensors", 8).skip(); }),
            "m.safetensors: byte 13: expected ':'");
}

}  // namespace
}  // namespace heed::detail
