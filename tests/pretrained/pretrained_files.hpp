// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>

#include <heed/io/file.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/pretrained/load_weights.hpp>

#include "support/file_error.hpp"
#include "support/temporary_file.hpp"

namespace heed::test {

/// A golden file that tools/make_pretrained_goldens.py wrote.
inline std::string pretrained_golden(const std::string& name) {
  return std::string(HEED_TEST_DATA) + "/pretrained/" + name;
}

/// A golden model's folder, with more files in it.
class Folder {
 public:
  explicit Folder(const std::string& name) {
    std::filesystem::create_directory(path());
    for (const auto& entry : std::filesystem::directory_iterator(pretrained_golden(name))) {
      const auto& file = entry.path();
      if (entry.is_directory() || file.extension() == ".npy") continue;
      std::filesystem::copy(file, path() + "/" + file.filename().string());
    }
  }
  ~Folder() { std::filesystem::remove_all(path()); }
  const std::string& path() const { return place_.path(); }
  void write(const std::string& name, const std::string& text) const {
    const std::string file = path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    write_file(file, std::as_bytes(std::span(text)));
  }

 private:
  TemporaryFile place_;
};

template <class T, std::size_t Rank>
Tensor<T, Rank> pretrained_array(const std::string& name) {
  return load_npy<T, Rank>(pretrained_golden(name + ".npy"));
}

inline Tensor<Index, 2> pretrained_tokens(const std::string& name) {
  const auto read = pretrained_array<std::int64_t, 2>(name);
  Tensor<Index, 2> tokens(read.extents());
  std::copy(read.begin(), read.end(), tokens.data());
  return tokens;
}

template <class T, class U, std::size_t Rank>
double largest_difference(const Tensor<T, Rank>& a, const Tensor<U, Rank>& b) {
  EXPECT_EQ(a.extents(), b.extents());
  double most = 0;
  for (Index i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference =
        std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
    most = difference > most || difference != difference ? difference : most;
  }
  return most;
}

inline WeightFile weights_of(const std::string& path) { return WeightFile(load_safetensors(path)); }

}  // namespace heed::test
