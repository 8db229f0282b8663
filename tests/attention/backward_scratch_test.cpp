// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace heed::detail {
namespace {

TEST(BackwardScratch, RowsArePaddedAndArraysAreApart) {
  const auto scratch = divided_scratch<BackwardScratch<float>>(19, 40, 16);
  EXPECT_EQ(scratch.head_row, 32);
  EXPECT_EQ(scratch.value_row, 48);
  const Index sizes[] = {64 * 32,
                         64 * 48,
                         64 * 19,
                         64 * 48,
                         64 * 96,
                         64 * 96,
                         64 * 32,
                         64 * 32,
                         backward_chunk * 32,
                         backward_chunk * 48,
                         96 * 19,
                         96 * 40,
                         96 * 32,
                         96 * 48};
  float* const arrays[] = {scratch.queries,         scratch.grad_output,    scratch.packed_queries,
                           scratch.packed_gradient, scratch.probabilities,  scratch.grad_scores,
                           scratch.grad_queries,    scratch.rows,           scratch.chunk.keys,
                           scratch.chunk.values,    scratch.keys,           scratch.values,
                           scratch.gathered.keys,   scratch.gathered.values};
  for (int i = 0; i < 14; ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrays[i]) % 64, 0u);
    for (Index j = 0; j < sizes[i]; ++j) arrays[i][j] = static_cast<float>(i);
  }
  for (int i = 0; i < 14; ++i) {
    EXPECT_EQ(arrays[i][0], static_cast<float>(i));
    EXPECT_EQ(arrays[i][sizes[i] - 1], static_cast<float>(i));
  }
  std::memset(scratch.words, 1, 96 * sizeof(std::uint64_t));
  std::memset(scratch.kept, 1, 96 * sizeof(Index));
  EXPECT_EQ(scratch.gathered.values[0], 13.f);
}

}  // namespace
}  // namespace heed::detail
