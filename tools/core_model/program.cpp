// SPDX-License-Identifier: MIT
// program HEAD_DIM  calls attention of bfloat16 on tiles twice, the second time between two
// breakpoints.
#include <cstdlib>

#include <heed/attention.hpp>

#include "support/tile_emulator.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  setenv("HEED_THREADS", "1", 1);
  const heed::test::AmxForTests tiles;
  heed::test::AmxForTests::use();
  heed::Tensor<heed::bfloat16, 4> tokens({1, 1, 768, std::atoi(argv[1])});
  unsigned bits = 1;
  for (heed::bfloat16& x : tokens) {
    bits = bits * 1664525 + 1013904223;
    x = static_cast<float>(bits >> 8) * 0x1p-23f - 1;
  }
  heed::Tensor<heed::bfloat16, 4> out(tokens.extents());
  heed::attention(tokens, tokens, tokens, out);
  asm volatile("int3" ::: "memory");
  heed::attention(tokens, tokens, tokens, out);
  asm volatile("int3" ::: "memory");
}
