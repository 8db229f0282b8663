// SPDX-License-Identifier: MIT
#include <heed/io/file.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/file_bytes.hpp"
#include "support/sanitizers.hpp"
#include "support/temporary_file.hpp"

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

namespace fs = std::filesystem;

/// An empty folder that goes away with the test.
class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("heed_file_" + std::to_string(::getpid()) + "_" + test->name());
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static void write(const std::string& path, std::string_view text) {
    write_file(path, std::as_bytes(std::span(text)));
  }
  static std::string read(const std::string& path) {
    const auto bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  fs::path folder_;
};

TEST_F(FileTest, LinksArePassedThroughAndPipesWrittenTo) {
  write(path("target"), "old");
  fs::create_symlink("target", path("link"));
  write(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("target")), "new");
  EXPECT_EQ(entries(), 2U);

  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write(path("pipe"), "through");
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(entries(), 3U);
}

TEST_F(FileTest, WhatALinkNamesIsCreatedWhereItIsMissing) {
  fs::create_directory(folder_ / "inside");
  fs::create_symlink("inside/target", path("link"));
  fs::create_symlink("link", path("far"));
  write(path("far"), "new");
  EXPECT_TRUE(fs::is_symlink(path("far")));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("inside/target")), "new");
  fs::remove(path("inside/target"));
  const auto before = fs::current_path();
  fs::current_path(folder_);
  write("far", "newer");
  fs::current_path(before);
  EXPECT_EQ(read(path("inside/target")), "newer");

  fs::create_symlink(path("absolute"), path("to_root"));
  write(path("to_root"), "there");
  EXPECT_TRUE(fs::is_symlink(path("to_root")));
  EXPECT_EQ(read(path("absolute")), "there");
  fs::create_symlink("missing/target", path("astray"));
  EXPECT_THROW(write(path("astray"), "text"), FileError);
  fs::create_symlink("circle", path("circle"));
  EXPECT_THROW(write(path("circle"), "text"), FileError);
  EXPECT_TRUE(fs::is_symlink(path("circle")));
}

TEST_F(FileTest, NamesMayBeAsLongAsTheFileSystemTakes) {
  for (const std::size_t length : {120u, 241u, 242u, 255u}) {
    const std::string name = path(std::string(length, 'n').c_str());
    write(name, "old");
    write(name, "new");
    EXPECT_EQ(read(name), "new") << length;
  }
  std::string letters = "x";  // cut within a letter, which some file systems refuse
  while (letters.size() < 254) letters += "\u00e4";
  write(path(letters.c_str()), "text");
  EXPECT_EQ(read(path(letters.c_str())), "text");
  EXPECT_EQ(entries(), 5u) << "temporary files stayed behind";
  EXPECT_THROW(write(path(std::string(256, 'n').c_str()), "text"), FileError);
}

TEST_F(FileTest, DevicesStayDevices) {
  fs::create_symlink("/dev/null", path("null"));  // not itself, in case it is replaced after all
  write(path("null"), "gone");
  EXPECT_TRUE(fs::is_character_file(path("null")));
  fs::create_symlink("/dev/full", path("full"));
  if (!fs::exists(path("full"))) GTEST_SKIP() << "no /dev/full";
  EXPECT_THROW(write(path("full"), "no room"), FileError);
}

TEST_F(FileTest, DescriptorsAreWrittenToWhereTheyAre) {
  write(path("log"), "old ");
  const int log = ::open(path("log").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(log, 0);
  const std::string number = std::to_string(log);
  ASSERT_EQ(::write(log, "before ", 7), 7);
  write("/dev/fd/" + number, "between ");
  fs::create_symlink("/proc/self/fd/" + number, path("link"));  // as /dev/stdout is one
  write(path("link"), "and ");
  ASSERT_EQ(::write(log, "after", 5), 5);
  ::close(log);
  EXPECT_EQ(read(path("log")), "old before between and after");
  EXPECT_EQ(entries(), 2U);
  EXPECT_THROW(write("/dev/fd/" + number, "closed"), FileError);
  EXPECT_THROW(write("/dev/fd/99999999999999999999", "none"), FileError);
}

TEST_F(FileTest, PathsEndAtNoNul) {
  EXPECT_THROW(write(std::string("a\0b", 3), "text"), FileError);
  EXPECT_THROW(read_file(std::string("a\0b", 3)), FileError);
}

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  const std::string text("a\0b\xff\n", 5);
  write(path("x"), text);
  EXPECT_EQ(read(path("x")), text);
  write(path("x"), "");
  EXPECT_EQ(read(path("x")), "");
  EXPECT_EQ(entries(), 1u) << "temporary files stayed behind";
}

TEST_F(FileTest, ReplacingKeepsPermissionsAndOpenReadersSeeTheOldFile) {
  write(path("x"), "old");
  fs::permissions(path("x"), fs::perms::owner_read | fs::perms::owner_write);
  std::ifstream reader(path("x"));
  write(path("x"), "newer");
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old") << "overwritten in place, not renamed over";
}

std::string watched;
volatile mode_t seen_mode = 0;

TEST_F(FileTest, WhileItIsWrittenANewFileIsOpenToNoMoreThanTheOldOne) {
  write(path("x"), "old");
  ASSERT_EQ(::chmod(path("x").c_str(), 0600), 0);
  watched = path("x") + "." + std::to_string(::getpid()) + "-0.tmp";
  // A limit stops the writer in the middle of the file, where the handler looks at it.
  const auto previous = std::signal(SIGXFSZ, [](int) {
    struct stat status {};
    seen_mode = ::stat(watched.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  });
  const mode_t mask = ::umask(0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(write(path("x"), "newer"), FileError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::umask(mask);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(static_cast<unsigned>(seen_mode), 0600u);
  EXPECT_EQ(read(path("x")), "old");
}

TEST_F(FileTest, NewFilesObeyTheUmask) {
  const mode_t old = ::umask(027);
  write(path("x"), "text");
  ::umask(old);
  EXPECT_EQ(static_cast<unsigned>(fs::status(path("x")).permissions()), 0640u);
}

TEST_F(FileTest, AFailedWriteLeavesNothingBehind) {
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_THROW(write(path("taken"), "text"), FileError);  // the rename fails at last
  EXPECT_THROW(write(path("missing/x"), "text"), FileError);
  EXPECT_EQ(entries(), 1u);
  try {
    write(path("taken"), "text");
  } catch (const FileError& error) {
    EXPECT_EQ(std::string(error.what()).find(path("taken") + ": "), 0u) << error.what();
  }
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_THROW(read_file(path(".")), FileError);
  EXPECT_THROW(read_file(path("missing")), FileError);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_file(path("pipe")), FileError) << "and does not wait for a writer";
}

TEST_F(FileTest, AFileLargerThanMemoryIsAnError) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers end a program that asks for this much";
  write(path("x"), "");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  int tried = 0;
  // What a vector cannot count, what an address cannot, and what the limit below does not allow.
  for (const int bits : {63, 50, 42, 40}) {
    const off_t size = std::numeric_limits<off_t>::max() >> (63 - bits);
    if (::truncate(path("x").c_str(), size) != 0)
      continue;  // file systems differ in what they take
    ++tried;
    const rlimit limit{rlim_t{1} << 36, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
    std::string said = "read";
    try {
      read_file(path("x"));
    } catch (const FileError& error) {
      said = error.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(said, path("x") + ": no memory for its " + std::to_string(size) + " bytes");
  }
  if (tried == 0) GTEST_SKIP() << "the file system holds no file of a terabyte";
}

TEST_F(FileTest, ANameTakenByAnotherWriterIsSkipped) {
  const std::string taken = path("x") + "." + std::to_string(::getpid()) + "-0.tmp";
  write(taken, "another writer's");
  write(path("x"), "mine");
  EXPECT_EQ(read(taken), "another writer's");
  EXPECT_EQ(read(path("x")), "mine");
}

TEST(Folder, OfAPath) {
  EXPECT_EQ(detail::folder_of("x"), ".");
  EXPECT_EQ(detail::folder_of("/x"), "/");
  EXPECT_EQ(detail::folder_of("a/b/x"), "a/b");
}

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
