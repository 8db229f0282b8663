// SPDX-License-Identifier: MIT
#include <heed/heed.hpp>
#include <heed/tensor/eigen.hpp>

int main() {
  const Eigen::MatrixXf tokens = Eigen::MatrixXf::Identity(4, 4);
  const auto out = heed::attention(tokens, tokens, tokens, heed::masks::Causal{});
  return out(0, 0) == 1.f && heed::to_terminal(heed::heatmap_of(out)).size() > 0 ? 0 : 1;
}
