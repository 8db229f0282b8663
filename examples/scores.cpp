// SPDX-License-Identifier: MIT
// What can be done to scores between the product and the softmax, one at a time: the weights that
// one query gives to seven keys before it and to its own.
#include <cstdio>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core.hpp>

#include "help.hpp"

using namespace heed;

namespace {

constexpr Index length = 8, dim = 4;

struct Inputs {
  Tensor<float, 4> queries{{1, 1, length, dim}}, keys{{1, 1, length, dim}};
};

/// The last query's weights, in percent.
void show(const char* name, const Inputs& in, const AttentionOptions<float>& options) {
  const auto weights = attention_weights(in.queries, in.keys, masks::Causal{}, {}, options);
  const auto row = as_span(weights.view()).last(length);
  float sum = 0;
  std::printf("%-34s", name);
  for (const float weight : row) {
    std::printf("%6.1f", 100 * static_cast<double>(weight));
    sum += weight;
  }
  std::printf("   sum %.2f\n", static_cast<double>(sum));
}

}  // namespace

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments, "What options of attention do to its weights.", status)) {
    return status;
  }
  Inputs in;
  Random random(5);
  for (float& value : in.queries) value = 2 * random.normal<float>();
  for (float& value : in.keys) value = random.normal<float>();
  std::puts("The last of eight tokens looks at all eight, in percent:\n");
  show("scores over the root of 4", in, {});
  show("scale 1/8, flatter", in, {.scale = 0.125f});
  show("scale 0: all alike", in, {.scale = 0.f});
  show("softcap 1: no score beyond 1", in, {.softcap = 1});
  // [changes]
  const std::vector<float> slopes = {0.5f};  // ALiBi: what a step back costs, for each head
  const Tensor<float, 2> by_distance({1, 5}, {-2, 2, 0, 0, 0});  // two back or more, one, itself, …
  const std::vector<float> sinks = {1.f};  // a key without a value that takes its share
  // [/changes]
  show("ALiBi, slope 1/2", in, {.alibi_slopes = slopes});
  show("relative bias: one back", in, {.relative_bias = by_distance});
  show("a sink of 1 takes the rest", in, {.sinks = sinks});
  show("all of these together", in,
       {.softcap = 1, .alibi_slopes = slopes, .relative_bias = by_distance, .sinks = sinks});
}
