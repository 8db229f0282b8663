// SPDX-License-Identifier: MIT
// The files of pictures that examples write where asked: SVG, PNG and HTML alike. What draws them
// is in pictures.cpp, compiled once.
#pragma once

#include <span>
#include <string>

#include <heed/plot.hpp>

#include "common.hpp"

namespace example {

void say_written(const std::string& path);

/// --svg FILE, --png FILE and --html FILE.
struct Pictures {
  std::string svg, png, html;

  void add_options(CommandLine& app, const std::string& of = "the pictures");
  bool any() const { return !svg.empty() || !png.empty() || !html.empty(); }
  /// Before the work: throws for files that could not be written, and where PNG is asked for and
  /// stb was not there.
  void check() const;
  void write(std::span<const heed::Heatmap> heatmaps, heed::Index columns = 2) const;
  void write(std::span<const heed::Chart> charts, heed::Index columns = 2) const;
  void write(const heed::Heatmap& heatmap) const;
  void write(const heed::Chart& chart) const;
};

/// --out FOLDER for examples with several pictures, and --png and --html for these formats beside
/// SVG.
struct PictureFolder {
  std::string out;
  bool png = false, html = false;

  void add_options(CommandLine& app);
  void check() const;
  /// Writes FOLDER/name.svg and what else is asked for.
  template <class Picture>
  void write(const std::string& name, const Picture& picture) const {
    if (!out.empty()) files(name).write(picture);
  }

 private:
  Pictures files(const std::string& name) const;
};

}  // namespace example
