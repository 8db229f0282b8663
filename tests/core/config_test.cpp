// SPDX-License-Identifier: MIT
#include <heed/core/config.hpp>

#include <gtest/gtest.h>

namespace heed {
namespace {

int evaluations = 0;
[[maybe_unused]] bool counted(bool condition) {
  ++evaluations;
  return condition;
}

TEST(Config, ExpectsChecksExactlyWhenAsked) {
  evaluations = 0;
  HEED_EXPECTS(counted(true));
#if defined(HEED_CHECKED) || !defined(NDEBUG)
  EXPECT_EQ(evaluations, 1);
  EXPECT_DEATH(HEED_EXPECTS(counted(false)), "config_test.cpp:[0-9]+: heed expects counted.false.");
#else
  EXPECT_EQ(evaluations, 0);
#endif
}

TEST(Config, ExpectsIsOneStatement) {
  int branch = 0;
  if (evaluations < 0)
    HEED_EXPECTS(true);
  else
    branch = 1;
  EXPECT_EQ(branch, 1);
}

}  // namespace
}  // namespace heed
