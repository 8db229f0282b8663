// SPDX-License-Identifier: MIT
#include <heed/plot/svg.hpp>

#include <gtest/gtest.h>

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
