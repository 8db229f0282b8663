// SPDX-License-Identifier: MIT
// Attention alone takes the matrices of a program that includes Eigen.
#include <heed/attention.hpp>

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif

Eigen::MatrixXf use(const Eigen::MatrixXf& x, const Eigen::MatrixXf& memory) {
  return heed::attention(x, memory, memory, heed::masks::Causal{}) + heed::attention(x, x, 2 * x);
}
