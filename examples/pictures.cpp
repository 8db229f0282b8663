// SPDX-License-Identifier: MIT
#include "pictures.hpp"

#include <cstdio>
#include <stdexcept>

#if __has_include(<stb/stb_easy_font.h>) || __has_include(<stb_easy_font.h>)
#include <heed/plot/png.hpp>
#define HEED_EXAMPLE_PNG 1
#endif

namespace example {
namespace {

void check_png(bool asked) {
#ifndef HEED_EXAMPLE_PNG
  if (asked) throw std::invalid_argument("--png: built without stb (Debian, Ubuntu: libstb-dev)");
#else
  static_cast<void>(asked);
#endif
}

template <class... P>
void write_files(const Pictures& files, const P&... pictures) {
  if (!files.svg.empty()) heed::write_svg(files.svg, pictures...), say_written(files.svg);
  if (!files.html.empty()) heed::write_html(files.html, pictures...), say_written(files.html);
#ifdef HEED_EXAMPLE_PNG
  if (!files.png.empty()) heed::write_png(files.png, pictures...), say_written(files.png);
#endif
}

}  // namespace

void say_written(const std::string& path) { std::printf("wrote %s\n", path.c_str()); }

void Pictures::add_options(CommandLine& app, const std::string& of) {
  app.add_option("--svg", svg, "also write " + of + " to this file as SVG");
  app.add_option("--png", png, "the same as PNG");
  app.add_option("--html", html, "the same as an HTML page");
}
void Pictures::check() const {
  for (const std::string& file : {svg, png, html}) check_can_write(file);
  check_png(!png.empty());
}
void Pictures::write(std::span<const heed::Heatmap> heatmaps, heed::Index columns) const {
  write_files(*this, heatmaps, columns);
}
void Pictures::write(std::span<const heed::Chart> charts, heed::Index columns) const {
  write_files(*this, charts, columns);
}
void Pictures::write(const heed::Heatmap& heatmap) const { write_files(*this, heatmap); }
void Pictures::write(const heed::Chart& chart) const { write_files(*this, chart); }

void PictureFolder::add_options(CommandLine& app) {
  const Option folder = app.add_option(
      "--out", out, "also write the pictures as SVG into this folder, made if need be");
  app.add_flag("--png", png, "with --out: as PNG too").needs(folder);
  app.add_flag("--html", html, "with --out: as HTML pages too").needs(folder);
}
void PictureFolder::check() const {
  make_folder(out);
  check_png(png);
}
Pictures PictureFolder::files(const std::string& name) const {
  const std::string path = out + "/" + name;
  return {path + ".svg", png ? path + ".png" : "", html ? path + ".html" : ""};
}

}  // namespace example
