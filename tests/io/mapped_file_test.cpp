// SPDX-License-Identifier: MIT
#include <heed/io/file.hpp>

#include <gtest/gtest.h>

#include <string_view>

#include "support/file_bytes.hpp"
#include "support/temporary_file.hpp"

namespace heed {
namespace {

using test::bytes_of;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheFileAndKeepsItWhenItIsReplaced) {
  const test::TemporaryFile file;
  write_file(file.path(), bytes_of("old"));
  MappedFile old(file.path());
  EXPECT_EQ(text_of(old), "old");
  write_file(file.path(), bytes_of("newer"));
  EXPECT_EQ(text_of(old), "old");
  EXPECT_EQ(text_of(MappedFile(file.path())), "newer");

  const std::byte* where = old.bytes().data();
  MappedFile moved = std::move(old);
  EXPECT_EQ(moved.bytes().data(), where);
  EXPECT_TRUE(old.bytes().empty());  // NOLINT: what was moved from holds nothing
  old = std::move(moved);
  EXPECT_EQ(text_of(old), "old");
}

TEST(MappedFile, EmptyFilesAndWhatIsNoFile) {
  const test::TemporaryFile file;
  write_file(file.path(), {});
  EXPECT_TRUE(MappedFile(file.path()).bytes().empty());
  EXPECT_THROW(MappedFile("/"), FileError);
  EXPECT_EQ(test::error_of([] { MappedFile("/no/such/file"); }),
            "/no/such/file: No such file or directory");
}

}  // namespace
}  // namespace heed
