// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <heed/core/index.hpp>

namespace heed {

/// How a GGUF file stores a tensor's weights: in blocks of so many weights and bytes.
struct GgufType {
  std::uint32_t id = 0;
  std::string_view name;
  Index block_length = 1, block_bytes = 1;
};

namespace detail {

/// Every type of the format. heed turns those of `dequantize` into floats, and knows the size of
/// the others. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
inline constexpr std::array<GgufType, 34> gguf_types = {{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 40},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
}};

}  // namespace detail

/// The type with that number, or null.
inline const GgufType* gguf_type(std::uint32_t id) {
  for (const GgufType& type : detail::gguf_types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace heed
