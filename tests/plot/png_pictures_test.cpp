// SPDX-License-Identifier: MIT
#include <heed/plot/png.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>

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
std::pair<int, int> size_of(const std::string& png) {
  const auto number = [&](std::size_t at) {
    return static_cast<unsigned char>(png.at(at + 2)) * 256 +
           static_cast<unsigned char>(png.at(at + 3));
  };
  return {number(16), number(20)};
}

TEST(PngPictures, StandInRows) {
  const Index sizes[] = {10, 30, 20};
  const std::span<const Index> all(sizes);
  EXPECT_EQ(size_of(png_of_pictures<Box>(all, 2)), (std::pair{40, 100}));
  EXPECT_EQ(size_of(png_of_pictures<Box>(all, 3)), (std::pair{60, 60}));
  EXPECT_EQ(size_of(png_of_pictures<Box>(std::span<const Index>(), 3)), (std::pair{1, 1}));
  EXPECT_THROW(png_of_pictures<Box>(all, 0), InvalidArgument);
  const Index huge[] = {40000};
  EXPECT_THROW(png_of_pictures<Box>(std::span<const Index>(huge), 1), ShapeError);
}

}  // namespace
}  // namespace heed::detail
