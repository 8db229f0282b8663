// SPDX-License-Identifier: MIT
// Softmax as a vote: what a mask does to it, what a temperature does to it, why attention divides
// by √d, and the mask as a matrix that is added.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core.hpp>
#include <heed/tensor.hpp>

#include "common.hpp"
#include "pictures.hpp"

namespace {

using namespace heed;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr char names[] = "ABCDE";
const std::vector<double> scores = {2.3, 5.7, 8.9, -1.2, -0.8};
const std::array<bool, 5> visible = {true, true, true, false, false};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

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
    softmax(scores, weights.select(0, row), {.temperature = temperature});
  }
  Heatmap picture = heatmap_of(weights);
  picture.row_labels = {"T 0.1", "T 0.5", "T 1", "T 2", "T 5"};
  picture.column_labels = {"A", "B", "C", "D", "E"};
  picture.row_title = "temperature";
  picture.column_title = "candidate, all five may vote";
  picture.numbers = true;
  std::fputs(to_terminal(picture, terminal).c_str(), stdout);
  std::puts("\n   Cold, the highest score takes all; hot, all votes draw level.\n");
}

/// The weight of each candidate over the temperature.
Chart temperature_chart() {
  constexpr int steps = 61;
  Chart chart;
  chart.title = "Softmax of five scores by temperature";
  chart.x_title = "temperature";
  chart.y_title = "weight";
  chart.low = 0;
  chart.high = 1;
  chart.log_x = true;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    chart.series.push_back({.name = std::string(1, names[i]) + ", score " + number(scores[i])});
  }
  for (int step = 0; step < steps; ++step) {
    const double temperature = std::pow(10, -1 + 3.0 * step / (steps - 1));  // 0.1 to 100
    const auto weights = softmax(scores, {.temperature = temperature});
    for (std::size_t i = 0; i < scores.size(); ++i) {
      chart.series[i].x.push_back(temperature);
      chart.series[i].y.push_back(weights[static_cast<Index>(i)]);
    }
  }
  return chart;
}

struct Spread {
  double variance = 0;        // of query · key
  double scaled = 0;          // of query · key / √d
  double largest = 0;         // mean of the largest of 16 weights, unscaled
  double largest_scaled = 0;  // the same, scaled
  double slope = 0;           // mean of the norm of d weights / d scores, unscaled
  double slope_scaled = 0;    // the same, scaled
};

/// The norm of the gradients of all weights with respect to all scores, w_i (δ_ij − w_j).
double slope_of(const Tensor<double, 1>& weights) {
  double sum = 0;
  for (Index i = 0; i < weights.size(); ++i) {
    for (Index j = 0; j < weights.size(); ++j) {
      const double slope = weights[i] * ((i == j ? 1 : 0) - weights[j]);
      sum += slope * slope;
    }
  }
  return std::sqrt(sum);
}

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
    const auto plain = softmax(dots), divided = softmax(dots, {.temperature = root});
    spread.largest += largest_of(plain) / n;
    spread.largest_scaled += largest_of(divided) / n;
    spread.slope += slope_of(plain) / n;
    spread.slope_scaled += slope_of(divided) / n;
  }
  spread.scaled = spread.variance / static_cast<double>(head_dim);
  return spread;
}

void print_root_d(std::uint64_t seed, Index count) {
  std::puts("\n4. Why attention divides by the root of d: q.k is a sum of d products\n");
  std::puts("          variance of           largest of 16 weights     gradient of the weights");
  std::puts("     d     q.k   q.k/sqrt(d)     of q.k  of q.k/sqrt(d)   of q.k  of q.k/sqrt(d)");
  for (const Index head_dim : {8, 64, 512, 4096}) {
    Random random(seed, static_cast<std::uint64_t>(head_dim));
    const Spread spread = measure(head_dim, count, random);
    std::printf("  %4td  %6.0f   %11.2f     %6.2f  %14.2f   %6.2f  %14.2f\n", head_dim,
                spread.variance, spread.scaled, spread.largest, spread.largest_scaled, spread.slope,
                spread.slope_scaled);
  }
  std::puts(
      "\n   Undivided, long vectors make one key take nearly all, and the gradient vanishes: "
      "nothing");
  std::puts("   can be learned. Divided, the spread is the same for every d.");
}

void print_matrix(const char* title, const TensorView<const double, 2>& matrix) {
  std::printf("   %s\n", title);
  for (Index row = 0; row < matrix.extent(0); ++row) {
    std::printf("     ");
    for (Index column = 0; column < matrix.extent(1); ++column) {
      const double value = matrix(row, column);
      std::isinf(value) ? std::printf("    -inf") : std::printf("%8.2f", value);
    }
    std::puts("");
  }
}

/// Attention of four tokens as textbooks write it, softmax(QKᵀ/√d + M) V, beside the call.
void print_matrices() {
  std::puts("\n5. The mask as a matrix: softmax(QK'/sqrt(d) + M) V, with M of 0 and -inf\n");
  const Tensor<double, 2> queries{{1, 0}, {0, 2}, {1, 1}, {2, -1}};
  const Tensor<double, 2> keys{{1, 1}, {0, 1}, {2, 0}, {-1, 1}};
  const Tensor<double, 2> values{{1, 0}, {0, 1}, {1, 1}, {4, 2}};
  // [matrix]
  const auto mask = additive<double>(masks::Causal{}, 4, 4);
  Tensor<double, 2> masked(4, 4), weights(4, 4), out(4, 2);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 4; ++j) {
      const double dot = queries(i, 0) * keys(j, 0) + queries(i, 1) * keys(j, 1);
      masked(i, j) = dot / std::sqrt(2.0) + mask(i, j);
    }
    softmax(masked[i], weights[i]);
    for (Index j = 0; j < 4; ++j) {
      for (Index d = 0; d < 2; ++d) out(i, d) += weights(i, j) * values(j, d);
    }
  }
  const auto same = attention(queries, keys, values, masks::Causal{});
  // [/matrix]
  print_matrix("M", mask);
  print_matrix("QK'/sqrt(d) + M", masked);
  print_matrix("weights", weights);
  double difference = 0;
  for (Index i = 0; i < out.size(); ++i) {
    difference = std::fmax(difference, std::fabs(out.data()[i] - same.data()[i]));
  }
  std::printf("\n   attention(queries, keys, values, masks::Causal{}) differs by %s.\n",
              difference < 1e-12 ? "less than 1e-12" : "more than it should");
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  bool quick = false;
  std::string color = "auto";
  example::CommandLine app(
      "Softmax as a vote: masks, temperature, why attention divides by the root of d, and the mask "
      "as a matrix.");
  app.add_option("--seed", seed, "of the random vectors in part 4");
  example::add_color(app, color);
  example::Pictures pictures;
  pictures.add_options(app, "the weights by temperature");
  app.add_flag("--quick", quick, "fewer random vectors");
  return app.run(argc, argv, [&] {
    pictures.check();
    const TerminalOptions terminal = terminal_options(color);
    print_vote();
    print_masks();
    print_temperatures(terminal);
    const Chart chart = temperature_chart();
    std::fputs(to_terminal(chart, terminal).c_str(), stdout);
    print_root_d(seed, quick ? 500 : 5000);
    print_matrices();
    pictures.write(chart);
  });
}
