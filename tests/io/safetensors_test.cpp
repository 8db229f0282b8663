// SPDX-License-Identifier: MIT
#include <heed/io/safetensors.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/file_bytes.hpp"
#include "support/models.hpp"
#include "support/temporary_file.hpp"

namespace heed {
namespace {

static_assert(std::forward_iterator<Notes::Iterator>);

TEST(Notes, ByNameInTheOrderOfNames) {
  const Notes notes(TextList{"step", "7", "", "nothing", "format", "pt", "stem", ""});
  EXPECT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes.at("step"), "7");
  EXPECT_EQ(notes.at(""), "nothing");
  EXPECT_TRUE(notes.contains("stem"));
  EXPECT_FALSE(notes.contains("ste"));
  EXPECT_FALSE(notes.contains("z"));
  std::string names;
  for (const auto& [name, text] : notes) names += std::string(name) + "=" + std::string(text) + ";";
  EXPECT_EQ(names, "=nothing;format=pt;stem=;step=7;");
  EXPECT_EQ(test::error_of([&] { notes.at("steps"); }), "no note 'steps'");
  EXPECT_EQ(notes, Notes(TextList{"", "nothing", "stem", "", "step", "7", "format", "pt"}));
  EXPECT_FALSE(notes == Notes(TextList{"", "nothing", "stem", "", "step", "8", "format", "pt"}));
  EXPECT_TRUE(Notes().empty());
  EXPECT_FALSE(Notes().contains(""));
}

TEST(Notes, ManyInAnyOrder) {
  TextList texts;
  for (int i = 0; i < 500; ++i) {
    texts.push_back(std::to_string(i * 389 % 500));
    texts.push_back(std::to_string(i));
  }
  const Notes notes(std::move(texts));
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(notes.at(std::to_string(i * 389 % 500)), std::to_string(i));
    EXPECT_FALSE(notes.contains(std::to_string(i + 500)));
  }
  EXPECT_TRUE(std::is_sorted(notes.begin(), notes.end()));
}

}  // namespace
}  // namespace heed

namespace heed::detail {
namespace {

std::string file_with(const std::string& json, std::size_t data) {
  return test::raw<std::uint64_t>(json.size()) + json + std::string(data, '\0');
}

std::string verdict(const std::string& file) {
  return test::error_of([&] { SafetensorsContents(std::as_bytes(std::span(file)), "x"); });
}

/// A header with one tensor of 6 bytes.
std::string one(const std::string& fields) { return file_with("{\"a\":{" + fields + "}}", 6); }

TEST(SafetensorsHeader, ReadsEntriesInTheirOrder) {
  const std::string file = file_with(
      R"( {"b":{"dtype":"U8","shape":[2,1],"data_offsets":[2,4]},"__metadata__":{"k":"v"},)"
      R"("a":{"data_offsets":[0,2],"shape":[],"dtype":"F16"},"c":{"dtype":"F32","shape":[0,9],"data_offsets":[4,4]}}  )",
      4);
  const SafetensorsContents header(std::as_bytes(std::span(file)), "x");
  EXPECT_EQ(header.metadata, R"({"k":"v"})");
  const auto entries = header.entries;
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

namespace heed {
namespace {

const std::string golden = HEED_TEST_DATA "/safetensors/all_types.safetensors";

TEST(Safetensors, ReadsWhatTheReferenceWrote) {
  // arange(6).reshape(2, 3) / 2 - 1 and others, by tools/make_file_goldens.py.
  const Safetensors file = load_safetensors(golden);
  EXPECT_EQ(file.entries().size(), 11u);
  for (const char* name : {"f64", "f32", "f16", "bf16"}) {
    const auto single = file.tensor<float, 2>(name);
    const auto twice = file.tensor<double, 2>(name);
    ASSERT_EQ(single.extents(), (Extents<2>{2, 3}));
    for (Index i = 0; i < 6; ++i) {
      EXPECT_EQ(single.data()[i], 0.5f * static_cast<float>(i) - 1) << name;
      EXPECT_EQ(twice.data()[i], 0.5 * static_cast<double>(i) - 1) << name;
    }
  }
  EXPECT_EQ((file.tensor<std::int64_t, 2>("i64")(1, 2)), 5 - (std::int64_t{1} << 40));
  EXPECT_EQ((file.tensor<std::int32_t, 2>("i32")(0, 0)), -2);
  EXPECT_EQ((file.tensor<std::uint8_t, 2>("u8")(1, 2)), 255);
  EXPECT_EQ((file.tensor<bool, 2>("bool")(0, 1)), true);
  EXPECT_EQ((file.tensor<bool, 2>("bool")(0, 2)), false);
  EXPECT_EQ((file.tensor<float, 2>("empty").extents()), (Extents<2>{3, 0}));
  EXPECT_EQ((file.tensor<float, 0>("scalar")()), 2.5f);
  EXPECT_EQ((file.tensor<float, 1>("odd \"name\"\\\né😀")(0)), 1.f);
  EXPECT_EQ(file.bytes("u8").size(), 6u);
  EXPECT_EQ(file.metadata(), Notes(TextList{"format", "pt", "note", "café"}));
}

TEST(Safetensors, ErrorsNameFileAndTensor) {
  const Safetensors file = load_safetensors(golden);
  EXPECT_FALSE(file.contains("missing"));
  EXPECT_EQ(test::error_of([&] { file.tensor<float, 2>("missing"); }),
            golden + ": no tensor 'missing'");
  EXPECT_EQ(test::error_of([&] { file.tensor<float, 1>("f32"); }),
            golden + ": tensor 'f32': shape (2, 3) has rank 2, expected 1");
  EXPECT_EQ(test::error_of([&] { file.tensor<float, 2>("i32"); }),
            golden + ": tensor 'i32': elements are I32, expected F32");
  EXPECT_THROW(load_safetensors("/no/such/file"), FileError);
}

TEST(Safetensors, NamesStandOnce) {
  for (const std::string second : {"a", "\\u0061", "b"}) {
    const std::string json = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"" +
                             second + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    const std::string file = test::raw<std::uint64_t>(json.size()) + json + "xy";
    EXPECT_EQ(test::error_of([&] { Safetensors(SharedBytes(test::bytes_of(file)), "x"); }),
              second == "b" ? "accepted"
                            : "x: byte " + std::to_string(file.size() - 1) + ": tensor 'a' twice");
  }
}

TEST(Safetensors, CopiesShareTheFileAndOutliveIt) {
  Safetensors copy = [] { return load_safetensors(golden); }();
  const Safetensors second = copy;
  copy = load_safetensors(golden);
  EXPECT_EQ((second.tensor<float, 2>("f32")(1, 2)), 1.5f);
  EXPECT_EQ(second.metadata().at("format"), "pt");
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const auto good = read_file(golden);
  for (std::size_t size = 0; size < good.size(); ++size) {
    std::vector<std::byte> part(good.begin(), good.begin() + static_cast<Index>(size));
    EXPECT_THROW(Safetensors(SharedBytes(std::move(part)), "x"), FileError) << size;
  }
}

TEST(Safetensors, EveryFlippedByteIsAnErrorOrReadable) {
  const auto good = read_file(golden);
  const std::uint64_t seed = 20261123;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    for (std::uint64_t change = 0; change <= bits() % 3; ++change) {
      bytes[bits() % (bytes.size() - 200)] = static_cast<std::byte>(bits());
    }
    try {
      const Safetensors file(SharedBytes(std::move(bytes)), "x");
      for (const SafetensorsEntry& entry : file.entries()) {
        EXPECT_EQ(file.bytes(entry.name).size(), entry.end - entry.begin);
        if (entry.rank == 2 && is_readable_as<double>(entry.type))
          file.tensor<double, 2>(entry.name);
      }
      file.metadata();
      ++accepted;
    } catch (const FileError&) {
    }
  }
  EXPECT_GT(accepted, 100) << "a changed letter in a name is still a name";
  EXPECT_LT(accepted, 15000);
}

TEST(Safetensors, TheRealModel) {
  HEED_NEEDS_MODELS();
  const auto file = load_safetensors(test::model_file("minilm/model.safetensors"));
  EXPECT_EQ((file.tensor<float, 2>("embeddings.word_embeddings.weight").extents()),
            (Extents<2>{30522, 384}));
  EXPECT_EQ((file.tensor<float, 1>("encoder.layer.5.output.dense.bias").extents()),
            (Extents<1>{384}));
}

TEST(SafetensorsWriter, WritesTheTensorsOfTheReferenceAgain) {
  // The golden file was written by the reference implementation.
  const auto path = HEED_TEST_DATA "/safetensors/all_types.safetensors";
  const Safetensors original = load_safetensors(path);
  const test::TemporaryFile file;
  SafetensorsWriter writer;
  for (const char* name : {"f16", "f64", "bf16", "f32"}) {  // in any order
    writer.add(name, original.tensor<double, 2>(name), original.entry(name).type);
  }
  writer.add("empty", original.tensor<float, 2>("empty"));
  writer.add("odd \"name\"\\\né😀", original.tensor<float, 1>("odd \"name\"\\\né😀"));
  writer.add("i64", original.tensor<std::int64_t, 2>("i64"));
  writer.add("i32", original.tensor<std::int32_t, 2>("i32"));
  writer.add("u8", original.tensor<std::uint8_t, 2>("u8"));
  writer.add("bool", original.tensor<bool, 2>("bool"));
  const SafetensorsEntry& scalar = original.entry("scalar");
  writer.add_bytes("scalar", scalar.type, scalar.shape(), original.bytes("scalar"));
  writer.note("note", "café \x01");
  writer.write(file.path());
  const Safetensors back = load_safetensors(file.path());
  EXPECT_TRUE(std::ranges::equal(writer.bytes(), read_file(file.path())));
  EXPECT_EQ(back.entries().size(), original.entries().size());
  for (const SafetensorsEntry& entry : back.entries()) {
    const SafetensorsEntry& same = original.entry(entry.name);
    EXPECT_EQ(entry.type, same.type);
    EXPECT_TRUE(std::ranges::equal(entry.shape(), same.shape()));
    EXPECT_TRUE(std::ranges::equal(back.bytes(entry.name), original.bytes(entry.name)))
        << entry.name;
    EXPECT_EQ(entry.begin % width_of(entry.type), 0u) << "aligned";
  }
  EXPECT_EQ(back.metadata().at("note"), "café \x01");
}

TEST(SafetensorsWriter, AnyViewInAnyOrder) {
  const test::TemporaryFile file, other;
  Tensor<float, 2> tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<std::int64_t> step = {7};
  SafetensorsWriter writer;
  writer.add("w", tensor.view().permute({1, 0}));
  writer.add("step", step);
  writer.write(file.path());
  const Safetensors back = load_safetensors(file.path());
  EXPECT_EQ((back.tensor<float, 2>("w")(2, 1)), 6.f);
  EXPECT_EQ((back.tensor<float, 2>("w")(0, 1)), 4.f);
  SafetensorsWriter again;
  again.add("step", step);
  again.add("w", back.tensor<float, 2>("w"));
  again.write(other.path());
  EXPECT_TRUE(std::ranges::equal(read_file(file.path()), read_file(other.path())));
}

TEST(SafetensorsWriter, NarrowTensorsStayNarrow) {
  Tensor<bfloat16, 2> weights({3, 5});
  for (Index i = 0; i < 15; ++i) weights.data()[i].bits = static_cast<std::uint16_t>(i * 4369);
  SafetensorsWriter writer;
  writer.add("stored", weights);
  writer.add("columns", weights.view().transpose());
  writer.add("wide", weights, ElementType::f32);
  writer.add("half", Tensor<float16, 1>({1}, {float16(1.f / 3)}));
  const Safetensors file(SharedBytes(writer.bytes()), "memory");
  EXPECT_EQ(file.entry("stored").type, ElementType::bf16);
  EXPECT_EQ(file.entry("half").type, ElementType::f16);
  EXPECT_EQ(std::memcmp(file.bytes("stored").data(), weights.data(), 30), 0);
  const auto stored = file.tensor<bfloat16, 2>("stored"),
             columns = file.tensor<bfloat16, 2>("columns");
  EXPECT_EQ(std::memcmp(stored.data(), weights.data(), 30), 0);
  EXPECT_EQ(columns(4, 2).bits, weights(2, 4).bits);
  EXPECT_EQ((file.tensor<float, 2>("wide")(1, 2)), static_cast<float>(weights(1, 2)));
  EXPECT_EQ((file.tensor<bfloat16, 2>("wide")(1, 2).bits), weights(1, 2).bits);
  EXPECT_EQ((file.tensor<bfloat16, 1>("half")(0).bits), bfloat16(1.f / 3).bits);
}

TEST(SafetensorsWriter, AnEmptyFile) {
  const test::TemporaryFile file;
  SafetensorsWriter().write(file.path());
  EXPECT_EQ(read_file(file.path()).size(), 16u);
  EXPECT_TRUE(load_safetensors(file.path()).entries().empty());
}

TEST(SafetensorsWriter, TensorsOfNothingMayHaveAnyExtents) {  // as the reader takes them
  SafetensorsWriter writer;
  const std::vector<Index> shape = {Index{1} << 62, Index{1} << 62, 0};
  writer.add_bytes("a", ElementType::f32, shape, {});
  const Safetensors back(SharedBytes(writer.bytes()), "x");
  EXPECT_TRUE(std::ranges::equal(back.entry("a").shape(), shape));
}

TEST(SafetensorsWriter, RefusedBeforeAnythingIsKept) {
  SafetensorsWriter writer;
  const std::vector<float> values = {1, 2};
  writer.add("a", values);
  EXPECT_EQ(test::error_of([&] { writer.add("a", values, ElementType::f16); }),
            "safetensors: tensor 'a' twice");
  for (const char* name : {"", "__metadata__", "\xff"}) {
    EXPECT_THROW(writer.add(name, values), FileError) << name;
  }
  EXPECT_EQ(test::error_of([&] { writer.add("b", values, ElementType::i32); }),
            "safetensors: tensor 'b' of F32 cannot be written as I32");
  const std::vector<std::byte> bytes(8);
  for (const Index extent : {Index{1}, Index{3}, Index{-2}, Index{1} << 62}) {
    EXPECT_THROW(writer.add_bytes("b", ElementType::f32, std::vector{extent}, bytes), FileError);
  }
  EXPECT_THROW(writer.add_bytes("b", ElementType::f32, std::vector<Index>(9, 1), bytes), FileError);
  EXPECT_THROW(writer.note("\xff", ""), FileError);
  EXPECT_THROW(writer.write("/no/such/folder/x"), FileError);
  const test::TemporaryFile file;
  writer.write(file.path());
  EXPECT_EQ(load_safetensors(file.path()).entries().size(), 1u);
  std::string names;
  for (const auto& entry : load_safetensors(file.path()).entries()) names += entry.name;
  EXPECT_EQ(names, load_safetensors(file.path()).entries()[0].name);
}

TEST(SafetensorsWriter, ShapesThatAreNoneAreRefused) {
  const auto verdict = [](std::vector<Index> shape, std::size_t bytes) {
    const std::vector<std::byte> data(bytes);
    return test::error_of(
        [&] { SafetensorsWriter().add_bytes("x", ElementType::f32, shape, data); });
  };
  EXPECT_EQ(verdict({2, 3}, 24), "accepted");
  EXPECT_EQ(verdict({0, Index{1} << 62, Index{1} << 62}, 0), "accepted");
  EXPECT_EQ(verdict({-1}, 0), "safetensors: tensor 'x': shape (-1) is none");
  EXPECT_EQ(verdict({-2, -3}, 24), "safetensors: tensor 'x': shape (-2, -3) is none");
  EXPECT_EQ(verdict({Index{1} << 62}, 0),
            "safetensors: tensor 'x': shape (4611686018427387904) is none");
  EXPECT_EQ(verdict({2, 3}, 20), "safetensors: tensor 'x': 20 bytes for shape (2, 3) of F32");
}

}  // namespace
}  // namespace heed
