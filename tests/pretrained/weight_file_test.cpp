// SPDX-License-Identifier: MIT
#include <heed/pretrained/weight_file.hpp>

#include "pretrained/pretrained_files.hpp"

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

}  // namespace
}  // namespace heed::test
