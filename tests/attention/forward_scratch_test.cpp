// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace heed::detail {
namespace {

TEST(ForwardScratch, ArraysDoNotOverlapAndDoNotGrowWithLength) {
  const auto scratch = divided_scratch<ForwardScratch<float>>(128, 64, false);
  struct Piece {
    const void* begin;
    std::size_t bytes;
  };
  const auto floats = [](const float* array, Index count) {
    return Piece{array, static_cast<std::size_t>(count) * sizeof(float)};
  };
  std::vector<Piece> pieces = {floats(scratch.packed, 64 * 128),
                               floats(scratch.probabilities, 64 * 96),
                               floats(scratch.total.maximum, 64),
                               floats(scratch.total.sum, 64),
                               floats(scratch.total.output, 64 * 64),
                               floats(scratch.chunk.maximum, 64),
                               floats(scratch.chunk.sum, 64),
                               floats(scratch.chunk.output, 64 * 64),
                               floats(scratch.factors, 64),
                               floats(scratch.keys, 96 * 128),
                               floats(scratch.values, 96 * 64),
                               {scratch.words, 96 * 8},
                               {scratch.kept, 96 * 8}};
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    EXPECT_LE(static_cast<const char*>(pieces[i - 1].begin) + pieces[i - 1].bytes,
              static_cast<const char*>(pieces[i].begin));
  }
  const auto* end = reinterpret_cast<const char*>(scratch.kept + 96);
  EXPECT_LT(end - reinterpret_cast<const char*>(scratch.packed), 300 * 1024);
}

}  // namespace
}  // namespace heed::detail
