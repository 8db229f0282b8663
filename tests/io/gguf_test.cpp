// SPDX-License-Identifier: MIT
#include <heed/io/gguf.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <heed/core/quantized.hpp>
#include <heed/io/safetensors.hpp>

#include "support/gguf_file.hpp"
#include "support/models.hpp"

namespace heed {
namespace {

/// Every range of a tensor equals that part of the whole.
template <class Block>
void expect_ranges(std::uint32_t id) {
  constexpr Index blocks = 3, size = blocks * Block::length;
  std::vector<std::byte> data(blocks * sizeof(Block) + 1);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37 % 59);
  const std::byte* odd = data.data() + 1;  // blocks need no alignment
  std::vector<float> whole(size);
  dequantize(*gguf_type(id), odd, 0, whole);
  for (Index first = 0; first <= size; first += 5) {
    for (Index count = 0; first + count <= size; count += 7) {
      std::vector<float> part(static_cast<std::size_t>(count) + 1, -7.f);
      dequantize(*gguf_type(id), odd, first,
                 std::span(part).first(static_cast<std::size_t>(count)));
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, static_cast<std::size_t>(count) * 4),
                0)
          << first << " " << count;
      EXPECT_EQ(part.back(), -7.f);
    }
  }
}

TEST(Dequantize, EveryRangeIsThatPartOfTheWhole) {
  expect_ranges<Q8_0>(8);
  expect_ranges<Q4_0>(2);
  expect_ranges<Q4_1>(3);
  expect_ranges<Q6_K>(14);
}

TEST(Dequantize, PlainTypes) {
  const double values[] = {1.5, -0.1};
  float out[1];
  dequantize(*gguf_type(28), reinterpret_cast<const std::byte*>(values), 1, out);
  EXPECT_EQ(out[0], -0.1f);
  const std::uint16_t halves[] = {0, 0x3fc0};
  dequantize(*gguf_type(30), reinterpret_cast<const std::byte*>(halves), 1, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_FALSE(is_dequantizable(*gguf_type(12)));
  EXPECT_FALSE(is_dequantizable(*gguf_type(26)));
}

const std::string golden = HEED_TEST_DATA "/gguf/all_types.gguf";

TEST(Gguf, MetadataOfEveryType) {  // by tools/make_file_goldens.py
  const Gguf file = Gguf::open(golden);
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.value<std::string_view>("general.architecture"), "test");
  EXPECT_EQ(file.value<int>("test.uint8"), 200);
  EXPECT_EQ(file.value<int>("test.int8"), -100);
  EXPECT_EQ(file.value<int>("test.uint16"), 60000);
  EXPECT_EQ(file.value<int>("test.int16"), -30000);
  EXPECT_EQ(file.value<Index>("test.uint32"), 4'000'000'000);
  EXPECT_EQ(file.value<int>("test.int32"), -2'000'000'000);
  EXPECT_EQ(file.value<std::uint64_t>("test.uint64"), std::uint64_t{1} << 63);
  EXPECT_EQ(file.value<Index>("test.int64"), std::numeric_limits<Index>::min());
  EXPECT_EQ(file.value<float>("test.float32"), 0.1f);
  EXPECT_EQ(file.value<double>("test.float64"), 0.1);
  EXPECT_TRUE(file.value<bool>("test.bool"));
  EXPECT_EQ(file.value<std::string_view>("test.string"), "café 😀");
  EXPECT_EQ(file.values<int>("test.integers"), (std::vector<int>{1, -2, 3}));
  EXPECT_EQ(file.values<double>("test.floats"), (std::vector<double>{0.5, -0.25}));
  EXPECT_EQ(file.values<std::string_view>("test.texts"),
            (std::vector<std::string_view>{"a", "", "中"}));
  EXPECT_EQ(file.values<bool>("test.bools"), (std::vector<bool>{true, false}));
  EXPECT_EQ(file.field("test.nested").count, 2u);
  EXPECT_EQ(file.field("test.nested").type, GgufValueType::array);
  EXPECT_EQ(file.value("missing", 7), 7);
  EXPECT_EQ(file.value("test.uint8", 7), 200);
}

TEST(Gguf, TensorsEqualTheReferencesBitForBit) {
  const Gguf file = Gguf::open(golden);
  const Safetensors expected = load_safetensors(HEED_TEST_DATA "/gguf/all_types.safetensors");
  for (const char* name : {"Q8_0", "Q4_0", "Q4_1", "Q6_K"}) {
    const auto weights = file.tensor<float, 2>(name);
    const auto reference = expected.tensor<float, 2>(name);
    ASSERT_EQ(weights.extents(), reference.extents());
    for (Index i = 0; i < weights.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(weights.data()[i]),
                std::bit_cast<std::uint32_t>(reference.data()[i]))
          << name << " " << i;
    }
    EXPECT_EQ((file.tensor<double, 2>(name)(2, 5)), static_cast<double>(reference(2, 5)));
    std::vector<float> row(40);
    file.read(name, weights.extent(1) - 7, row);
    EXPECT_EQ(std::memcmp(row.data(), reference.data() + weights.extent(1) - 7, 160), 0);
  }
  for (const char* name : {"F32", "F16", "BF16"}) {
    const auto weights = file.tensor<float, 3>(name);
    ASSERT_EQ(weights.extents(), (Extents<3>{2, 3, 5}));
    EXPECT_EQ(std::memcmp(weights.data(), expected.tensor<float, 3>(name).data(), 120), 0) << name;
  }
  const auto same_bytes = [&](const char* name, const auto& narrow) {
    return std::memcmp(narrow.data(), file.bytes(name).data(), file.bytes(name).size()) == 0;
  };
  EXPECT_TRUE(same_bytes("BF16", file.tensor<bfloat16, 3>("BF16")));
  EXPECT_TRUE(same_bytes("F16", file.tensor<float16, 3>("F16")));
  EXPECT_TRUE(file.entry("BF16").is_readable_as<bfloat16>());
  EXPECT_EQ((file.tensor<bfloat16, 3>("F32")(1, 2, 4).bits),
            bfloat16(file.tensor<float, 3>("F32")(1, 2, 4)).bits);
  EXPECT_EQ(file.bytes("Q8_0").size(), 3u * 96 / 32 * 34);
}

TEST(Gguf, ErrorsNameFileAndField) {
  const Gguf file = Gguf::open(golden);
  const auto says = [&](const auto& call, const std::string& words) {
    EXPECT_EQ(test::error_of(call), golden + ": " + words);
  };
  says([&] { file.value<int>("missing"); }, "no field 'missing'");
  says([&] { file.value<int>("test.integers"); }, "byte 436: 'test.integers' is an array");
  says([&] { file.values<int>("test.uint8"); }, "byte 90: 'test.uint8' is no array");
  says([&] { file.value<int>("test.string"); },
       "byte 381: 'test.string' is text, expected an integer");
  says([&] { file.values<int>("test.nested"); },
       "byte 624: 'test.nested' is array, expected an integer");
  says([&] { file.value<std::int8_t>("test.uint8"); },
       "byte 90: 'test.uint8': 200 is out of range");
  says([&] { file.tensor<float, 1>("missing"); }, "no tensor 'missing'");
  says([&] { file.tensor<float, 2>("F32"); },
       "tensor 'F32': shape (2, 3, 5) has rank 3, expected 2");
  says([&] { file.tensor<float, 1>("I32"); }, "tensor 'I32': type I32 is not read");
  float out[2];
  EXPECT_THROW(file.read("F32", 29, out), ShapeError);
  EXPECT_THROW(file.read("F32", -1, out), ShapeError);
  EXPECT_THROW(Gguf::open("/no/such/file"), FileError);
}

TEST(Gguf, TensorsOfNothingMayHaveAnyExtents) {  // 2^124 · 0 weights; found by fuzzing
  test::GgufFile file;
  constexpr std::uint64_t large = std::uint64_t{1} << 62;
  file.tensor("t", {large, large, 0}, 0, 0);
  file.tensor("u", {0, large, large}, 0, 0);
  file.tensor("v", {3, 2}, 0, 0);
  file.data = std::string(24, '\0');
  const Gguf read(SharedBytes(test::bytes_of(file.text())), "x");
  for (const char* name : {"t", "u"}) {
    EXPECT_EQ(read.entry(name).size(), 0);
    read.read(name, 0, {});
    float weight = 0;
    EXPECT_THROW(read.read(name, 0, {&weight, 1}), ShapeError);
    EXPECT_TRUE((read.tensor<float, 3>(name).empty()));
  }
  EXPECT_EQ(read.entry("v").size(), 6);
}

TEST(Gguf, NothingStandsTwice) {
  test::GgufFile file;
  file.field("a", 0, "x");
  file.field("a", 0, "x");
  const auto open = [](const std::string& text) { Gguf(SharedBytes(test::bytes_of(text)), "x"); };
  EXPECT_EQ(test::error_of([&] { open(file.text()); }), "x: byte 46: 'a' twice");
  test::GgufFile other;
  other.tensor("t", {0}, 0, 0);
  other.tensor("t", {0}, 0, 0);
  other.data = "x";
  EXPECT_EQ(test::error_of([&] { open(other.text()); }), "x: byte 65: tensor 't' twice");
}

TEST(Gguf, CopiesShareTheFileAndOutliveIt) {
  Gguf copy = [] { return Gguf::open(golden); }();
  const Gguf second = copy;
  copy = Gguf::open(golden);
  EXPECT_EQ(second.value<std::string_view>("general.architecture"), "test");
  EXPECT_EQ((second.tensor<float, 3>("F32").size()), 30);
}

TEST(Gguf, EveryTruncationIsAnError) {
  const auto good = read_file(golden);
  std::size_t end = 0;  // of the last tensor; only padding follows
  const Gguf whole = Gguf::open(golden);
  for (const GgufTensor& tensor : whole.entries()) end = std::max(end, tensor.end);
  EXPECT_LT(good.size() - end, 32u);
  for (std::size_t size = 0; size < end; ++size) {
    std::vector<std::byte> part(good.begin(), good.begin() + static_cast<Index>(size));
    ASSERT_THROW(Gguf(SharedBytes(std::move(part)), "x"), FileError) << size;
  }
}

TEST(Gguf, EveryFlippedByteIsAnErrorOrReadable) {
  const auto good = read_file(golden);
  const std::uint64_t seed = 20261124;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 bits(seed);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    for (std::uint64_t change = 0; change <= bits() % 3; ++change) {
      bytes[bits() % 1500] = static_cast<std::byte>(bits());
    }
    try {
      const Gguf file(SharedBytes(std::move(bytes)), "x");
      ++accepted;
      for (const GgufField& field : file.fields()) {
        if (field.holds<std::string_view>()) field.values<std::string_view>();
        if (field.holds<double>()) field.values<double>();
        if (field.holds<bool>()) field.values<bool>();
      }
      for (const GgufTensor& tensor : file.entries()) {
        if (tensor.rank == 2 && is_dequantizable(*tensor.type)) file.tensor<float, 2>(tensor.name);
      }
    } catch (const FileError&) {
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 19000);
}

TEST(Gguf, EveryWeightOfTheRealModel) {
  HEED_NEEDS_MODELS();
  const Gguf file = Gguf::open(test::model_file("smollm2.gguf"));
  EXPECT_EQ(file.value<std::string_view>("tokenizer.ggml.pre"), "smollm");
  EXPECT_EQ(file.values<std::string_view>("tokenizer.ggml.tokens").size(), 49152u);
  std::ifstream sums(HEED_TEST_DATA "/gguf/smollm2_sums.txt");
  std::string name, expected;
  std::size_t compared = 0;
  while (sums >> name >> expected) {
    const GgufTensor& tensor = file.entry(name);
    std::vector<float> weights(static_cast<std::size_t>(
        tensor.rank == 1 ? tensor.extents[0] : tensor.extents[0] * tensor.extents[1]));
    file.read(name, 0, weights);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sum += std::bit_cast<std::uint32_t>(weights[i]) * (2 * std::uint64_t{i} + 1);
    }
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(sum));
    EXPECT_EQ(text, expected) << name;
    ++compared;
  }
  EXPECT_EQ(compared, file.entries().size());
}

}  // namespace
}  // namespace heed
