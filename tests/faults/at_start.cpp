// SPDX-License-Identifier: MIT
// Computes before the constructor of libgcc that asks the processor what it can do. Ends with 0
// only where the program then has the instruction set that it would choose later.
#include <cstdlib>

#include <heed/attention.hpp>
#include <heed/kernels/isa.hpp>

namespace {

/// The set of the first call, made at the first priority that a program may have.
heed::simd::Isa at_start = heed::simd::Isa::scalar;
__attribute__((constructor(101))) void compute() {
  const heed::Tensor<float, 3> x({1, 20, 8});
  heed::attention(x, x, x);
  at_start = heed::simd::active();
}

}  // namespace

int main() {
  const auto now = heed::simd::detail::choose(std::getenv("HEED_ISA"), heed::simd::supported);
  return now == at_start ? 0 : 1;
}
