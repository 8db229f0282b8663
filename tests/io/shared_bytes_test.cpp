// SPDX-License-Identifier: MIT
#include <heed/io/file.hpp>

#include <gtest/gtest.h>

#include <algorithm>

#include "support/file_bytes.hpp"
#include "support/temporary_file.hpp"

namespace heed {
namespace {

TEST(SharedBytes, LiveUntilTheLastCopyGoes) {
  const test::TemporaryFile file;
  write_file(file.path(), test::bytes_of("mapped"));
  EXPECT_TRUE(SharedBytes().get().empty());
  SharedBytes kept;
  {
    const SharedBytes first{MappedFile(file.path())};
    kept = first;
  }
  EXPECT_TRUE(std::ranges::equal(kept.get(), test::bytes_of("mapped")));
  kept = SharedBytes(test::bytes_of("in memory"));
  EXPECT_TRUE(std::ranges::equal(kept.get(), test::bytes_of("in memory")));
}

}  // namespace
}  // namespace heed
