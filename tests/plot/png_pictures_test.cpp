// SPDX-License-Identifier: MIT
#include <heed/plot/detail/png_pictures.hpp>

#include <gtest/gtest.h>

#include <filesystem>

namespace heed::detail {
namespace {

struct Box {
  explicit Box(Index size) : size_(size) {}
  Index width() const { return size_; }
  Index height() const { return 2 * size_; }
  void draw(PngCanvas& canvas, Index x, Index y) const {
    canvas.rectangle(x, y, size_, size_, {1, 2, 3});
  }
  Index size_;
};

/// Width and height, as the header of a PNG file holds them.
std::pair<int, int> size_of(const std::string& path) {
  const auto bytes = read_file(path);
  const auto number = [&](std::size_t at) {
    return std::to_integer<int>(bytes.at(at + 2)) * 256 + std::to_integer<int>(bytes.at(at + 3));
  };
  return {number(16), number(20)};
}

TEST(PngPictures, StandInRows) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("heed_p_" + std::to_string(::getpid()))).string();
  const Index sizes[] = {10, 30, 20};
  write_png_pictures<Box>(path, std::span<const Index>(sizes), 2);
  EXPECT_EQ(size_of(path), (std::pair{40, 100}));
  write_png_pictures<Box>(path, std::span<const Index>(sizes), 3);
  EXPECT_EQ(size_of(path), (std::pair{60, 60}));
  write_png_pictures<Box>(path, std::span<const Index>(), 3);
  EXPECT_EQ(size_of(path), (std::pair{1, 1}));
  EXPECT_THROW(write_png_pictures<Box>(path, std::span<const Index>(sizes), 0), ShapeError);
  const Index huge[] = {40000};
  EXPECT_THROW(write_png_pictures<Box>(path, std::span<const Index>(huge), 1), FileError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace heed::detail
