// SPDX-License-Identifier: MIT
#include <heed/attention/detail/pass.hpp>

#include <heed/masks/intervals.hpp>

#include "support/score_mods.hpp"

namespace heed::test {
namespace {

TEST(RowScoreMods, BiasesOfRowsAreThoseOfLanes) {
  // Two heads, three queries each, as rows; numbers by definition.
  const Shape shape{1, 2, 1, 3, 50, 4, 4};
  const Inputs<float> in(shape, 5);
  const Changes<float> score_mods(shape, 6);
  Tensor<float, 4> out({1, 2, 3, 4});
  const auto options = score_mods.options(Changes<float>::alibi | Changes<float>::bias);
  const auto args = detail::checked_args<float>(view_of(in.queries), view_of(in.keys),
                                                view_of(in.values), out.view(), options);
  const auto scratch = detail::divided_scratch<detail::DecodeScratch<float>>(6, 4, 4, true);
  detail::RowScoreMods<float> rows(args, scratch, 0, 0);
  simd::KeyBlock<float> block;
  block.count = 3;
  const Index keys[] = {7, 20, 49};
  rows.attach(block, keys, 6);
  for (Index head = 0; head < 2; ++head) {
    for (Index query = 0; query < 3; ++query) {
      for (Index i = 0; i < 3; ++i) {
        const double expected =
            1.4426950408889634 *
            (static_cast<double>(score_mods.bias_table(0, head, query, keys[i])) -
             static_cast<double>(score_mods.slopes[static_cast<std::size_t>(head)]) *
                 std::fabs(static_cast<double>(47 + query - keys[i])));
        const float bias = block.score_mod->bias[(head * 3 + query) * simd::row_keys + i];
        EXPECT_NEAR(static_cast<double>(bias), expected, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
