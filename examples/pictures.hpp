// SPDX-License-Identifier: MIT
// The files of pictures that examples write where asked: SVG, PNG and HTML alike.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include <heed/plot.hpp>
#if __has_include(<stb/stb_easy_font.h>) || __has_include(<stb_easy_font.h>)
#include <heed/plot/png.hpp>
#define HEED_EXAMPLE_PNG 1
#endif

#include "common.hpp"

namespace example {

#ifdef HEED_EXAMPLE_PNG
inline constexpr bool has_png = true;
#else
inline constexpr bool has_png = false;
#endif

/// Throws where PNG is asked for and stb was not there.
inline void check_png(bool asked) {
  if (asked && !has_png) {
    throw std::invalid_argument("--png: built without stb (Debian, Ubuntu: libstb-dev)");
  }
}

inline void say_written(const std::string& path) { std::printf("wrote %s\n", path.c_str()); }

/// --svg FILE, --png FILE and --html FILE.
struct Pictures {
  std::string svg, png, html;

  void add_options(CLI::App& app, const std::string& of = "the pictures") {
    app.add_option("--svg", svg, "also write " + of + " to this file as SVG");
    app.add_option("--png", png, "the same as PNG");
    app.add_option("--html", html, "the same as an HTML page");
  }
  bool any() const { return !svg.empty() || !png.empty() || !html.empty(); }
  /// Before the work: throws for files that could not be written.
  void check() const {
    for (const std::string& file : {svg, png, html}) check_can_write(file);
    check_png(!png.empty());
  }
  /// `pictures`: the arguments of write_svg behind the path.
  template <class... P>
  void write(const P&... pictures) const {
    if (!svg.empty()) heed::write_svg(svg, pictures...), say_written(svg);
    if (!html.empty()) heed::write_html(html, pictures...), say_written(html);
#ifdef HEED_EXAMPLE_PNG
    if (!png.empty()) heed::write_png(png, pictures...), say_written(png);
#endif
  }
};

/// --out FOLDER for examples with several pictures, and --png and --html for these formats beside
/// SVG.
struct PictureFolder {
  std::string out;
  bool png = false, html = false;

  void add_options(CLI::App& app) {
    auto* folder = app.add_option(
        "--out", out, "also write the pictures as SVG into this folder, made if need be");
    app.add_flag("--png", png, "with --out: as PNG too")->needs(folder);
    app.add_flag("--html", html, "with --out: as HTML pages too")->needs(folder);
  }
  void check() const {
    make_folder(out);
    check_png(png);
  }
  /// Writes FOLDER/name.svg and what else is asked for.
  template <class... P>
  void write(const std::string& name, const P&... pictures) const {
    if (out.empty()) return;
    const std::string path = out + "/" + name;
    Pictures{path + ".svg", png ? path + ".png" : "", html ? path + ".html" : ""}.write(
        pictures...);
  }
};

}  // namespace example
