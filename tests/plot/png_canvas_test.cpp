// SPDX-License-Identifier: MIT
#include <heed/plot/png.hpp>

#include <gtest/gtest.h>

namespace heed::detail {
namespace {

constexpr Color black{0, 0, 0}, white{255, 255, 255};

Index black_pixels(const PngCanvas& canvas) {
  Index count = 0;
  for (Index y = 0; y < canvas.height(); ++y) {
    for (Index x = 0; x < canvas.width(); ++x) count += canvas.at(x, y) == black;
  }
  return count;
}

TEST(PngCanvas, RectanglesAreClipped) {
  PngCanvas canvas(10, 8);
  EXPECT_EQ(canvas.at(9, 7), white);
  canvas.rectangle(8, 6, 100, 100, black);
  canvas.rectangle(-5, -5, 6, 7, black);
  EXPECT_EQ(black_pixels(canvas), 2 * 2 + 1 * 2);
  EXPECT_EQ(canvas.at(0, 1), black);
  EXPECT_EQ(canvas.at(9, 7), black);
}

TEST(PngCanvas, TextStaysInItsBox) {
  for (const char* words : {"[CLS] mouse 0123456789", "\x1b\xff日", "gjpqy,;"}) {
    const Index length = PngCanvas::text_length(words);
    PngCanvas canvas(length + 40, 60), upwards(60, length + 40);
    canvas.text(20, 20, words, black);
    upwards.text_upwards(20, length + 20, words, black);
    EXPECT_GT(black_pixels(canvas), 20);
    for (Index y = 0; y < canvas.height(); ++y) {
      for (Index x = 0; x < canvas.width(); ++x) {
        const bool inside = x >= 20 && x < 20 + length && y >= 18 && y < 20 + 24;
        ASSERT_TRUE(inside || canvas.at(x, y) == white) << words << " " << x << " " << y;
        // The same text turned a quarter to the left, pixel for pixel.
        ASSERT_EQ(canvas.at(x, y), upwards.at(y, length + 39 - x)) << x << " " << y;
      }
    }
  }
}

TEST(PngCanvas, EncodesWhatAPngMayHold) {
  const auto bytes = PngCanvas(3, 2).encoded();
  ASSERT_GT(bytes.size(), 8u);
  EXPECT_EQ(bytes[1], std::byte{'P'});
  EXPECT_TRUE(PngCanvas(40000, 1).encoded().empty());
}

}  // namespace
}  // namespace heed::detail
