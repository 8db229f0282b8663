// SPDX-License-Identifier: MIT
#include <heed/io/file.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace heed {
namespace {

TEST(FileError, MessageIsThePartsInARow) {
  try {
    throw_file_error("weights.npy", ": byte ", 17, ": shape ", std::vector<Index>{2, 3});
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "weights.npy: byte 17: shape (2, 3)");
  }
}

}  // namespace
}  // namespace heed
