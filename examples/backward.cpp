// SPDX-License-Identifier: MIT
// What docs/04-backward.md shows: a query learns by gradient descent which token to look at.
#include <cstdio>

#include <heed/attention.hpp>
#include <heed/core.hpp>

#include "help.hpp"

int main(int count, char** arguments) {
  int status = 0;
  if (example::helped(count, arguments, "A query learns which token to look at.", status))
    return status;
  using namespace heed;
  Random random(7);
  Tensor<float, 2> query({1, 8}), keys({6, 8}), values({6, 4});
  for (auto* tensor : {&query, &keys, &values}) {
    for (float& value : *tensor) value = static_cast<float>(random.normal());
  }
  const auto wanted = values.slice(0, 3, 4);  // what token 3 says

  // [backward]
  Tensor<float, 2> out({1, 4}), grad_out({1, 4});
  Tensor<float, 1> log_sum_exp({1});
  Tensor<float, 2> grad_query(query.extents()), grad_keys(keys.extents()),
      grad_values(values.extents());
  for (int step = 0; step <= 200; ++step) {
    attention(query, keys, values, out, {.log_sum_exp = log_sum_exp});
    float loss = 0;
    for (Index d = 0; d < 4; ++d) {
      grad_out(0, d) = out(0, d) - wanted(0, d);
      loss += grad_out(0, d) * grad_out(0, d) / 2;
    }
    attention_backward(query, keys, values, out, log_sum_exp, grad_out, grad_query, grad_keys,
                       grad_values);
    for (Index d = 0; d < 8; ++d) query(0, d) -= 0.5f * grad_query(0, d);
    if (step % 50 == 0) std::printf("step %3d  loss %.3f\n", step, static_cast<double>(loss));
  }
  // [/backward]

  const auto weights = attention_weights(query, keys);
  std::printf("weights");
  for (const float weight : weights) std::printf(" %.2f", static_cast<double>(weight));
  std::puts("");
}
