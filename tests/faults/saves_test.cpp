// SPDX-License-Identifier: MIT
// Saves that the system refuses or that end with the program: the old file or the new one, whole.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <heed/io.hpp>
#include <heed/models.hpp>
#include <heed/plot/heatmap.hpp>
#include <heed/plot/png.hpp>
#include <heed/training.hpp>

namespace heed::test {
namespace {

namespace fs = std::filesystem;

class FaultySaves : public ::testing::Test {
 protected:
  FaultySaves() {
    // In memory where there is such a folder: saves wait for the disk.
    folder_ = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    folder_ /= "heed_saves_" + std::to_string(::getpid());
    fs::create_directories(folder_);
    path_ = (folder_ / "file").string();
  }
  ~FaultySaves() override { fs::remove_all(folder_); }

  std::string path_;
  fs::path folder_;
};

/// What a save writes when it has `value` to save.
using Save = void (*)(const std::string& path, float value);

void save_array(const std::string& path, float value) {
  Tensor<float, 2> values({40, 9});
  std::fill(values.begin(), values.end(), value);
  write_npy(path, values);
}
void save_tensors(const std::string& path, float value) {
  SafetensorsWriter writer;
  for (const char* name : {"a", "b"}) {
    Tensor<float, 2> values({30, 9});
    std::fill(values.begin(), values.end(), value);
    writer.add(name, values);
  }
  writer.write(path);
}
void save_run(const std::string& path, float value) {
  Random random(1);
  LanguageModelOptions options;
  options.vocab_size = 5;
  options.block.model_dim = 4;
  options.block.heads = 1;
  options.layers = 1;
  options.block.hidden_dim = 4;
  options.max_length = 4;
  LanguageModel<float> model(options, random);
  for_each_parameter([&](std::string_view,
                         auto& parameter) { std::fill(parameter.begin(), parameter.end(), value); },
                     model);
  save_checkpoint(path, model, Adam<LanguageModel<float>>(model), {.step = 3});
}
void save_picture(const std::string& path, float value) {
  Tensor<float, 2> values({3, 9});
  std::fill(values.begin(), values.end(), value / 10);
  write_png(path, heatmap_of(values));
}

/// Every size of file that the system may stop at, some of them at random places.
std::vector<std::size_t> stops(std::size_t size) {
  std::vector<std::size_t> all;
  for (std::size_t at = 0; at < size; at += 1 + size / 24) all.push_back(at);
  all.push_back(size - 1);
  return all;
}

/// Whether the save came to its end in a process that may not write more than so many bytes, and is
/// killed where it tries to or told so.
bool saved_within(std::size_t bytes, bool killed, Save save, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limits{bytes, bytes}, no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setrlimit(RLIMIT_FSIZE, &limits);
    std::signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
    try {
      save(path, 2);
    } catch (const FileError&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(FaultySaves, FilesAreOldOrNewWhereverTheDiskEndsOrTheProgramIsKilled) {
  for (const Save save : {save_array, save_tensors, save_run, save_picture}) {
    save(path_, 2);
    const auto after = read_file(path_);
    save(path_, 1);
    const auto before = read_file(path_);
    ASSERT_NE(before, after);
    for (const bool killed : {true, false}) {
      for (const std::size_t bytes : stops(after.size())) {
        EXPECT_FALSE(saved_within(bytes, killed, save, path_)) << bytes << " of " << after.size();
        ASSERT_EQ(read_file(path_), before) << bytes << " of " << after.size();
        // Only who is killed leaves what was written so far, and nobody minds.
        const auto files = std::distance(fs::directory_iterator(folder_), {});
        EXPECT_TRUE(killed || files == 1) << bytes;
      }
      for (const auto& entry : fs::directory_iterator(folder_)) {
        if (entry.path() != path_) fs::remove(entry.path());
      }
    }
    EXPECT_TRUE(saved_within(after.size(), true, save, path_));
    ASSERT_EQ(read_file(path_), after);
  }
}

TEST_F(FaultySaves, FoldersThatCannotBeWrittenToAreAnError) {
  for (const Save save : {save_array, save_tensors, save_run, save_picture}) {
    EXPECT_THROW(save((folder_ / "nowhere" / "file").string(), 1), FileError);
    EXPECT_THROW(save("/proc/heed_file", 1), FileError);
    EXPECT_THROW(save(folder_.string(), 1), FileError) << "a folder is no file";
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 0);
  for (const auto& entry : fs::directory_iterator(folder_.parent_path())) {
    EXPECT_FALSE(entry.path().string().starts_with(folder_.string() + ".")) << entry.path();
  }
}

}  // namespace
}  // namespace heed::test
