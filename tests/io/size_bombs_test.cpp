// SPDX-License-Identifier: MIT
// A file of k bytes costs at most 4 k + 1 MiB of memory to open, whatever it claims.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <heed/io/gguf.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/safetensors.hpp>

#include "support/gguf_file.hpp"
#include "support/memory_limit.hpp"

namespace heed {
namespace {

using test::gguf_text;
using test::GgufFile;
using test::raw;

using test::opened;
using test::out_of_memory;
using test::outcome;
using test::refused;
using test::short_name;

class SizeBombs : public test::MemoryLimited {};

/// The file's own bytes count too: as if it were read into memory.
int open_gguf(const std::string& text) {
  return outcome(text.size(), [&] { Gguf(SharedBytes(test::bytes_of(text)), "x"); });
}
int open_safetensors(const std::string& json, std::size_t data) {
  const std::string text = raw<std::uint64_t>(json.size()) + json + std::string(data, '\0');
  return outcome(text.size(), [&] { Safetensors(SharedBytes(test::bytes_of(text)), "x"); });
}

TEST_F(SizeBombs, TheLimitBites) {
  // A compiler may leave out memory that nobody reads.
  const auto take = [](std::size_t size) {
    const std::vector<char> memory(size, 'x');
    volatile char last = memory.back();
    static_cast<void>(last);
  };
  EXPECT_EQ(outcome(1 << 20, [&] { take(4 << 20); }), opened);
  EXPECT_EQ(outcome(1 << 20, [&] { take(6 << 20); }), out_of_memory);
}

TEST_F(SizeBombs, GgufOfManySmallThings) {
  constexpr std::uint64_t many = 200'000;
  GgufFile fields, tensors;
  for (std::uint64_t i = 0; i < many; ++i) fields.field(short_name(i), 0, "x");
  EXPECT_EQ(open_gguf(fields.text()), opened);
  for (std::uint64_t i = 0; i < many; ++i) tensors.tensor(short_name(i), {}, 24, 32 * i);
  tensors.data = std::string(32 * many, '\0');
  EXPECT_EQ(open_gguf(tensors.text()), opened);
  tensors.data.resize(32);
  EXPECT_EQ(open_gguf(tensors.text()), refused);
  GgufFile texts, nested;
  texts.field("a", 9, raw(8u) + raw(many) + std::string(8 * many, '\0'));
  EXPECT_EQ(open_gguf(texts.text()), opened);
  std::string arrays = raw(9u) + raw(many);
  for (std::uint64_t i = 0; i < many; ++i) arrays += raw(0u) + raw<std::uint64_t>(0);
  nested.field("a", 9, arrays);
  EXPECT_EQ(open_gguf(nested.text()), opened);
}

TEST_F(SizeBombs, GgufThatClaims) {
  for (const std::uint64_t lie :
       {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    GgufFile file;
    file.field_count = lie;
    EXPECT_EQ(open_gguf(file.text()), refused);
    file = {};
    file.tensor_count = lie;
    EXPECT_EQ(open_gguf(file.text()), refused);
    file = {};
    file.field("a", 9, raw(8u) + raw(lie));
    EXPECT_EQ(open_gguf(file.text()), refused);
    file = {};
    file.tensor("t", {lie}, 0, 0);
    EXPECT_EQ(open_gguf(file.text()), refused);
  }
  GgufFile file;  // as many fields as could be, in a file full of zeros
  file.field_count = 100'000;
  file.fields = std::string(1'400'000, '\0');
  EXPECT_EQ(open_gguf(file.text()), refused);
}

TEST_F(SizeBombs, SafetensorsOfManySmallThings) {
  std::string json = "{", notes = "{\"__metadata__\":{";
  for (int i = 0; i < 100'000; ++i) {
    json +=
        "\"" + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},";
    notes += "\"" + std::to_string(i) + "\":\"\",";
  }
  json.back() = notes.back() = '}';
  EXPECT_EQ(open_safetensors(json, 0), opened);
  EXPECT_EQ(open_safetensors(notes + "}", 0), opened);
  EXPECT_EQ(open_safetensors("{\"" + std::string(4'000'000, 'n') + "\":1}", 0), refused);
  EXPECT_EQ(open_safetensors(std::string(4'000'000, '['), 0), refused);
  EXPECT_EQ(open_safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[1125899906842624],\"data_"
                             "offsets\":[0,1125899906842624]}}",
                             0),
            refused);
}

TEST_F(SizeBombs, SafetensorsThatRepeat) {
  const auto repeated = [](const std::string& open, const std::string& part, std::size_t size,
                           const std::string& close) {
    std::string json = open;
    while (json.size() < size) json += part;
    json.back() = '}';  // where the last comma was
    return json + close;
  };
  const std::string notes = "{\"__metadata__\":{";
  EXPECT_EQ(open_safetensors(repeated("{", "\"\":0,", 4'000'000, ""), 0), refused);
  EXPECT_EQ(open_safetensors(repeated("{", "\"\":[],", 4'000'000, ""), 0), refused);
  EXPECT_EQ(open_safetensors(repeated(notes, "\"\":\"\",", 4'000'000, "}"), 0), refused);
  EXPECT_EQ(open_safetensors(repeated(notes, "\"\\n\":\"\",", 4'000'000, "}"), 0), refused);
  const std::string some = repeated(notes, "\"\":\"\",", 3'500'000, ",");
  EXPECT_EQ(open_safetensors(repeated(some, "\"\":0,", 4'000'000, ""), 0), refused);
  // A single name as long as a reader's doubling likes least, plain and escaped.
  for (const std::size_t size : {4'200'000u, 4'000'000u, 3'000'000u}) {
    std::string escaped;
    while (escaped.size() < size) escaped += "\\n";
    for (const std::string& name : {std::string(size, 'n'), escaped}) {
      EXPECT_EQ(open_safetensors(notes + "\"" + name + "\":\"\"}}", 0), opened);
      EXPECT_EQ(open_safetensors(notes + "\"\":\"" + name + "\"}}", 0), opened);
      const std::string first = notes + "\"" + name + "\":\"\"},";
      EXPECT_EQ(open_safetensors(repeated(first, "\"\":0,", size + size / 9, ""), 0), refused);
    }
  }
}

TEST_F(SizeBombs, MetadataAsItIsGivenBack) {
  std::string notes = "{\"__metadata__\":{";
  for (std::uint64_t i = 0; i < 300'000; ++i) notes += "\"" + short_name(i) + "\":\"\",";
  notes.back() = '}';
  const auto given_back = [](const std::string& json) {
    const std::string whole = raw<std::uint64_t>(json.size()) + json;
    return outcome(whole.size(), [&] {
      const Safetensors file(SharedBytes(test::bytes_of(whole)), "x");
      const Notes found = file.metadata();
      for (const auto& [name, text] : found) {
        if (text.data() == nullptr) throw_file_error("no text for ", name);
      }
    });
  };
  EXPECT_EQ(given_back(notes + "}"), opened);
  const std::string large(3'000'000, 'n');
  EXPECT_EQ(given_back("{\"__metadata__\":{\"" + large + "\":\"\"}}"), opened);
  EXPECT_EQ(given_back("{\"__metadata__\":{\"\":\"" + large + "\"}}"), opened);
}

TEST_F(SizeBombs, ValuesOfGgufArrays) {
  constexpr std::uint64_t many = 300'000;
  GgufFile texts, bytes;
  texts.field("a", 9, raw(8u) + raw(many) + std::string(8 * many, '\0'));
  bytes.field("a", 9, raw(0u) + raw(8 * many) + std::string(8 * many, '\1'));
  const auto open = [](const GgufFile& file, const auto& read) {
    const std::string text = file.text();
    const SharedBytes shared(test::bytes_of(text));
    return outcome(text.size(), [&] { read(Gguf(shared, "x")); });
  };
  EXPECT_EQ(open(texts, [](const Gguf& file) { file.values<std::string_view>("a"); }), opened);
  EXPECT_EQ(open(bytes, [](const Gguf& file) { file.values<std::int32_t>("a"); }), opened);
  EXPECT_EQ(open(bytes,
                 [](const Gguf& file) {
                   std::int64_t sum = 0;
                   file.for_each<std::int64_t>("a", [&](std::int64_t x) { sum += x; });
                   if (sum != 8 * many) throw std::bad_alloc();
                 }),
            opened);
  EXPECT_EQ(open(bytes, [](const Gguf& file) { file.field("a").values<double>(); }), refused);
  EXPECT_EQ(open(bytes,
                 [](const Gguf& file) {
                   if (file.field("a").values<std::int64_t>(6).size() != 6) throw std::bad_alloc();
                 }),
            opened);
}

TEST_F(SizeBombs, NpyThatClaims) {
  std::string dictionary =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000), }\n";
  const auto bytes =
      test::bytes_of("\x93NUMPY" + std::string("\1\0", 2) +
                     raw(static_cast<std::uint16_t>(dictionary.size())) + dictionary);
  EXPECT_EQ(outcome(bytes.size(), [&] { parse_npy<float, 2>(bytes); }), refused);
}

}  // namespace
}  // namespace heed
