// SPDX-License-Identifier: MIT
#include <heed/io/safetensors.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/file_bytes.hpp"
#include "support/temporary_file.hpp"

namespace heed {
namespace {

TEST(SafetensorsWriter, WritesTheTensorsOfTheReferenceAgain) {
  // The golden file was written by the reference implementation.
  const auto path = HEED_TEST_DATA "/safetensors/all_types.safetensors";
  const Safetensors golden = load_safetensors(path);
  const test::TemporaryFile file;
  SafetensorsWriter writer;
  for (const char* name : {"f16", "f64", "bf16", "f32"}) {  // in any order
    writer.add(name, golden.tensor<double, 2>(name), golden.entry(name).type);
  }
  writer.add("empty", golden.tensor<float, 2>("empty"));
  writer.add("odd \"name\"\\\né😀", golden.tensor<float, 1>("odd \"name\"\\\né😀"));
  writer.add("i64", golden.tensor<std::int64_t, 2>("i64"));
  writer.add("i32", golden.tensor<std::int32_t, 2>("i32"));
  writer.add("u8", golden.tensor<std::uint8_t, 2>("u8"));
  writer.add("bool", golden.tensor<bool, 2>("bool"));
  const SafetensorsEntry& scalar = golden.entry("scalar");
  writer.add_bytes("scalar", scalar.type, scalar.shape(), golden.bytes("scalar"));
  writer.note("note", "café \x01");
  writer.write(file.path());
  const Safetensors back = load_safetensors(file.path());
  EXPECT_TRUE(std::ranges::equal(writer.bytes(), read_file(file.path())));
  EXPECT_EQ(back.entries().size(), golden.entries().size());
  for (const SafetensorsEntry& entry : back.entries()) {
    const SafetensorsEntry& same = golden.entry(entry.name);
    EXPECT_EQ(entry.type, same.type);
    EXPECT_TRUE(std::ranges::equal(entry.shape(), same.shape()));
    EXPECT_TRUE(std::ranges::equal(back.bytes(entry.name), golden.bytes(entry.name))) << entry.name;
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
