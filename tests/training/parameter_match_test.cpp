// SPDX-License-Identifier: MIT
#include <heed/training/checkpoint.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <training/tiny_model.hpp>
#include <heed/io/safetensors.hpp>

namespace heed::detail {
namespace {

/// What matching a TinyModel<float> with a file says.
std::string verdict(const SafetensorsWriter& writer) {
  const Safetensors file(SharedBytes(writer.bytes()), "x");
  ParameterMatch match(file);
  TinyModel<float> model;
  match.expect("m.", model);
  try {
    match.finish("x");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(ParameterMatch, NamesWhatIsMissingOtherOrTooMuch) {
  SafetensorsWriter writer;
  writer.add("m.weight", Tensor<float, 2>({3, 4}));
  EXPECT_EQ(verdict(writer), "x: does not match the model:\n  missing: m.bias (5)");
  writer.add("m.bias", Tensor<double, 1>({5}));
  writer.add("bias", Tensor<float, 1>({5}));
  EXPECT_EQ(verdict(writer),
            "x: does not match the model:\n"
            "  other shape or type: m.bias is F64 (5), expected F32 (5)\n"
            "  not in the model: bias (5)");
}

TEST(ParameterMatch, ListsFiftyOfManyNames) {
  SafetensorsWriter writer;
  writer.add("m.weight", Tensor<float, 2>({3, 4}));
  writer.add("m.bias", Tensor<float, 1>({5}));
  EXPECT_EQ(verdict(writer), "");
  for (int i = 0; i < 1000; ++i) writer.add("n" + std::to_string(i), Tensor<float, 1>({1}));
  const std::string said = verdict(writer);
  EXPECT_NE(said.find("\n  not in the model: n0 (1)\n"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("\n  and 950 more")) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 51);
}

}  // namespace
}  // namespace heed::detail
