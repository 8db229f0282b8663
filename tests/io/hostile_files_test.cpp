// SPDX-License-Identifier: MIT
// What files do to readers on purpose: each case an error that names the byte, or the right answer.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/gguf.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/safetensors.hpp>

#include "support/gguf_file.hpp"

namespace heed {
namespace {

using test::bytes_of;
using test::error_of;
using test::GgufFile;
using test::raw;

std::string safetensors_error(const std::string& json, const std::string& data = "") {
  const std::string file = raw<std::uint64_t>(json.size()) + json + data;
  return error_of([&] { Safetensors(SharedBytes(bytes_of(file)), "x"); });
}
std::string npy_error(const std::string& file) {
  return error_of([&] { parse_npy<float, 1>(bytes_of(file), "x"); });
}
std::string npy_file(const std::string& dictionary, const std::string& data) {
  return "\x93NUMPY" + std::string("\1\0", 2) + raw(static_cast<std::uint16_t>(dictionary.size())) +
         dictionary + data;
}
std::string npy_of_type(const std::string& descr) {
  return npy_file("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }",
                  std::string(8, '\0'));
}

TEST(HostileFiles, SafetensorsAtOddBytesHaveTheirValues) {
  // One letter more in the header and everything stands at another alignment.
  for (std::size_t spaces = 0; spaces < 8; ++spaces) {
    const std::string json = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("d":{"dtype":"F64","shape":[1],"data_offsets":[1,9]},)"
                             R"("f":{"dtype":"F32","shape":[2],"data_offsets":[9,17]},)"
                             R"("h":{"dtype":"F16","shape":[1],"data_offsets":[17,19]},)"
                             R"("i":{"dtype":"I64","shape":[1],"data_offsets":[19,27]}})" +
                             std::string(spaces, ' ');
    const std::string file = raw<std::uint64_t>(json.size()) + json + "\7" + raw(0.1) + raw(1.5f) +
                             raw(-2.f) + raw<std::uint16_t>(0x3e00) + raw<std::int64_t>(-5);
    const Safetensors read(SharedBytes(bytes_of(file)), "x");
    EXPECT_EQ((read.tensor<std::uint8_t, 1>("a")(0)), 7);
    EXPECT_EQ((read.tensor<double, 1>("d")(0)), 0.1);
    EXPECT_EQ((read.tensor<float, 1>("f")(1)), -2.f);
    EXPECT_EQ((read.tensor<double, 1>("f")(0)), 1.5);
    EXPECT_EQ((read.tensor<float, 1>("h")(0)), 1.5f);
    EXPECT_EQ((read.tensor<std::int64_t, 1>("i")(0)), -5);
  }
}

TEST(HostileFiles, SafetensorsHeadersThatAreMoreThanHeaders) {
  const auto refused = [](const std::string& json, const std::string& words) {
    const std::string said = safetensors_error(json, "");
    EXPECT_EQ(said.find("x: byte "), 0u) << json << ": " << said;
    EXPECT_NE(said.find(words), std::string::npos) << json << ": " << said;
  };
  const auto tensor = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(safetensors_error(tensor("[0]", "[0,0]")), "accepted");
  EXPECT_EQ(safetensors_error(" \n\t" + tensor("[0]", "[0,0]") + "  "), "accepted");
  refused(tensor("[[0]]", "[0,0]"), "expected an integer");
  refused(tensor("[0.0]", "[0,0]"), "an integer");
  refused(tensor("[0e0]", "[0,0]"), "an integer");
  refused(tensor("[NaN]", "[0,0]"), "expected");
  refused(tensor("[-1]", "[0,0]"), "a negative size");
  refused(tensor("[0]", "[0,9223372036854775808]"), "an integer in range");
  refused(tensor("[0]", "[0,0,0]"), "not a pair");
  refused(tensor("[0]", "{}"), "expected '['");
  refused(tensor("null", "[0,0]"), "expected '['");
  refused(tensor("[0]", "[0,0]") + "{}", "something follows");
  refused(tensor("[0]", "[0,0]") + std::string(1, '\0'), "something follows");
  refused("[" + tensor("[0]", "[0,0]") + "]", "expected '{'");
  refused("{\"a\":" + std::string(20, '{'), "expected");
  refused("{\"a\":" + std::string(20, '['), "levels");
  refused("{\"\xff\":{}}", "not UTF-8");
  refused("{\"\xed\xa0\x80\":{}}", "not UTF-8");  // a surrogate
  refused("{\"\xc0\xaf\":{}}", "not UTF-8");      // longer than it need be
  refused(R"({"__metadata__":{"a":["b"]}})", "expected");
  refused("", "expected '{'");
  EXPECT_EQ(safetensors_error("{}", "polyglot").find("x: byte 10: "), 0u) << "bytes behind";
}

TEST(HostileFiles, NpyOfTypesThatAreNoNumbers) {
  for (const char* descr :
       {"'|O'", "'O'", "'O8'", "'|S4'", "'<U2'", "'|V8'", "'<M8[ns]'", "'<c8'", "'>f4'", "'=f4'",
        "'f4'", "'<f16'", "'<f2x'", "''", "'float32'", "'<i8'", "'|u1'"}) {
    EXPECT_EQ(npy_error(npy_of_type(descr)).find("x: byte 20: elements are '"), 0u)
        << npy_error(npy_of_type(descr));
  }
  for (const char* descr :
       {"[('a', '<f4')]", "('<f4', (2,))", "{'names': ['a'], 'formats': ['<f4']}", "None", "4",
        "u'<f4'", "b'<f4'", "'<f4' '<f4'", "'<f4\\x00'", "__import__('os')"}) {
    EXPECT_EQ(npy_error(npy_of_type(descr)).find("x: byte "), 0u) << descr;
  }
}

TEST(HostileFiles, WhatIsNoNpy) {
  const std::string_view zip("PK\3\4\24\0\0\0\0\0\0\0\0\0", 14),
      pickle("\x80\4\x95\0\0\0\0\0\0\0\0c");
  for (const std::string& file : {std::string(zip), std::string(pickle), std::string("\x93NUMPY"),
                                  std::string(), std::string(100, '\0')}) {
    EXPECT_EQ(npy_error(file), "x: byte 0: not an .npy file");
  }
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(npy_error(npy_file(good.substr(0, size), "abcd")).find("x: byte "), 0u) << size;
  }
  EXPECT_EQ(npy_error(npy_file(good, "abcd")), "accepted");
  // A header longer than 64 KiB, in a file that has it.
  const std::string dictionary = good + std::string(70'000, ' ');
  const std::string large = "\x93NUMPY" + std::string("\2\0", 2) +
                            raw(static_cast<std::uint32_t>(dictionary.size())) + dictionary;
  EXPECT_EQ(npy_error(large + "abcd"),
            "x: byte 8: header of 70057 bytes in a file of 70073, expected at most 65536");
}

TEST(HostileFiles, GgufOfAHundredThousandTensorsInASecond) {
  GgufFile file;
  constexpr std::uint64_t many = 100'000;
  for (std::uint64_t i = 0; i < many; ++i) {
    file.tensor("t" + std::to_string(i * 7919 % many), {1}, 0, 32 * i);
    file.field("k" + std::to_string(i * 7919 % many), 0, "x");
  }
  file.data = std::string(32 * many, '\0');
  const SharedBytes bytes(bytes_of(file.text()));
  const auto start = std::chrono::steady_clock::now();
  const Gguf read(bytes, "x");
  for (const GgufTensor& tensor : read.entries()) EXPECT_TRUE(read.contains(tensor.name));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 5)
      << "far above what it takes, far below what a quadratic reader would";
}

TEST(HostileFiles, ErrorsQuoteNoMoreThanALine) {
  std::string name(200'000, '\n');
  name.replace(0, 8, "\x1b[2Jname");
  std::string json_name;
  for (const char letter : name) json_name += letter == '\n' ? "\\n" : std::string(1, letter);
  json_name.replace(0, 1, "\\u001b");
  GgufFile tensor, key;
  tensor.tensor(name, {1}, 4, 0);
  key.field(name, 7, "\2");
  for (const std::string& said :
       {error_of([&] { Gguf(SharedBytes(bytes_of(tensor.text())), "x"); }),
        error_of([&] { Gguf(SharedBytes(bytes_of(key.text())), "x"); }),
        safetensors_error("{\"" + json_name + "\":{\"x\":1}}"),
        safetensors_error("{\"" + json_name + "\":{\"dtype\":\"" + json_name + "\"}}"),
        npy_error(npy_of_type("'" + std::string(60'000, 'f') + "'"))}) {
    EXPECT_EQ(said.find("x: byte "), 0u) << said.substr(0, 300);
    EXPECT_LT(said.size(), 300u);
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_EQ(said.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace heed
