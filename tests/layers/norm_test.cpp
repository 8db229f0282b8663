// SPDX-License-Identifier: MIT
#include <heed/layers/norm.hpp>

#include "laws/any_rank.hpp"

namespace heed::test {
namespace {

auto maker(NormKind kind) {
  return [kind](auto scalar) { return Norm<decltype(scalar)>({.kind = kind, .dim = 7}); };
}

TEST(Norm, KeepsTheLawsAsEitherKind) {
  check_layer_laws(maker(NormKind::layer), {2, 3, 7}, {"weight", "bias"});
  check_layer_laws(maker(NormKind::rms), {2, 3, 7}, {"weight"});
}

TEST(Norm, TakesRowsOfAnyRankAsEitherKind) {
  expect_any_rank(maker(NormKind::layer)(float{}), 7);
  expect_any_rank(maker(NormKind::rms)(float{}), 7);
}

}  // namespace
}  // namespace heed::test
