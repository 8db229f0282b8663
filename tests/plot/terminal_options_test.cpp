// SPDX-License-Identifier: MIT
#include <heed/plot/terminal.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

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
