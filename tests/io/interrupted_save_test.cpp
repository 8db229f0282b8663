// SPDX-License-Identifier: MIT
// A save that ends at any moment leaves the old file or the new one, whole.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <heed/io/safetensors.hpp>

namespace heed {
namespace {

namespace fs = std::filesystem;

class InterruptedSave : public ::testing::Test {
 protected:
  InterruptedSave() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("heed_save_" + std::to_string(::getpid()) + "_" + test->name());
    fs::create_directories(folder_);
    path_ = (folder_ / "model.safetensors").string();
  }
  ~InterruptedSave() override { fs::remove_all(folder_); }

  /// A model whose every weight is `value`.
  static SafetensorsWriter model(float value) {
    SafetensorsWriter writer;
    for (const char* name : {"a", "b", "c"}) {
      Tensor<float, 2> weights({64, 50});
      std::fill(weights.begin(), weights.end(), value);
      writer.add(name, weights);
    }
    return writer;
  }
  /// The value of all weights of the file, which must load.
  float loaded() const {
    const Safetensors file = load_safetensors(path_);
    EXPECT_EQ(file.entries().size(), 3u);
    const float value = file.tensor<float, 2>("a")(0, 0);
    for (const char* name : {"a", "b", "c"}) {
      for (const float weight : file.tensor<float, 2>(name))
        EXPECT_EQ(weight, value) << "a mixture";
    }
    return value;
  }
  /// Runs `save` in another process, which `before` prepares; whether it came to its end.
  template <class Before, class Save>
  static bool in_child(const Before& before, const Save& save) {
    const pid_t child = ::fork();
    if (child == 0) {
      before();
      try {
        save();
      } catch (const FileError&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(InterruptedSave, KilledOrRefusedAfterAnyNumberOfBytes) {
  model(1).write(path_);
  const auto size = static_cast<std::size_t>(fs::file_size(path_));
  const SafetensorsWriter next = model(2);
  for (const bool killed : {true, false}) {
    for (std::size_t bytes = 0; bytes < size; bytes += 1 + size / 60) {
      const auto limit_file_size = [&] {
        const rlimit limits{bytes, bytes};
        ::setrlimit(RLIMIT_FSIZE, &limits);
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        std::signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
      };
      EXPECT_FALSE(in_child(limit_file_size, [&] { next.write(path_); })) << bytes;
      ASSERT_EQ(loaded(), 1.f) << bytes;
    }
  }
  next.write(path_);
  EXPECT_EQ(loaded(), 2.f);
}

TEST_F(InterruptedSave, KilledAtAnyTime) {
  model(1).write(path_);
  const SafetensorsWriter one = model(1), two = model(2);
  bool seen[3] = {};
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        one.write(path_);
        two.write(path_);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 173 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const float value = loaded();
    ASSERT_TRUE(value == 1.f || value == 2.f) << value;
    seen[static_cast<int>(value)] = true;
  }
  EXPECT_TRUE(seen[1] || seen[2]);
}

TEST_F(InterruptedSave, LeftoversOfTheKilledDoNotStandInTheWay) {
  model(1).write(path_);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limits{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limits);
    model(2).write(path_);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
  model(3).write(path_);
  EXPECT_EQ(loaded(), 3.f);
}

}  // namespace
}  // namespace heed
