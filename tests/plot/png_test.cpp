// SPDX-License-Identifier: MIT
#include <heed/plot/png.hpp>

#include <gtest/gtest.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plot/golden_pictures.hpp"

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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#if __has_include(<stb/stb_image.h>)
#include <stb/stb_image.h>
#else
#include <stb_image.h>
#endif
#pragma GCC diagnostic pop

namespace heed {
namespace {

struct Picture {
  int width = 0, height = 0;
  std::set<std::tuple<int, int, int>> colors;
};

class PngTest : public ::testing::Test {
 protected:
  ~PngTest() override { std::filesystem::remove(path_); }
  Picture decoded() const {
    Picture picture;
    int channels = 0;
    unsigned char* pixels = stbi_load(path_.c_str(), &picture.width, &picture.height, &channels, 3);
    if (pixels == nullptr) {
      ADD_FAILURE() << "no PNG at " << path_;
      return picture;
    }
    for (int i = 0; i < picture.width * picture.height; ++i) {
      picture.colors.emplace(pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]);
    }
    stbi_image_free(pixels);
    return picture;
  }
  static bool has(const Picture& picture, const Color& color) {
    return picture.colors.count({color.red, color.green, color.blue}) > 0;
  }
  static Heatmap small() {
    Heatmap heatmap;
    heatmap.values = Tensor<double, 2>({2, 3});
    heatmap.values(0, 0) = 1;
    heatmap.values(1, 2) = 0.3;
    heatmap.row_labels = {"a", "b"};
    heatmap.column_labels = {"x", "ÿ", "a long label"};
    heatmap.title = "title";
    return heatmap;
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("heed_png_" + std::to_string(::getpid()) + ".png"))
          .string();
};

TEST_F(PngTest, HoldsTheColorsOfItsCells) {
  write_png(path_, small());
  const Picture picture = decoded();
  for (const double value : {0., 0.3, 1.}) EXPECT_TRUE(has(picture, viridis(value))) << value;
  EXPECT_TRUE(has(picture, {255, 255, 255}));
  EXPECT_TRUE(has(picture, {34, 34, 34})) << "labels";
}

TEST_F(PngTest, PicturesInRows) {
  const Heatmap three[] = {small(), small(), small()};
  const detail::PngHeatmap one(three[0]);
  write_png(path_, three, 2);
  const Picture picture = decoded();
  EXPECT_EQ(picture.width, 2 * one.width());
  EXPECT_EQ(picture.height, 2 * one.height());
}

TEST_F(PngTest, AnySizeOfMatrix) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{0, 0}, {1, 900}, {700, 2}}) {
    Heatmap heatmap;
    heatmap.values = Tensor<double, 2>({rows, columns});
    write_png(path_, heatmap);
    EXPECT_GT(decoded().width, 0);
  }
  write_png(path_, std::span<const Heatmap>());
  EXPECT_EQ(decoded().width, 1);
}

/// Every pixel, as three bytes.
std::vector<unsigned char> pixels_of(const std::string& path) {
  int width = 0, height = 0, channels = 0;
  unsigned char* pixels = stbi_load(path.c_str(), &width, &height, &channels, 3);
  if (pixels == nullptr) return {};
  std::vector<unsigned char> all(pixels, pixels + 3 * width * height);
  all.push_back(static_cast<unsigned char>(width % 251));
  stbi_image_free(pixels);
  return all;
}

TEST_F(PngTest, WholePicturesAsTheyWereLookedAt) {
  const auto expect_same = [&](const std::string& name) {
    if (test::accepting_pictures())
      std::filesystem::copy_file(path_, test::golden_picture(name),
                                 std::filesystem::copy_options::overwrite_existing);
    EXPECT_FALSE(pixels_of(path_).empty());
    EXPECT_TRUE(pixels_of(path_) == pixels_of(test::golden_picture(name)))
        << name << " is drawn otherwise";
  };
  write_png(path_, test::golden_heatmaps(), 2);
  expect_same("heatmaps.png");
  write_png(path_, test::golden_charts(), 2);
  expect_same("charts.png");
}

TEST_F(PngTest, Refuses) {
  Heatmap heatmap = small();
  EXPECT_THROW(write_png("/no/such/folder/x.png", heatmap), FileError);
  heatmap.values = Tensor<double, 2>({2, 40000});
  heatmap.column_labels.clear();
  EXPECT_THROW(write_png(path_, heatmap), ShapeError);
  heatmap.row_labels.pop_back();
  EXPECT_THROW(write_png(path_, heatmap), ShapeError);
}

}  // namespace
}  // namespace heed
