// SPDX-License-Identifier: MIT
#include <heed/core/version.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(Version, TextIsMadeOfTheNumbers) {
  EXPECT_EQ(HEED_VERSION, std::to_string(HEED_VERSION_MAJOR) + "." +
                              std::to_string(HEED_VERSION_MINOR) + "." +
                              std::to_string(HEED_VERSION_PATCH));
}

}  // namespace
