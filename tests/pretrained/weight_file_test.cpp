// SPDX-License-Identifier: MIT
#include <heed/pretrained/load_weights.hpp>

#include <cmath>
#include <limits>

#include <heed/io/safetensors.hpp>

#include "pretrained/pretrained_files.hpp"
#include "support/gguf_file.hpp"

namespace heed::test {
namespace {

TEST(WeightFile, OneFaceForBothFormats) {
  const auto safetensors = weights_of(pretrained_golden("llama/model.safetensors"));
  const WeightFile gguf(Gguf::open(std::string(HEED_TEST_DATA) + "/gguf/all_types.gguf"));
  for (const auto* file : {&safetensors, &gguf}) {
    ASSERT_FALSE(file->names().empty());
    for (const auto& name : file->names()) {
      EXPECT_TRUE(file->contains(name));
      EXPECT_FALSE(file->shape(name).empty()) << name;
      EXPECT_FALSE(file->type(name).empty()) << name;
    }
    EXPECT_FALSE(file->contains("no such weight"));
    EXPECT_THROW(file->shape("no such weight"), FileError);
    EXPECT_GT(file->bytes(), 100u);
  }
  EXPECT_NE(gguf.name().find("all_types.gguf"), std::string::npos);
  const auto norm = safetensors.tensor<float, 1>("model.norm.weight");
  EXPECT_EQ(norm.extents(), (Extents<1>{12}));
  EXPECT_NE(norm(0), 0);
}

TEST(WeightFile, SaysWhichTypesItReads) {
  const WeightFile gguf(Gguf::open(std::string(HEED_TEST_DATA) + "/gguf/all_types.gguf"));
  int readable = 0;
  for (const auto& name : gguf.names()) {
    if (gguf.shape(name).size() != 2) continue;
    readable += gguf.is_readable<double>(name) ? 1 : 0;
    EXPECT_EQ(file_error_of([&] { gguf.tensor<double, 2>(name); }).empty(),
              gguf.is_readable<double>(name))
        << gguf.type(name);
  }
  EXPECT_GT(readable, 2);
  const auto safetensors = weights_of(pretrained_golden("llama/model.safetensors"));
  EXPECT_EQ(safetensors.type("model.norm.weight"), "F32");
  EXPECT_TRUE(safetensors.is_readable<double>("model.norm.weight"));
  EXPECT_FALSE(safetensors.is_readable<std::int64_t>("model.norm.weight"));
}

/// A GGUF file of one tensor.
WeightFile gguf_with(std::initializer_list<std::uint64_t> shape, std::uint32_t type,
                     const std::string& data) {
  GgufFile file;
  file.tensor("t", shape, type, 0);
  file.data = data;
  return WeightFile(Gguf(SharedBytes(bytes_of(file.text())), "x"));
}

TEST(WeightFile, FindsWeightsThatAreNotFiniteWhenAsked) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto data = [](Index count, Index at, float value) {
    std::string text;
    for (Index i = 0; i < count; ++i) text += raw(i == at ? value : 1.f);
    return text;
  };
  for (const Index at : {0, 1, 1023, 1024, 2999}) {
    const auto bad = gguf_with({1000, 3}, 0, data(3000, at, std::nanf("")));
    EXPECT_EQ(file_error_of([&] { bad.check_finite(); }),
              "x: byte " + std::to_string(96 + 4 * at) + ": tensor 't': a weight is nan");
  }
  EXPECT_EQ(file_error_of([&] { gguf_with({30}, 0, data(30, -1, 0)).check_finite(); }), "");
  EXPECT_EQ(file_error_of([&] { gguf_with({30}, 26, data(30, 1, infinity)).check_finite(); }), "")
      << "integers";
  // Q8_0: the second block's scale is half precision's infinity.
  std::string blocks(2 * 34, '\1');
  blocks[34] = 0;
  blocks[35] = 0x7c;
  EXPECT_EQ(file_error_of([&] { gguf_with({64}, 8, blocks).check_finite(); }),
            "x: byte 98: tensor 't': a weight is inf");
  SafetensorsWriter writer;
  writer.add("a", Tensor<double, 2>({2, 2}, {1, 1e300, 3, -HUGE_VAL}));
  writer.add("i", Tensor<std::int64_t, 1>({1}, {7}));
  const Safetensors read(SharedBytes(writer.bytes()), "x");
  const auto byte = read.entry("a").begin + 24;
  EXPECT_EQ(file_error_of([&] { WeightFile(read).check_finite(); }),
            "x: byte " + std::to_string(byte) + ": tensor 'a': a weight is -inf");
  weights_of(pretrained_golden("llama/model.safetensors")).check_finite();
}

}  // namespace
}  // namespace heed::test
