// SPDX-License-Identifier: MIT
// Softmax as a vote: what a mask does to it, what a temperature does to it, and why attention
// divides by √d.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <heed/heed.hpp>

#include "common.hpp"

namespace {

using namespace heed;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr char names[] = "ABCDE";
const std::vector<double> scores = {2.3, 5.7, 8.9, -1.2, -0.8};
const std::array<bool, 5> visible = {true, true, true, false, false};

std::string bar(double share) {
  const auto length = static_cast<std::size_t>(std::lround(share * 40));
  return length == 0 ? "" : ' ' + std::string(length, '#');
}

void print_vote() {
  std::puts("1. The vote: weight = exp(score) / sum of exp(score) over who may vote\n");
  // [vote]
  const auto votes = softmax(scores, {.mask = visible});
  // [/vote]
  std::puts("       score  may vote  weight");
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double vote = votes[static_cast<Index>(i)];
    std::printf("   %c %5.1f   %-8s ", names[i], scores[i], visible[i] ? "yes" : "no");
    vote == 0 ? std::puts("      0") : std::printf("%7.2f %%%s\n", 100 * vote, bar(vote).c_str());
  }
  std::vector<double> shifted = scores;
  for (double& score : shifted) score += 1024;
  const auto same = softmax(shifted, {.mask = visible});
  double difference = 0;
  for (Index i = 0; i < 5; ++i) difference = std::fmax(difference, std::fabs(same[i] - votes[i]));
  // The logarithms of the weights, softened: no weight of 0 is taken the logarithm of.
  const auto logs = log_softmax(scores, {.temperature = 2, .mask = visible});
  std::printf("\n   log weights at T 2 ");
  for (const double log : logs) {
    std::isinf(log) ? std::printf("    -inf") : std::printf("%8.3f", log);
  }
  std::puts("");
  std::printf("\n   Only differences count: with 1024 added to every score, weights move by %s.\n",
              difference < 1e-12 ? "less than 1e-12" : "more than they should");
}

/// The usual trick: add a penalty to scores that may not vote, then the formula as it stands.
std::vector<double> vote_by_penalty(std::vector<double> row, const std::array<bool, 5>& keep,
                                    double penalty) {
  double maximum = -infinity, sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!keep[i]) row[i] += penalty;
    maximum = std::fmax(maximum, row[i]);
  }
  for (double& score : row) sum += score = std::exp(score - maximum);
  for (double& weight : row) weight /= sum;
  return row;
}

void print_row(const char* name, const double* weights) {
  std::printf("   %-17s", name);
  for (int i = 0; i < 5; ++i) {
    const double percent = 100 * weights[i];
    if (std::isnan(percent)) {
      std::printf("%10s", "NaN");
    } else if (percent == 0) {
      std::printf("%10s", "0");
    } else {
      std::printf(percent < 0.01 ? "%10.1e" : "%10.2f", percent);
    }
  }
  std::puts("");
}

void print_masking(const char* title, const std::vector<double>& row,
                   const std::array<bool, 5>& keep) {
  std::printf("\n   %s\n", title);
  print_row("add -100", vote_by_penalty(row, keep, -100).data());
  print_row("add -1000", vote_by_penalty(row, keep, -1000).data());
  print_row("add -inf", vote_by_penalty(row, keep, -infinity).data());
  print_row("heed: leave out", softmax(row, {.mask = keep}).data());
}

void print_masks() {
  std::puts("\n2. Three ways to mask by adding, and leaving out (weights of A to E in %)");
  print_masking("the last two may not vote", scores, visible);
  print_masking("nobody may vote: a penalty for all is a penalty for none", scores,
                {false, false, false, false, false});
  std::vector<double> broken = scores;
  broken[4] = std::numeric_limits<double>::quiet_NaN();
  print_masking("a NaN where nobody should look", broken, visible);
}

void print_temperatures(const TerminalOptions& terminal) {
  std::puts("\n3. Temperature: softmax(score / T)\n");
  const std::array<double, 5> temperatures = {0.1, 0.5, 1, 2, 5};
  Tensor<double, 2> weights({5, 5});
  for (Index row = 0; row < 5; ++row) {
    const double temperature = temperatures[static_cast<std::size_t>(row)];
    softmax(scores, weights.view().select(0, row), {.temperature = temperature});
  }
  Heatmap picture = heatmap_of(weights);
  picture.row_labels = {"T 0.1", "T 0.5", "T 1", "T 2", "T 5"};
  picture.column_labels = {"A", "B", "C", "D", "E"};
  picture.row_title = "temperature";
  picture.column_title = "candidate, all five may vote";
  picture.numbers = true;
  std::fputs(to_terminal(picture, terminal).c_str(), stdout);
  std::puts("\n   Cold, the highest score takes all; hot, all votes draw level.");
}

struct Spread {
  double variance = 0;        // of query · key
  double scaled = 0;          // of query · key / √d
  double largest = 0;         // mean of the largest of 16 weights, unscaled
  double largest_scaled = 0;  // the same, scaled
};

double largest_of(const Tensor<double, 1>& weights) {
  double largest = 0;
  for (const double weight : weights) largest = std::fmax(largest, weight);
  return largest;
}

/// Dot products of `count` queries with 16 keys each, all components standard normal.
Spread measure(Index head_dim, Index count, Random& random) {
  constexpr Index keys = 16;
  const double root = std::sqrt(static_cast<double>(head_dim));
  Spread spread;
  std::vector<double> query(static_cast<std::size_t>(head_dim)), dots(keys);
  for (Index i = 0; i < count; ++i) {
    for (double& component : query) component = random.normal();
    for (double& dot : dots) {
      dot = 0;
      for (const double component : query) dot += component * random.normal();
      spread.variance += dot * dot / static_cast<double>(count * keys);
    }
    const auto n = static_cast<double>(count);
    spread.largest += largest_of(softmax(dots)) / n;
    spread.largest_scaled += largest_of(softmax(dots, {.temperature = root})) / n;
  }
  spread.scaled = spread.variance / static_cast<double>(head_dim);
  return spread;
}

void print_root_d(std::uint64_t seed, Index count) {
  std::puts("\n4. Why attention divides by the root of d: q.k is a sum of d products\n");
  std::puts("          variance of           largest of 16 weights, mean");
  std::puts("     d     q.k   q.k/sqrt(d)     of q.k   of q.k/sqrt(d)");
  for (const Index head_dim : {8, 64, 512}) {
    Random random(seed, static_cast<std::uint64_t>(head_dim));
    const Spread spread = measure(head_dim, count, random);
    std::printf("   %3td  %6.1f   %11.2f     %6.2f   %14.2f\n", head_dim, spread.variance,
                spread.scaled, spread.largest, spread.largest_scaled);
  }
  std::puts(
      "\n   Undivided, long vectors make one key take nearly all, and nothing can be learned");
  std::puts("   from the rest; divided, the spread is the same for every d.");
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  bool quick = false;
  std::string color = "auto";
  CLI::App app(
      "Softmax as a vote: masks, temperature, and why attention divides by the root of d.");
  app.add_option("--seed", seed, "of the random vectors in part 4")->capture_default_str();
  example::add_color(app, color);
  app.add_flag("--quick", quick, "fewer random vectors");
  return example::run(app, argc, argv, [&] {
    const TerminalOptions terminal = terminal_options(color);
    print_vote();
    print_masks();
    print_temperatures(terminal);
    print_root_d(seed, quick ? 500 : 5000);
  });
}
