// SPDX-License-Identifier: MIT
#include <heed/plot/terminal.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/plot/detail/drawing.hpp>

namespace heed {
namespace {

/// The variables that matter, all unset at first, and back as they were at the end.
class TerminalEnvironment : public ::testing::Test {
 protected:
  TerminalEnvironment() {
    for (const char* name : {"FORCE_COLOR", "NO_COLOR", "COLORTERM", "TERM", "COLUMNS"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? std::optional<std::string>() : value);
      ::unsetenv(name);
    }
    ::setenv("TERM", "xterm-256color", 1);
  }
  ~TerminalEnvironment() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
    for (const int descriptor : opened_) ::close(descriptor);
  }

  int opened(int descriptor) {
    opened_.push_back(descriptor);
    return descriptor;
  }
  int no_terminal() { return opened(::open("/dev/null", O_WRONLY)); }
  /// A pseudo-terminal of this width; negative where the system has none to give.
  int terminal(unsigned short width) {
    const int master = opened(::posix_openpt(O_RDWR | O_NOCTTY));
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) return -1;
    const char* name = ::ptsname(master);
    const int slave = name == nullptr ? -1 : opened(::open(name, O_RDWR | O_NOCTTY));
    winsize size{};
    size.ws_col = width;
    size.ws_row = 40;
    return slave >= 0 && ::ioctl(slave, TIOCSWINSZ, &size) == 0 ? slave : -1;
  }

  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
  std::vector<int> opened_;
};

TEST_F(TerminalEnvironment, NoEscapesInFilesAndPipes) {
  ::setenv("COLORTERM", "truecolor", 1);
  EXPECT_EQ(detect_terminal(no_terminal()).color, ColorDepth::none);
  EXPECT_EQ(detect_terminal(no_terminal()).width, 80);
}

TEST_F(TerminalEnvironment, ForcedColors) {
  const int file = no_terminal();
  const auto forced = [&](const char* value) {
    ::setenv("FORCE_COLOR", value, 1);
    return detect_terminal(file).color;
  };
  EXPECT_EQ(forced("1"), ColorDepth::palette_256);
  EXPECT_EQ(forced("3"), ColorDepth::true_color);
  ::setenv("COLORTERM", "24bit", 1);
  EXPECT_EQ(forced("1"), ColorDepth::true_color);
  EXPECT_EQ(forced("2"), ColorDepth::palette_256);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(forced("yes"), ColorDepth::true_color) << "FORCE_COLOR has the last word";
  EXPECT_EQ(forced("0"), ColorDepth::none);
  EXPECT_EQ(forced(""), ColorDepth::none) << "empty is unset";
}

TEST_F(TerminalEnvironment, ATerminalHasItsColorsAndWidth) {
  const int screen = terminal(132);
  if (screen < 0) GTEST_SKIP() << "no pseudo-terminals here";
  EXPECT_EQ(detect_terminal(screen).color, ColorDepth::palette_256);
  EXPECT_EQ(detect_terminal(screen).width, 132);
  ::setenv("COLORTERM", "truecolor", 1);
  EXPECT_EQ(detect_terminal(screen).color, ColorDepth::true_color);
  ::setenv("COLUMNS", "50", 1);
  EXPECT_EQ(detect_terminal(screen).width, 132) << "the terminal knows better";
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(detect_terminal(screen).color, ColorDepth::none);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_EQ(detect_terminal(screen).color, ColorDepth::none);
}

TEST_F(TerminalEnvironment, ColumnsWhereThereIsNoTerminal) {
  const int file = no_terminal();
  const auto width = [&](const char* columns) {
    ::setenv("COLUMNS", columns, 1);
    return detect_terminal(file).width;
  };
  EXPECT_EQ(width("142"), 142);
  for (const char* nonsense : {"", "0", "-3", "wide", "99999999999999999999"}) {
    EXPECT_EQ(width(nonsense), 80) << nonsense;
  }
}

TEST_F(TerminalEnvironment, AWordDecides) {
  const int file = no_terminal();
  EXPECT_EQ(terminal_options("auto", file).color, ColorDepth::none);
  EXPECT_EQ(terminal_options("always", file).color, ColorDepth::palette_256);
  EXPECT_EQ(terminal_options("256", file).color, ColorDepth::palette_256);
  EXPECT_EQ(terminal_options("truecolor", file).color, ColorDepth::true_color);
  ::setenv("FORCE_COLOR", "3", 1);
  EXPECT_EQ(terminal_options("never", file).color, ColorDepth::none);
  EXPECT_THROW(terminal_options("rainbow", file), InvalidArgument);
}

}  // namespace
}  // namespace heed

namespace heed::detail {
namespace {

TEST(TerminalPaint, PaletteHasTheNearestColorOfTheCube) {
  constexpr int levels[] = {0, 95, 135, 175, 215, 255};
  for (int channel = 0; channel < 256; ++channel) {
    const int chosen = levels[cube_level(static_cast<std::uint8_t>(channel))];
    for (const int level : levels) {
      EXPECT_LE(std::abs(chosen - channel), std::abs(level - channel)) << channel;
    }
  }
}

TEST(TerminalPaint, Escapes) {
  const Color color{95, 135, 255};
  EXPECT_EQ(escape("48", color, ColorDepth::true_color), "\x1b[48;2;95;135;255m");
  EXPECT_EQ(escape("38", color, ColorDepth::palette_256), "\x1b[38;5;69m");
  EXPECT_EQ(painted("x", color, ColorDepth::none), "x");
  EXPECT_EQ(painted("x", {0, 0, 0}, ColorDepth::true_color),
            "\x1b[48;2;0;0;0m\x1b[38;2;255;255;255mx\x1b[0m");
  EXPECT_EQ(painted("x", {250, 250, 250}, ColorDepth::palette_256),
            "\x1b[48;5;231m\x1b[38;5;16mx\x1b[0m");
  EXPECT_EQ(half_blocks({255, 0, 0}, {0, 0, 255}, ColorDepth::true_color),
            "\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m▀\x1b[0m");
}

TEST(TerminalPaint, TextIsLegibleOnTheColorThatIsShown) {
  for (int step = 0; step <= 200; ++step) {
    const Color shown = shown_color(viridis(step / 200.0), ColorDepth::palette_256);
    EXPECT_GE(contrast(text_color_on(shown), shown), 4.5) << step;
  }
}

}  // namespace
}  // namespace heed::detail

namespace heed {
namespace {

constexpr TerminalOptions plain{ColorDepth::none, 80};

/// Three words under a causal mask, as if computed.
Heatmap three_words() {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({3, 3});
  const double values[] = {1, 0, 0, 0.25, 0.75, 0, 0.004, 0.5, 0.496};
  std::copy(std::begin(values), std::end(values), heatmap.values.begin());
  heatmap.row_labels = heatmap.column_labels = {"the", "cat", "sat"};
  return heatmap;
}

Heatmap ramp(Index rows, Index columns) {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({rows, columns});
  for (Index i = 0; i < rows * columns; ++i) {
    heatmap.values.data()[i] = static_cast<double>(i) / static_cast<double>(rows * columns - 1);
  }
  return heatmap;
}

/// Columns of the widest line, escapes left out.
Index drawn_width(const std::string& text) {
  Index widest = 0;
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else if (text[i] == '\n') {
      widest = std::max(widest, detail::text_width(line));
      line.clear();
    } else {
      line += text[i];
    }
  }
  return widest;
}

TEST(Terminal, ColorsByTheRootSaySo) {
  Heatmap heatmap = three_words();
  heatmap.by_root = true;
  const std::string text = to_terminal(heatmap, plain);
  EXPECT_NE(text.find("sat ..##"), std::string::npos) << "0.004 and 0.5: 0.06 and 0.7\n" << text;
  EXPECT_NE(text.find("| 1 by root"), std::string::npos) << text;
}

TEST(Terminal, NumbersInCells) {
  Heatmap heatmap = three_words();
  heatmap.numbers = true;
  heatmap.title = "causal";
  EXPECT_EQ(to_terminal(heatmap, plain), R"(causal
      t   c   s
      h   a   a
      e   t   t
the  1.0  ·   ·
cat  .25 .75  ·
sat  .00 .50 .50
· exactly 0   rows: query, columns: key
)");
}

TEST(Terminal, ShadesWhereThereAreNoColors) {
  EXPECT_EQ(to_terminal(three_words(), plain), R"(    t c s
    h a a
    e t t
the @@
cat ::##
sat ..====
0 |....:--=++*##%@@| 1   ' ' masked (exactly 0)   rows: query, columns: key
)");
}

TEST(Terminal, ColorsWithTextThatReadsOnThem) {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({1, 2});
  heatmap.values(0, 1) = 1;
  heatmap.numbers = true;
  const std::string text = to_terminal(heatmap, {ColorDepth::true_color, 80});
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "\x1b[48;2;88;88;88m\x1b[38;2;255;255;255m  · \x1b[0m"
            "\x1b[48;2;253;231;37m\x1b[38;2;0;0;0m 1.0\x1b[0m");
  const std::string palette = to_terminal(heatmap, {ColorDepth::palette_256, 80});
  EXPECT_EQ(palette.substr(0, palette.find('\n')),
            "\x1b[48;5;59m\x1b[38;5;231m  · \x1b[0m\x1b[48;5;220m\x1b[38;5;16m 1.0\x1b[0m");
}

TEST(Terminal, NoEscapeWithoutColor) {
  Heatmap heatmap = three_words();
  heatmap.row_labels[1] = "\x1b[31mred\n";
  heatmap.column_labels[0] = "\x1b[2J";
  heatmap.title = "\x1b]0;title\x07";
  for (const bool numbers : {false, true}) {
    heatmap.numbers = numbers;
    EXPECT_EQ(to_terminal(heatmap, plain).find('\x1b'), std::string::npos);
  }
}

TEST(Terminal, HalfBlocksWhenSquareCellsDoNotFit) {
  const std::string text = to_terminal(ramp(3, 3), {ColorDepth::palette_256, 5});
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_EQ(first.substr(0, first.find("▀")), "\x1b[38;5;59m\x1b[48;5;24m");
  // The last row has no partner and keeps the terminal's own background below.
  const auto end = text.find('\n', first.size() + 1);
  const std::string second = text.substr(first.size() + 1, end - first.size() - 1);
  EXPECT_EQ(second.find("[48;"), std::string::npos);
  EXPECT_EQ(second.substr(second.rfind("\x1b[38")), "\x1b[38;5;220m▀\x1b[0m");
}

TEST(Terminal, NothingIsWiderThanTheTerminal) {
  for (const Index columns : {1, 7, 15, 40, 100, 333}) {
    for (const Index width : {20, 79, 80, 200}) {
      for (const ColorDepth color : {ColorDepth::none, ColorDepth::true_color}) {
        Heatmap heatmap = ramp(4, columns);
        heatmap.numbers = true;
        heatmap.title = "a title that takes more columns than the narrowest of the terminals has";
        heatmap.row_labels = {"a", "bb", "a label that is much too long for a margin", "日本語"};
        std::string text = to_terminal(heatmap, {color, width});
        EXPECT_LE(drawn_width(text), width) << columns << " columns";
      }
    }
  }
}

TEST(Terminal, LongCategoriesAreCutInColorToo) {
  Heatmap heatmap;
  heatmap.values = Tensor<double, 2>({2, 2});
  heatmap.categories = {std::string(90, 'x'), "b"};
  for (const ColorDepth depth : {ColorDepth::none, ColorDepth::true_color}) {
    const std::string text = to_terminal(heatmap, {depth, 40});
    EXPECT_EQ(text.find(std::string(38, 'x')), std::string::npos) << text;
    EXPECT_NE(text.find(std::string(30, 'x')), std::string::npos) << text;
  }
}

TEST(Terminal, LargeMatricesAreShownAsMeans) {
  const std::string text = to_terminal(ramp(300, 300), plain);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 75 + 1);
  EXPECT_NE(text.find("a cell is the mean of 4 x 4"), std::string::npos);
}

TEST(Terminal, WideLettersKeepColumnsInLine) {
  Heatmap heatmap = three_words();
  heatmap.row_labels = {"猫", "e\u0301te\u0301", "a"};
  heatmap.column_labels = {"猫", "b", "c"};
  EXPECT_EQ(to_terminal(heatmap, plain),
            "    猫b c\n"
            "猫  @@\n"
            "e\u0301te\u0301 ::##\n"
            "a   ..====\n"
            "0 |....:--=++*##%@@| 1   ' ' masked (exactly 0)   rows: query, columns: key\n");
}

TEST(Terminal, SideBySideAsWidthAllows) {
  Heatmap left = three_words(), right = three_words();
  left.title = "one";
  right.title = "a longer title";
  right.column_labels.clear();
  const Heatmap both[] = {left, right};
  EXPECT_EQ(to_terminal(both, {ColorDepth::none, 27}), R"(one          a longer title
    t c s    the @@
    h a a    cat ::##
    e t t    sat ..====
the @@
cat ::##
sat ..====
0 |....:--=++*##%@@| 1
' ' masked (exactly 0)
rows: query, columns: key
)");
  const std::string below = to_terminal(both, {ColorDepth::none, 26});
  EXPECT_NE(below.find("sat ..====\n\na longer title\n"), std::string::npos) << below;
  right.high = 2;
  const Heatmap unequal[] = {left, right};
  const std::string legends = to_terminal(unequal, {ColorDepth::none, 26});
  EXPECT_NE(legends.find("@@| 1\n"), std::string::npos);
  EXPECT_NE(legends.find("@@| 2\n"), std::string::npos) << "each range has its color bar";
  const std::string wide = to_terminal(unequal, {ColorDepth::none, 200});
  EXPECT_LT(wide.find("@@| 1 "), wide.find("@@| 2 ")) << "side by side too";
  EXPECT_NE(wide.find("@@| 2 "), std::string::npos);
}

TEST(Terminal, NaNAndEmptyMatrices) {
  Heatmap heatmap = three_words();
  heatmap.values(1, 1) = NAN;
  EXPECT_NE(to_terminal(heatmap, plain).find("cat ::??"), std::string::npos);
  heatmap.numbers = true;
  EXPECT_NE(to_terminal(heatmap, plain).find(".25 NaN"), std::string::npos);
  EXPECT_EQ(to_terminal(ramp(0, 0), plain), "0 |  ..:--=++*##%@@| 1   rows: query, columns: key\n");
  EXPECT_EQ(to_terminal(std::span<const Heatmap>(), plain), "");
}

TEST(Terminal, LabelsThatDoNotFitAreRefused) {
  Heatmap heatmap = three_words();
  heatmap.column_labels.pop_back();
  EXPECT_THROW(to_terminal(heatmap, plain), ShapeError);
}

}  // namespace
}  // namespace heed
