// SPDX-License-Identifier: MIT
#include <heed/plot/svg.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <heed/plot.hpp>
#include <heed/plot/png.hpp>

#include "support/temporary_file.hpp"

namespace heed::test {
namespace {

/// What stands in the file that write(path) makes.
template <class Write>
std::string written(const Write& write) {
  const TemporaryFile file;
  write(file.path());
  const auto bytes = read_file(file.path());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class... Pictures>
void expect_files_as_strings(const Pictures&... pictures) {
  const auto svg = to_svg(pictures...), html = to_html(pictures...), png = to_png(pictures...);
  EXPECT_EQ(written([&](const std::string& path) { write_svg(path, pictures...); }), svg);
  EXPECT_EQ(written([&](const std::string& path) { write_html(path, pictures...); }), html);
  EXPECT_TRUE(written([&](const std::string& path) { write_png(path, pictures...); }) == png);
  EXPECT_EQ(png.substr(1, 3), "PNG");
  EXPECT_NE(html.find(svg), std::string::npos);
  EXPECT_EQ(html.substr(0, 15), "<!DOCTYPE html>");
}

TEST(WritePicture, FilesHoldWhatStringsDo) {
  const auto heatmap = heatmap_of(Tensor<float, 2>{{0, 1}, {0.5f, 0}}, {"a", "b"}, "1 < 2");
  const Chart chart{.series = {{"loss", {0, 1, 2}, {3, 1, 2}}}};
  expect_files_as_strings(heatmap);
  expect_files_as_strings(chart);
  expect_files_as_strings(std::vector{heatmap, heatmap, heatmap});
  expect_files_as_strings(std::vector{chart, chart, chart}, 3);
  EXPECT_NE(to_html(heatmap).find("<title>1 &lt; 2</title>"), std::string::npos);
  AttentionPage page;
  page.weights = Tensor<float, 4>({1, 2, 2, 4});
  EXPECT_EQ(written([&](const std::string& path) { write_html(path, page); }), to_html(page));
}

TEST(WritePicture, Refuses) {
  const Chart chart, broken{.series = {{"", {0, 1}, {3}}}};
  EXPECT_THROW(write_svg("/no/such/folder/x.svg", chart), FileError);
  EXPECT_THROW(write_html("/no/such/folder/x.html", chart), FileError);
  const TemporaryFile file;
  EXPECT_THROW(write_svg(file.path(), broken), ShapeError);
  EXPECT_THROW(read_file(file.path()), FileError) << "nothing was written";
}

}  // namespace
}  // namespace heed::test
