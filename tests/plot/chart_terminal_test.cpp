// SPDX-License-Identifier: MIT
#include <heed/plot/terminal.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <heed/plot/detail/drawing.hpp>

namespace heed {
namespace {

constexpr TerminalOptions plain{ColorDepth::none, 80};

/// A loss that falls from 2.35 to 2.2, without libm's last bits in it.
Chart loss() {
  Chart chart;
  std::vector<double> values;
  double above = 0.15;
  for (int epoch = 0; epoch < 20; ++epoch, above *= 0.7408182206817179) {
    values.push_back(2.2 + above);
  }
  chart.series = {series_of(values, "training", 1)};
  chart.title = "Training loss";
  chart.x_title = "epoch";
  chart.y_title = "loss";
  return chart;
}

TEST(ChartTerminal, ALineWithItsPoints) {
  EXPECT_EQ(to_terminal(loss(), plain), R"(      Training loss
2.35 ┤o⡀
     │ ⠱⡀
     │  ⠱⡀
     │   ⠘o
2.30 ┤    ⠈⢆
     │      ⠣⡀
     │       o⢄
     │         ⠑⢄
     │           o⠢⡀
2.25 ┤             ⠈⠑o⡀
     │                ⠈⠑⠤o
     │                    ⠉⠑⠢o⣀⡀
     │                         ⠈o⠑⠒⠢o⠤⢄⣀o⡀
2.20 ┤                                   ⠈⠉⠉o⠑⠒⠒o⠒⠒⠒o⠤⠤o⠤⠤⠤o⠤⠤⠤o⠤⠤⣀o⣀⣀⣀o⣀⣀o⣀⣀⣀o
     └────┬──────┬───────┬──────┬───────┬───────┬──────┬───────┬───────┬──────┬
          2      4       6      8      10      12     14      16      18     20
                                        epoch
      o training   up: loss
)");
}

TEST(ChartTerminal, LinesAreToldApart) {
  Chart chart;
  chart.series = {{"truth", {0, 1, 2, 3}, {0, 2, 1, 3}}, {"guess", {0, 1, 2, 3}, {3, 2, NAN, 0}}};
  const std::string text = to_terminal(chart, {ColorDepth::none, 30});
  EXPECT_EQ(text, R"(3 ┤x⢄                       o
  │  ⠑⢄                    ⡜
  │    ⠱⡀                 ⡜
  │     ⠈⠢⡀              ⡸
2 ┤       ⠈x⡀           ⡰⠁
  │       ⢠⠃⠈⢢         ⡰⠁
  │      ⢠⠃   ⠑⢄      ⢠⠃
  │     ⢠⠃      ⠑⢄   ⢠⠃
  │    ⢀⠎         ⠣⡀⢠⠃
1 ┤   ⢀⠎           ⠈o
  │   ⡎
  │  ⡜
  │ ⡜
0 ┤o                        x
  └┬───────┬────────┬───────┬
   0       1        2       3
   o truth   x guess
)");
  const std::string colored = to_terminal(chart, {ColorDepth::true_color, 30});
  EXPECT_NE(colored.find("\x1b[38;2;0;114;178mo\x1b[0m truth"), std::string::npos);
  EXPECT_NE(colored.find("\x1b[38;2;213;94;0mx\x1b[0m guess"), std::string::npos);
}

Chart bars() {
  return {.series = {{"found", {0, 1, 2}, {4, 2, -1}, true},
                     {"missed", {0, 1, 2}, {1, 3, 2}, true},
                     {"time", {0, 1, 2}, {10, 30, 20}, false, true}},
          .x_labels = {"Causal", "Padding", "Window"},
          .right_title = "ms"};
}

TEST(ChartTerminal, IsNoWiderThanTheTerminal) {
  for (const double last : {10., 99999., 1e5, 1e6, 1e7}) {
    Chart chart;
    chart.series = {{.x = {0, last / 2, last}, .y = {1, 2, 3}}};
    for (Index width = 24; width <= 104; ++width) {
      const std::string text = to_terminal(chart, {ColorDepth::none, width});
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        EXPECT_LE(detail::text_width(text.substr(at, end - at)), width) << last;
        at = end + 1;
      }
    }
  }
}

TEST(ChartTerminal, SeveralStandOneBelowTheOther) {
  const std::vector<Chart> charts = {loss(), bars()};
  EXPECT_EQ(to_terminal(charts, plain),
            to_terminal(charts[0], plain) + "\n" + to_terminal(charts[1], plain));
}

TEST(ChartTerminal, BarsAndASecondAxis) {
  EXPECT_EQ(to_terminal(bars(), {ColorDepth::none, 44}),
            R"( 4 ┤ ⣿o⣿            ⢀+⢄                ├ 30
   │ ⣿⣿⣿            ⡎  ⠑⡄              │
 3 ┤ ⣿⣿⣿           ⡜  ⣀x⠈⠢⡀            │
   │ ⣿⣿⣿          ⡸   ⣿⣿⣿ ⠈⢆           ├ 25
   │ ⣿⣿⣿         ⢰⠁   ⣿⣿⣿   ⠑⢄         │
 2 ┤ ⣿⣿⣿        ⢠⠃o⣤  ⣿⣿⣿     ⠣⡀ ⣤x⣤   │
   │ ⣿⣿⣿       ⢀⠇⣿⣿⣿  ⣿⣿⣿      ⠈⠢+⣿⣿   ├ 20
   │ ⣿⣿⣿       ⡎ ⣿⣿⣿  ⣿⣿⣿        ⣿⣿⣿   │
 1 ┤ ⣿⣿⣿  ⣶x⣶ ⡜  ⣿⣿⣿  ⣿⣿⣿        ⣿⣿⣿   │
   │ ⣿⣿⣿  ⣿⣿⣿⡸   ⣿⣿⣿  ⣿⣿⣿        ⣿⣿⣿   │
   │ ⣿⣿⣿  ⣿⣿⢰⠁   ⣿⣿⣿  ⣿⣿⣿        ⣿⣿⣿   ├ 15
 0 ┤ ⠉⠉⠉  ⠉⢠⠃    ⠉⠉⠉  ⠉⠉⠉    ⣿⣿⣿ ⠉⠉⠉   │
   │      ⢀⠇                 ⣿⣿⣿       │
-1 ┤      +                  ⣿o⣿       ├ 10
   └──────┬──────────┬───────────┬─────┘
       Causal     Padding     Window
    o found   x missed   + time (right)
    right: ms
)");
  // Names that do not fit are listed.
  const std::string narrow = to_terminal(bars(), {ColorDepth::none, 26});
  EXPECT_NE(narrow.find("   0 Causal   1 Padding\n"), std::string::npos) << narrow;
  const std::string colored = to_terminal(bars(), {ColorDepth::true_color, 44});
  EXPECT_NE(colored.find("\x1b[38;2;213;94;0m⣿\x1b[0m"), std::string::npos);
}

TEST(ChartTerminal, ThreeLinesThatCoincideAreAllSeen) {
  Chart chart;
  for (const char* name : {"a", "b", "c"}) {
    chart.series.push_back({name, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}});
  }
  std::string text = to_terminal(chart, {ColorDepth::none, 40});
  text.resize(text.find("└"));
  for (const char mark : {'o', 'x', '+'}) EXPECT_EQ(std::count(text.begin(), text.end(), mark), 2);
}

TEST(ChartTerminal, NothingIsWiderThanTheTerminalAndNothingEscapes) {
  Chart chart = loss();
  chart.series.push_back(series_of(std::vector<double>(5000, 2.3), "\x1b[31m"));
  chart.series.push_back({"bars", {1, 2, 3}, {1e7, 2, 3}, true, true});
  chart.x_labels = {"\x1b[32m", "a name that is rather long", "c"};
  for (const Index width : {8, 20, 41, 80, 300}) {
    const std::string text = to_terminal(chart, {ColorDepth::none, width});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    std::string line;
    for (const char letter : text) {
      line += letter;
      if (letter != '\n') continue;
      EXPECT_LE(detail::text_width(line) - 1, std::max<Index>(width, 15)) << line << "two axes";
      line.clear();
    }
  }
}

TEST(ChartTerminal, LinesThatCoincideAreBothSeen) {
  Chart chart;
  chart.series = {{"truth", {0, 1, 2, 3}, {0, 2, 1, 3}}, {"guess", {0, 1, 2, 3}, {0, 2, 1, 3}}};
  std::string text = to_terminal(chart, {ColorDepth::none, 30});
  text.resize(text.find("└"));
  EXPECT_EQ(std::count(text.begin(), text.end(), 'o'), 2);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'x'), 2);
}

TEST(ChartTerminal, LegendsOfManyLinesAreWrapped) {
  Chart chart;
  for (int i = 0; i < 20; ++i)
    chart.series.push_back({"query " + std::to_string(i), {0, 1}, {0, 1}});
  const std::string text = to_terminal(chart, {ColorDepth::none, 40});
  const std::string legend = text.substr(text.find("query 0"));
  EXPECT_GE(std::count(legend.begin(), legend.end(), '\n'), 7);
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(legend.find("query " + std::to_string(i)), std::string::npos) << i;
  }
}

TEST(ChartTerminal, LongLinesAreMarkedHereAndThere) {
  Chart chart;
  chart.series = {series_of(std::vector<double>(5000, 1.0), "flat")};
  const std::string text = to_terminal(chart, plain);
  const auto marks = std::count(text.begin(), text.end(), 'o');
  EXPECT_GT(marks, 5);
  EXPECT_LT(marks, 15);
}

TEST(ChartTerminal, EmptyAndBroken) {
  EXPECT_NE(to_terminal(Chart{}, plain).find("1.0 ┤"), std::string::npos);
  Chart broken;
  broken.series = {{"", {1}, {}}};
  EXPECT_THROW(to_terminal(broken, plain), ShapeError);
}

}  // namespace
}  // namespace heed
