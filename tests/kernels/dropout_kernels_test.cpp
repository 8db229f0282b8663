// SPDX-License-Identifier: MIT
#include <heed/kernels/attention_kernels.hpp>

#include <heed/core/philox.hpp>

#include "support/attention_cases.hpp"

namespace heed::test {
namespace {

class DropoutKernels : public ::testing::TestWithParam<simd::Isa> {
 protected:
  void SetUp() override { simd::use(GetParam()); }
  RestoreSettings restore_;
};

TEST_P(DropoutKernels, DrawTheBitsOfPhilox) {
  std::mt19937_64 bits(3);
  const auto word = [&] { return static_cast<std::uint32_t>(bits()); };
  for (int i = 0; i < 200; ++i) {
    simd::DropoutLanes at{word(), word(), word(), word(), word() % 3, word() % 3, {word(), word()}};
    at.dropped = i == 0 ? 0 : i == 1 ? 65536 : word() % 65536;
    at.lanes = 1 + static_cast<Index>(bits() % 64);
    std::uint64_t words[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    simd::dropout_kernel<>()(at, words);
    for (Index lane = 0; lane < at.lanes; ++lane) {
      const auto step = static_cast<std::uint32_t>(lane);
      const auto block = philox(
          {at.group + step * at.group_step, at.query + step * at.query_step, at.head, at.batch},
          {at.key[0], at.key[1]});
      for (unsigned draw = 0; draw < 8; ++draw) {
        const std::uint32_t value = block[draw / 2] >> (draw % 2 * 16) & 0xFFFF;
        ASSERT_EQ(words[draw] >> lane & 1, value >= at.dropped ? 1u : 0u) << i << " " << lane;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DropoutKernels, ::testing::ValuesIn(supported_sets()),
                         [](const auto& set) { return std::string(simd::name(set.param)); });

}  // namespace
}  // namespace heed::test
