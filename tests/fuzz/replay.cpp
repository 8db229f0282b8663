// SPDX-License-Identifier: MIT
// Without a fuzzer: every file of the given folders once, whole and cut short at a few places.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/fuzz.hpp"

int main(int count, char** arguments) {
  int files = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
      for (std::size_t part = 0; part <= 8; ++part) {
        LLVMFuzzerTestOneInput(data, bytes.size() * part / 8);
      }
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
