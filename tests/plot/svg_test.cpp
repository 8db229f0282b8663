// SPDX-License-Identifier: MIT
#include <heed/plot/svg.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <heed/plot/detail/drawing.hpp>

namespace heed {
namespace {

Heatmap small() {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({2, 3});
  heatmap.values(0, 0) = 1;
  heatmap.values(1, 2) = 0.125;
  heatmap.row_labels = {"a", "b"};
  heatmap.column_labels = {"x", "<y> & \"z\"", "\x01"};
  heatmap.title = "</svg>";
  heatmap.numbers = true;
  return heatmap;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Tags open and close in order, attributes are quoted, and no raw markup stands in text.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] != '<') {
      ASSERT_TRUE(xml[at] == '\n' || !open.empty());
      ASSERT_NE(xml[at], '>');
      ++at;
      continue;
    }
    const std::size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    ASSERT_EQ(count(tag, "\"") % 2, 0u) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty());
}

TEST(Svg, NumbersStandOnTheBarHoweverNarrowTheRangeIs) {
  for (const auto& [low, high] :
       {std::pair{1., 1 + 1e-13}, std::pair{1. / 3, 1. / 3 + 6e-17}, std::pair{0., 5e-324},
        std::pair{0., 1e-305}, std::pair{1.7e308, 1.7e308}, std::pair{0.25, 0.25 + 1e-11}}) {
    Heatmap heatmap;
    heatmap.values = Tensor<double, 2>({2, 2});
    heatmap.low = low;
    heatmap.high = high;
    const detail::Picture picture = detail::picture_of(heatmap);
    std::size_t numbers = 0;
    for (const auto& text : picture.texts) {
      EXPECT_TRUE(text.at.y >= 0 && text.at.y <= static_cast<double>(picture.height)) << text.at.y;
      numbers += text.size == 11 ? 1 : 0;
    }
    EXPECT_GE(numbers, 1u) << high;
  }
}

TEST(Svg, IsWellFormedWhateverTheLabelsHold) {
  const std::string svg = to_svg(small());
  expect_well_formed(svg);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
  EXPECT_NE(svg.find("&lt;/svg&gt;</text>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;y&gt; &amp; &quot;z&quot;</text>"), std::string::npos);
  EXPECT_EQ(svg.find("http", svg.find("http") + 1), std::string::npos) << "no network";
  expect_well_formed(to_svg(std::span<const Heatmap>()));
  Heatmap broken = small();
  broken.title = "\xff\xfe\xed\xa0\x80";
  EXPECT_NE(to_svg(broken).find("\ufffd\ufffd\ufffd\ufffd\ufffd</text>"), std::string::npos);
}

TEST(Svg, EveryCellHasColorNumberAndHoverText) {
  const std::string svg = to_svg(small());
  EXPECT_EQ(count(svg, "<title>"), 6u);
  EXPECT_NE(svg.find("fill=\"#fde725\"><title>a → x: 1</title>"), std::string::npos)
      << "1 is the brightest";
  EXPECT_NE(svg.find("<title>b → ␁: 0.125</title>"), std::string::npos);
  EXPECT_NE(svg.find(">.12</text>"), std::string::npos);
  EXPECT_EQ(count(svg, ">·</text>"), 0u) << "masked cells are hatched";
  EXPECT_EQ(count(svg, "l34 -34"), 4u);
  for (const char* words : {">query</text>", ">key</text>", ">masked (exactly 0)</text>"}) {
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  }
  Heatmap plain = small();
  plain.numbers = false;
  EXPECT_EQ(to_svg(plain).find(">.12<"), std::string::npos);
}

TEST(Svg, OnlyValuesOfACategoryHaveItsName) {
  Heatmap heatmap = small();
  heatmap.numbers = false;
  heatmap.categories = {"none", "some"};
  heatmap.values(0, 1) = INFINITY;
  heatmap.values(0, 2) = 1e30;
  heatmap.values(1, 0) = -1;
  heatmap.values(1, 1) = NAN;
  heatmap.values(1, 2) = 0.5;
  const std::string svg = to_svg(heatmap);
  EXPECT_EQ(count(svg, ": some</title>"), 1u);
  EXPECT_EQ(count(svg, ": none</title>"), 1u) << "0.5";
  for (const char* value : {": inf</", ": 1e+30</", ": -1</", ": nan</"}) {
    EXPECT_NE(svg.find(value), std::string::npos) << value;
  }
}

TEST(Svg, EscapesKeepAccentsOnTheirLetters) {
  Heatmap heatmap = small();
  heatmap.title = "a <\u0338 b &\u0301 c >\u0338 d \"\u0308";
  EXPECT_NE(to_svg(heatmap).find("a &lt;\u0338 b &amp;\u0301 c &gt;\u0338 d &quot;\u0308</text>"),
            std::string::npos);
  EXPECT_EQ(detail::json_string("<\u0338/\"\u0308"), "\"\\u003c\u0338/\\\"\u0308\"");
}

TEST(Svg, PicturesInRows) {
  const Heatmap three[] = {small(), small(), small()};
  const auto one = detail::picture_of(three[0]);
  const std::string svg = to_svg(three, 2);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("width=\"" + std::to_string(2 * one.width) + "\" height=\"" +
                     std::to_string(2 * one.height) + "\""),
            std::string::npos);
  EXPECT_THROW(to_svg(three, 0), InvalidArgument);
}

TEST(Svg, SizesOfLargeMatrices) {
  const auto bytes = [](Index size) {
    Heatmap heatmap;
    heatmap.values = Tensor<double, 2>({size, size});
    for (Index i = 0; i < size * size; ++i) {
      heatmap.values.data()[i] = static_cast<double>(i % 997) / 997;
    }
    const std::string svg = to_svg(heatmap);
    expect_well_formed(svg);
    return svg.size();
  };
  EXPECT_LE(bytes(89), 800'000u) << "the most cells that are drawn one by one";
  EXPECT_LE(bytes(300), 200'000u);
  EXPECT_LE(bytes(1024), 1'500'000u);
  EXPECT_LE(bytes(1500), 1'500'000u);
}

TEST(Svg, TheImageOfManyCellsHoldsTheirLevels) {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({1, 9000});
  heatmap.high = 2;
  for (Index i = 0; i < 9000; ++i) heatmap.values(0, i) = i < 4500 ? 2 : 1e-9;
  const std::string svg = to_svg(heatmap);
  EXPECT_NE(svg.find("mean of 1 x 9"), std::string::npos);
  heatmap.values = Tensor<double, 2>({10, 900});
  for (double& value : heatmap.values) value = 2;
  // A row of the image: the filter 0, then level 252 = 0xfc, in base64 at one of three places.
  EXPECT_GT(count(to_svg(heatmap), "/Pz8/Pz8"), 1000u);
  EXPECT_EQ(count(to_svg(heatmap), "<image"), 1u);
  EXPECT_EQ(to_svg(heatmap), to_svg(heatmap));
}

TEST(Svg, Base64) {
  const auto text = [](std::vector<std::uint8_t> bytes) {
    return detail::base64_of(std::span<const std::uint8_t>(bytes));
  };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({0x66}), "Zg==");
  EXPECT_EQ(text({0x66, 0x6f}), "Zm8=");
  EXPECT_EQ(text({0x66, 0x6f, 0x6f}), "Zm9v");
  EXPECT_EQ(text({0, 0, 0x80, 0x3f}), "AACAPw==");
}

TEST(Svg, RefusesLabelsThatDoNotFit) {
  Heatmap heatmap = small();
  heatmap.row_labels.pop_back();
  EXPECT_THROW(to_svg(heatmap), ShapeError);
}

}  // namespace
}  // namespace heed
