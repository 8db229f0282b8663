// SPDX-License-Identifier: MIT
#pragma once

// Opt-in, not part of <heed/plot.hpp>: needs stb (Debian, Ubuntu: libstb-dev).

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/error.hpp>
#include <heed/core/text.hpp>
#include <heed/io/file.hpp>
#include <heed/plot/detail/drawing.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#ifndef INCLUDE_STB_EASY_FONT_H
#if __has_include(<stb/stb_easy_font.h>)
#include <stb/stb_easy_font.h>
#elif __has_include(<stb_easy_font.h>)
#include <stb_easy_font.h>
#else
#error "heed/plot/png.hpp needs stb, which is not found: install libstb-dev (Debian, Ubuntu)"
#include <libstb-dev>  // stops the compiler here
#endif
#endif
#ifndef __STB_INCLUDE_STB_TRUETYPE_H__
#define STBTT_STATIC
#define STB_TRUETYPE_IMPLEMENTATION
#if __has_include(<stb/stb_truetype.h>)
#include <stb/stb_truetype.h>
#elif __has_include(<stb_truetype.h>)
#include <stb_truetype.h>
#else
#error "heed/plot/png.hpp needs stb, which is not found: install libstb-dev (Debian, Ubuntu)"
#include <libstb-dev>  // stops the compiler here
#endif
#undef STBTT_STATIC
#undef STB_TRUETYPE_IMPLEMENTATION
#endif
#pragma GCC diagnostic pop

namespace heed {

/// How PNG pictures are drawn.
struct PngOptions {
  /// Pixels per pixel of to_svg's picture: 2 for screens and paper of high resolution.
  double scale = 1;
  /// Font files (TrueType, OpenType, collections of them) that are asked first for every letter.
  /// They are trusted: a broken file may do harm.
  std::vector<std::string> fonts = {};
  /// Then ask the fonts of the system: DejaVu Sans, Noto Sans, Liberation Sans, Arial, Helvetica,
  /// then files with names of Chinese, Japanese and Korean fonts (CJK, wqy, PingFang, …), then
  /// others by name, at most 40 files in all. They are looked for in /usr/share/fonts,
  /// /usr/local/share/fonts, ~/.fonts, ~/.local/share/fonts, /System/Library/Fonts and
  /// /Library/Fonts.
  bool system_fonts = true;
  /// Where not null: gets one line on what could not be drawn well, and nothing if all could be. If
  /// there is no font, ASCII is drawn in coarse letters of pixels; a box is a letter of no font.
  std::string* note = nullptr;
};

namespace detail {

/// The outline of a letter in sizes of its font, y down from the baseline: contours of straight and
/// quadratic pieces (kind 1 begins a contour), and how far the next letter is.
struct Outline {
  struct Piece {
    int kind;  // of stb_truetype: 1 move, 2 line, 3 quadratic curve, 4 cubic curve
    Point to, first, second;
  };
  std::vector<Piece> pieces;
  double advance = 0;
};

/// Adds a rectangle.
inline void add_box(Outline& outline, double left, double top, double right, double bottom) {
  outline.pieces.push_back({1, {left, top}, {}, {}});
  outline.pieces.push_back({2, {right, top}, {}, {}});
  outline.pieces.push_back({2, {right, bottom}, {}, {}});
  outline.pieces.push_back({2, {left, bottom}, {}, {}});
  outline.pieces.push_back({2, {left, top}, {}, {}});
}

/// A font file in memory.
class Font {
 public:
  /// None for a file that is missing, cannot be read or holds no outlines.
  static std::optional<Font> read(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    if (status.st_size < 12 || status.st_size > (1 << 28)) return {};
    if (::access(path.c_str(), R_OK) != 0) return {};
    Font font;
    font.bytes_ = read_file(path);
    const auto* data = reinterpret_cast<const unsigned char*>(font.bytes_.data());
    const int offset = stbtt_GetFontOffsetForIndex(data, 0);
    if (offset < 0 || stbtt_InitFont(&font.info_, data, offset) == 0) return {};
    return font;
  }

  bool has(char32_t code) const {
    return stbtt_FindGlyphIndex(&info_, static_cast<int>(code)) != 0;
  }

  Outline outline(char32_t code) const {
    const int glyph = stbtt_FindGlyphIndex(&info_, static_cast<int>(code));
    const double scale = stbtt_ScaleForMappingEmToPixels(&info_, 1);
    int advance = 0, bearing = 0;
    stbtt_GetGlyphHMetrics(&info_, glyph, &advance, &bearing);
    Outline outline;
    outline.advance = advance * scale;
    stbtt_vertex* shape = nullptr;
    const int count = stbtt_GetGlyphShape(&info_, glyph, &shape);
    const auto free = [this](stbtt_vertex* vertices) { stbtt_FreeShape(&info_, vertices); };
    const std::unique_ptr<stbtt_vertex, decltype(free)> vertices(shape, free);
    for (int i = 0; i < count; ++i) {
      const stbtt_vertex& v = shape[i];
      outline.pieces.push_back({v.type,
                                {v.x * scale, -v.y * scale},
                                {v.cx * scale, -v.cy * scale},
                                {v.cx1 * scale, -v.cy1 * scale}});
    }
    return outline;
  }

 private:
  std::vector<std::byte> bytes_;  // its address stays when a Font is moved
  stbtt_fontinfo info_ = {};
};

/// The fonts of a picture, read when a letter needs them.
class Fonts {
 public:
  explicit Fonts(const PngOptions& options)
      : paths_(options.fonts.rbegin(), options.fonts.rend()),  // the next one last
        given_(paths_.size()),
        look_further_(options.system_fonts) {}

  /// The outline of a character, from the first font that has it.
  Outline outline(const Glyph& glyph) {
    const char32_t code = decode_utf8(glyph.bytes, 0).code;
    for (std::size_t i = 0;; ++i) {
      if (i == fonts_.size() && !read_next()) break;
      if (fonts_[i].has(code)) return fonts_[i].outline(code);
    }
    coarse_ = coarse_ || fonts_.empty();
    if (code < 0x7f) return coarse(static_cast<char>(code));
    if (missing_.find(glyph.bytes) == std::string::npos) missing_ += glyph.bytes;
    Outline box;
    box.advance = glyph.width == 2 ? 1 : 0.6;
    add_box(box, 0.06, -0.75, box.advance - 0.06, 0.02);
    add_box(box, box.advance - 0.12, -0.69, 0.12, -0.04);  // the other way round: a hole
    return box;
  }

  /// What could not be drawn well; empty if all could be.
  std::string note() const {
    std::string note;
    if (!unread_.empty()) note = "no font in " + unread_ + "; ";
    if (coarse_) note += "no font was found: letters are coarse; ";
    if (!missing_.empty()) note += "no font has " + missing_ + "; ";
    if (!note.empty()) note.resize(note.size() - 2);
    return note;
  }

 private:
  static constexpr std::size_t most_files = 40;  // a letter of no font asks all of them

  bool read_next() {
    while (!paths_.empty() || look_further_) {
      if (paths_.empty()) {
        look_further_ = false;
        find();
        continue;
      }
      const std::string path = paths_.back();
      paths_.pop_back();
      const bool given = given_ > 0;
      if (given) --given_;
      auto font = Font::read(path);
      if (font) {
        fonts_.push_back(std::move(*font));
        return true;
      }
      if (given) unread_ += (unread_.empty() ? "" : ", ") + path;
    }
    return false;
  }

  using Ranked = std::vector<std::pair<std::size_t, std::string>>;

  /// Adds the files of the system's folders: common sans-serif faces, then all others by name.
  void find() {
    const char* home = std::getenv("HOME");
    std::vector<std::string> folders = {"/usr/share/fonts", "/usr/local/share/fonts"};
    if (home != nullptr) {
      folders.push_back(std::string(home) + "/.fonts");
      folders.push_back(std::string(home) + "/.local/share/fonts");
    }
    folders.insert(folders.end(), {"/System/Library/Fonts", "/Library/Fonts"});
    Ranked found;
    for (const std::string& folder : folders) add_fonts(folder, found);
    std::sort(found.begin(), found.end());
    if (found.size() > most_files) found.resize(most_files);
    for (std::size_t i = found.size(); i-- > 0;) paths_.push_back(std::move(found[i].second));
  }
  /// Adds the fonts in a folder and in those below it; links to folders are not followed. Not by
  /// std::filesystem, whose iterators end the program when memory runs out.
  static void add_fonts(const std::string& folder, Ranked& found) {
    const auto close = [](DIR* open) { ::closedir(open); };
    const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
    if (open == nullptr) return;
    while (const dirent* entry = ::readdir(open.get())) {
      const std::string name = entry->d_name;
      std::string path = folder;
      path.append("/").append(name);
      if (name == "." || name == "..") continue;
      struct stat status {};
      if (::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
        add_fonts(path, found);
        continue;
      }
      const std::size_t dot = std::min(name.rfind('.'), name.size());
      const std::string kind = name.substr(dot);
      if (kind != ".ttf" && kind != ".otf" && kind != ".ttc") continue;
      found.emplace_back(rank(name.substr(0, dot)), std::move(path));
    }
  }
  /// Common faces first, then those with Chinese, Japanese and Korean letters.
  static std::size_t rank(const std::string& name) {
    constexpr std::string_view first[] = {"DejaVuSans", "NotoSans-Regular",
                                          "LiberationSans-Regular", "Arial", "Helvetica"};
    constexpr std::string_view parts[] = {"CJK",      "wqy",   "Fallback", "SourceHan", "PingFang",
                                          "Hiragino", "uming", "Unifont",  "unifont"};
    const auto at = std::find(std::begin(first), std::end(first), name);
    const auto part = std::find_if(std::begin(parts), std::end(parts), [&](std::string_view word) {
      return name.find(word) != std::string::npos;
    });
    if (at != std::end(first)) return static_cast<std::size_t>(at - std::begin(first));
    return std::size(first) + static_cast<std::size_t>(part - std::begin(parts));
  }

  /// A letter of stb_easy_font, whose capitals are 7 of its pixels high.
  static Outline coarse(char letter) {
    constexpr double pixel = 0.1, above = 8.5;  // pixels from its top to the baseline
    char text[] = {letter, 0};
    constexpr std::size_t corner_bytes = 16, box_bytes = 4 * corner_bytes;
    std::vector<char> corners(64 * box_bytes);
    const int boxes =
        stb_easy_font_print(0, 0, text, nullptr, corners.data(), static_cast<int>(corners.size()));
    Outline outline;
    outline.advance = stb_easy_font_width(text) * pixel;
    for (int box = 0; box < boxes; ++box) {
      float first[2], third[2];
      const char* begin = corners.data() + static_cast<std::size_t>(box) * box_bytes;
      std::memcpy(first, begin, sizeof(first));
      std::memcpy(third, begin + 2 * corner_bytes, sizeof(third));
      add_box(outline, first[0] * pixel, (first[1] - above) * pixel, third[0] * pixel,
              (third[1] - above) * pixel);
    }
    return outline;
  }

  std::vector<std::string> paths_;  // not read yet, the next one last
  std::size_t given_;               // of them by the user
  bool look_further_;               // in the folders of the system
  std::vector<Font> fonts_;
  bool coarse_ = false;
  std::string missing_, unread_;
};

}  // namespace detail

}  // namespace heed
