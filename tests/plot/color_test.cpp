// SPDX-License-Identifier: MIT
#include <heed/plot/color.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace heed {
namespace {

TEST(Color, ViridisHasThePublishedColors) {
  // Entries of the original table of 256, between our 33 stops too.
  const auto near = [](double share, Color expected) {
    const Color got = viridis(share);
    EXPECT_NEAR(got.red, expected.red, 2) << share;
    EXPECT_NEAR(got.green, expected.green, 2) << share;
    EXPECT_NEAR(got.blue, expected.blue, 2) << share;
  };
  EXPECT_EQ(viridis(0), (Color{68, 1, 84}));
  EXPECT_EQ(viridis(1), (Color{253, 231, 37}));
  near(25.0 / 255, {72, 36, 117});
  near(60.0 / 255, {61, 78, 138});
  near(127.0 / 255, {33, 144, 141});
  near(190.0 / 255, {90, 200, 100});
  near(230.0 / 255, {189, 223, 38});
}

TEST(Color, ViridisGrowsLighterAndClamps) {
  double last = -1;
  for (int step = 0; step <= 1000; ++step) {
    const double light = luminance(viridis(step / 1000.0));
    EXPECT_GT(light, last - 1e-3) << step;
    last = light;
  }
  EXPECT_EQ(viridis(-3), viridis(0));
  EXPECT_EQ(viridis(std::numeric_limits<double>::infinity()), viridis(1));
  EXPECT_EQ(viridis(std::numeric_limits<double>::quiet_NaN()), (Color{128, 128, 128}));
}

TEST(Color, MapsHaveThePublishedColors) {
  // Entries of matplotlib's tables of 256, between our stops too.
  const auto near = [](ColorMap map, int entry, Color expected) {
    const Color got = color_of(map, entry / 255.0);
    EXPECT_NEAR(got.red, expected.red, 3) << entry;
    EXPECT_NEAR(got.green, expected.green, 3) << entry;
    EXPECT_NEAR(got.blue, expected.blue, 3) << entry;
  };
  near(ColorMap::magma, 0, {0, 0, 4});
  near(ColorMap::magma, 40, {41, 17, 90});
  near(ColorMap::magma, 100, {137, 40, 129});
  near(ColorMap::magma, 128, {183, 55, 121});
  near(ColorMap::magma, 190, {251, 133, 96});
  near(ColorMap::magma, 255, {252, 253, 191});
  near(ColorMap::blues, 0, {247, 251, 255});
  near(ColorMap::blues, 40, {216, 231, 245});
  near(ColorMap::blues, 100, {151, 198, 223});
  near(ColorMap::blues, 128, {106, 174, 214});
  near(ColorMap::blues, 190, {34, 114, 182});
  near(ColorMap::blues, 255, {8, 48, 107});
  near(ColorMap::diverging, 0, {5, 48, 97});
  near(ColorMap::diverging, 40, {52, 128, 185});
  near(ColorMap::diverging, 100, {204, 226, 239});
  near(ColorMap::diverging, 128, {247, 246, 246});
  near(ColorMap::diverging, 190, {230, 134, 106});
  near(ColorMap::diverging, 255, {103, 0, 31});
  for (int entry = 0; entry < 256; ++entry) {
    const auto level = static_cast<std::uint8_t>(entry);
    near(ColorMap::gray, entry, {level, level, level});
    EXPECT_EQ(color_of(ColorMap::viridis, entry / 255.0), viridis(entry / 255.0));
  }
}

TEST(Color, TextIsLegibleOnEveryColor) {
  for (int step = 0; step <= 1000; ++step) {
    const Color back = viridis(step / 1000.0);
    EXPECT_GE(contrast(text_color_on(back), back), 4.5) << step;
  }
  EXPECT_EQ(text_color_on({255, 255, 255}), (Color{0, 0, 0}));
  EXPECT_EQ(text_color_on({0, 0, 0}), (Color{255, 255, 255}));
  EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
  EXPECT_NEAR(contrast({255, 0, 0}, {255, 255, 255}), 3.998, 1e-3);  // a known pair
}

TEST(Color, Hex) { EXPECT_EQ(hex({68, 1, 254}), "#4401fe"); }

}  // namespace
}  // namespace heed
