// SPDX-License-Identifier: MIT
#include <heed/plot/png.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

TEST(PngCanvas, EncodesWhatAPngMayHold) {
  const auto bytes = PngCanvas(3, 2).encoded();
  ASSERT_GT(bytes.size(), 8u);
  EXPECT_EQ(bytes[1], std::byte{'P'});
  EXPECT_TRUE(PngCanvas(40000, 1).encoded().empty());
}

TEST(PngCanvas, OutlinesAreFilledAsPlacedAndTurned) {
  Outline square;
  add_box(square, 0, 0, 2, 1);
  PngCanvas level(20, 20), upright(20, 20), half(20, 20);
  level.fill(square, {3, 4}, {5, 0}, {0, 5}, black);
  EXPECT_EQ(black_pixels(level), 50);
  EXPECT_EQ(level.at(3, 4), black);
  EXPECT_EQ(level.at(12, 8), black);
  upright.fill(square, {3, 14}, {0, -5}, {5, 0}, black);  // reads upwards
  EXPECT_EQ(black_pixels(upright), 50);
  EXPECT_EQ(upright.at(3, 13), black);
  EXPECT_EQ(upright.at(7, 4), black);
  half.fill(square, {3.5, 4}, {5, 0}, {0, 5}, black);
  EXPECT_NEAR(half.at(3, 5).red, 128, 3) << "smooth edges";
  level.fill(square, {-100, -100}, {5, 0}, {0, 5}, black);
  level.fill({}, {0, 0}, {5, 0}, {0, 5}, black);
  EXPECT_EQ(black_pixels(level), 50);
}

/// The texts of a picture alone, black on white.
PngCanvas drawn(const std::vector<PictureText>& texts, Index width, Index height,
                const PngOptions& options) {
  Picture picture;
  picture.width = width;
  picture.height = height;
  picture.texts = texts;
  return PngWriter(picture, options).canvas();
}

TEST(Png, PicturesThatNoFileHoldsAreRefused) {
  const auto refused = [](Index width, Index height, double scale) {
    EXPECT_THROW(png_of(detail::Picture{.width = width, .height = height}, {.scale = scale}),
                 ShapeError)
        << width << " x " << height;
  };
  refused(32769, 1, 1);
  refused(30000, 30000, 1);
  refused(2000, 3000, 11);
}

TEST(PngFonts, LettersStayInTheirBox) {
  for (const bool system : {false, true}) {
    for (const char* words : {"[CLS] mouse 0123456789", "gjpqyÄÉ,;", "WWWWMMMM", "我爱学习人工智能",
                              "\x1b\xff日", "Жщ Ω → …"}) {
      for (const bool bold : {false, true}) {
        for (const int angle : {0, 90}) {
          const PictureText text{.at = {20, angle == 0 ? 30.0 : 200.0},
                                 .words = words,
                                 .angle = angle,
                                 .color = black,
                                 .bold = bold};
          const auto canvas = drawn({text}, 260, 220, {.system_fonts = system});
          const auto corners = text.corners();
          const Point& a = corners[0];
          const Point& b = corners[2];
          Index dark = 0;
          for (Index y = 0; y < canvas.height(); ++y) {
            for (Index x = 0; x < canvas.width(); ++x) {
              if (canvas.at(x, y) == white) continue;
              ++dark;
              const auto px = static_cast<double>(x), py = static_cast<double>(y);
              // Up to a pixel of smoothing, and of bearing that letters have at their sides.
              ASSERT_TRUE(px >= std::min(a.x, b.x) - 2 && px <= std::max(a.x, b.x) + 2 &&
                          py >= std::min(a.y, b.y) - 2 && py <= std::max(a.y, b.y) + 2)
                  << words << " " << x << " " << y;
            }
          }
          EXPECT_GT(dark, 40) << words;
        }
      }
    }
  }
}

TEST(PngFonts, NoteSaysWhatCouldNotBeDrawn) {
  std::string note;
  const auto note_of = [&](const char* words, const PngOptions& options) {
    drawn({{.at = {5, 20}, .words = words}}, 200, 40, options);
    return note;
  };
  PngOptions none{.system_fonts = false, .note = &note};
  EXPECT_EQ(note_of("cat", none), "no font was found: letters are coarse");
  EXPECT_EQ(note_of("我爱我", none), "no font was found: letters are coarse; no font has 我爱");
  none.fonts = {"/no/such/font.ttf"};
  EXPECT_EQ(note_of("a", none),
            "no font in /no/such/font.ttf; no font was found: letters are coarse");
  const PngOptions system{.note = &note};
  const std::string latin = note_of("cat", system);
  if (latin.empty()) {
    EXPECT_EQ(note_of("\U000f0000", system), "no font has \U000f0000") << "of private use";
  } else {
    EXPECT_EQ(latin, "no font was found: letters are coarse");
  }
}

TEST(PngFonts, AFontFromAFileIsAskedFirst) {
  const std::string path = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  std::string note = "before";
  const PngOptions given{.fonts = {path}, .system_fonts = false, .note = &note};
  const auto smooth = drawn({{.at = {5, 30}, .words = "Ünï Жщ Ω", .size = 20}}, 200, 40, given);
  EXPECT_EQ(note, "");
  std::set<int> grays;
  for (Index y = 0; y < 40; ++y) {
    for (Index x = 0; x < 200; ++x) grays.insert(smooth.at(x, y).red);
  }
  EXPECT_GT(grays.size(), 20u) << "smooth edges";
  // What is no font is passed over.
  const std::string text = test::golden_picture("terminal.txt");
  EXPECT_FALSE(Font::read(text).has_value());
  EXPECT_FALSE(Font::read("/no/such/font.ttf").has_value());
  EXPECT_TRUE(Font::read(path)->has(U'Ж'));
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
  const auto cells = detail::picture_of(small()).cells.front();
  for (Index cell = 0; cell < 6; ++cell) EXPECT_TRUE(has(picture, cells.color(cell))) << cell;
  EXPECT_TRUE(has(picture, viridis(1)));
  EXPECT_TRUE(has(picture, {255, 255, 255}));
}

TEST_F(PngTest, PicturesInRows) {
  const Heatmap three[] = {small(), small(), small()};
  const auto one = detail::picture_of(three[0]);
  write_png(path_, three, 2);
  EXPECT_EQ(decoded().width, 2 * one.width) << "as large as to_svg's";
  EXPECT_EQ(decoded().height, 2 * one.height);
  EXPECT_TRUE(to_png(three, 2) == to_png(three, 2)) << "the same bytes each time";
  write_png(path_, three, 3, PngOptions{.scale = 2});
  EXPECT_EQ(decoded().width, 6 * one.width);
  write_png(path_, three[0], {.scale = 2});
  EXPECT_EQ(decoded().width, 2 * one.width);
  write_png(path_, three, 3, PngOptions{.scale = 2});
  EXPECT_EQ(decoded().height, 2 * one.height);
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
  const PngOptions everywhere{.system_fonts = false};  // the same letters on any machine
  write_png(path_, test::golden_heatmaps(), 2, everywhere);
  expect_same("heatmaps.png");
  write_png(path_, test::golden_charts(), 2, everywhere);
  expect_same("charts.png");
}

TEST_F(PngTest, Refuses) {
  Heatmap heatmap = small();
  EXPECT_THROW(write_png("/no/such/folder/x.png", heatmap), FileError);
  const std::vector<Heatmap> wide(100, heatmap);
  EXPECT_THROW(write_png(path_, wide, 100, PngOptions{.scale = 2}), ShapeError);
  for (const double scale : {0., -1., 21., double(NAN)}) {
    EXPECT_THROW(to_png(heatmap, {.scale = scale}), InvalidArgument) << scale;
  }
  heatmap.row_labels.pop_back();
  EXPECT_THROW(write_png(path_, heatmap), ShapeError);
}

}  // namespace
}  // namespace heed
