// SPDX-License-Identifier: MIT
#include <heed/attention.hpp>

struct Mine {
  bool allows(heed::Position) const { return true; }
};
heed::Tensor<float, 2> use(heed::Tensor<float, 2>& x) { return heed::attention(x, x, x, Mine{}); }

// What has a name may be looked at; what has none may be an argument.
heed::Tensor<float, 2> made();
heed::Tensor<float, 2> use(heed::Tensor<float, 2>& x, heed::Tensor<float, 1>& lse,
                           const heed::Tensor<float, 2>& bias) {
  heed::AttentionOptions<float> options{.log_sum_exp = lse, .alibi_slopes = {1.f}, .bias = bias};
  options.relative_bias = bias;
  options.sinks = heed::alibi_slopes<float>(1);
  options.score_function = [](float score, heed::Position) { return score; };
  heed::attention(x.view(), x, made(), Mine{}, x.view(), options);
  return heed::attention(made(), made(), made(), Mine{}, {.log_sum_exp = lse.view()});
}
