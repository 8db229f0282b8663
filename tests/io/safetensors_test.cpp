// SPDX-License-Identifier: MIT
#include <heed/io/safetensors.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/file_bytes.hpp"
#include "support/models.hpp"

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

}  // namespace
}  // namespace heed
