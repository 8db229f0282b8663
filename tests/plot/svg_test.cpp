// SPDX-License-Identifier: MIT
#include <heed/plot/svg.hpp>

#include <gtest/gtest.h>

#include <gtest/gtest.h>

#include <vector>

namespace heed::detail {
namespace {

struct Box {
  explicit Box(int size) : size_(size) {}
  Index width() const { return size_; }
  Index height() const { return 2 * size_; }
  std::string content() const { return svg_rectangle(0, 0, size_, size_, {1, 2, 255}); }
  Index size_;
};

TEST(SvgElements, Elements) {
  EXPECT_EQ(escaped("a<b>&\"c\"\n"), "a&lt;b&gt;&amp;&quot;c&quot;␊");
  EXPECT_EQ(svg_rectangle(1, -2, 3, 4, {0, 16, 255}),
            "<rect x=\"1\" y=\"-2\" width=\"3\" height=\"4\" fill=\"#0010ff\"/>");
  EXPECT_EQ(svg_text(1, 2, "<", "a=\"b\""), "<text x=\"1\" y=\"2\" a=\"b\">&lt;</text>\n");
  EXPECT_EQ(svg_turned(-90, 1, 2), "transform=\"rotate(-90 1 2)\"");
  EXPECT_EQ(svg_group(1, 2, "x"), "<g transform=\"translate(1 2)\">\nx</g>\n");
}

TEST(SvgElements, PagesHoldPicturesInRows) {
  const int sizes[] = {10, 30, 20};
  const std::string page = svg_page<Box>(std::span<const int>(sizes), 2);
  EXPECT_NE(page.find("width=\"40\" height=\"100\""), std::string::npos) << page;
  EXPECT_NE(page.find("translate(10 0)"), std::string::npos);
  EXPECT_NE(page.find("translate(0 60)"), std::string::npos);
  EXPECT_THROW(svg_page<Box>(std::span<const int>(sizes), 0), InvalidArgument);
}

}  // namespace
}  // namespace heed::detail

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
  EXPECT_NE(svg.find("fill=\"#fde725\"/><text"), std::string::npos) << "1 is the brightest";
  EXPECT_NE(svg.find(">1.0</text><title>a → x: 1</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>b → ␁: 0.125</title>"), std::string::npos);
  EXPECT_NE(svg.find(">query</text>"), std::string::npos);
  EXPECT_NE(svg.find(">key</text>"), std::string::npos);
  Heatmap plain = small();
  plain.numbers = false;
  EXPECT_EQ(to_svg(plain).find(">1.0<"), std::string::npos);
}

TEST(Svg, PicturesInRows) {
  const Heatmap three[] = {small(), small(), small()};
  const detail::SvgHeatmap one(three[0]);
  const std::string svg = to_svg(three, 2);
  expect_well_formed(svg);
  const std::string width = std::to_string(one.width()), height = std::to_string(one.height());
  EXPECT_NE(svg.find("translate(" + width + " 0)"), std::string::npos);
  EXPECT_NE(svg.find("translate(0 " + height + ")"), std::string::npos);
  EXPECT_NE(svg.find("width=\"" + std::to_string(2 * one.width()) + "\" height=\"" +
                     std::to_string(2 * one.height()) + "\""),
            std::string::npos);
  EXPECT_THROW(to_svg(three, 0), InvalidArgument);
}

TEST(Svg, RefusesLabelsThatDoNotFit) {
  Heatmap heatmap = small();
  heatmap.row_labels.pop_back();
  EXPECT_THROW(to_svg(heatmap), ShapeError);
}

}  // namespace
}  // namespace heed
