// SPDX-License-Identifier: MIT
// Attention alone takes the matrices of a program that includes Eigen, and no view of temporary
// ones.
#include <heed/attention.hpp>

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif

Eigen::MatrixXf use(const Eigen::MatrixXf& x, const Eigen::MatrixXf& memory) {
  return heed::attention(x, memory, memory, heed::masks::Causal{}) + heed::attention(x, x, 2 * x);
}

#ifdef VIEW_OF_A_MATRIX  // a view of temporary values dangles: give them a name first
auto view = heed::view_of(Eigen::MatrixXf(2, 3));
#endif
#ifdef BIAS_OF_A_MATRIX  // a view of temporary values dangles: give them a name first
void use(heed::AttentionOptions<float>& options) { options.bias = Eigen::MatrixXf(5, 5); }
#endif
#ifdef LOG_SUM_EXP_OF_A_VECTOR  // a view of temporary values dangles: give them a name first
void use(heed::AttentionOptions<float>& options) { options.log_sum_exp = Eigen::VectorXf(5); }
#endif
#ifdef MATRIX_OF_BOOL_FOR_A_MASK  // a tensor of bool is no mask by itself: wrap it
auto use(const Eigen::MatrixXf& x) { return heed::attention(x, x, x, x.array() > 0.f); }
#endif
#ifdef MASK_AND_A_MATRIX_OF_BOOL  // a tensor of bool is no mask by itself: wrap it
auto use(const Eigen::MatrixXf& x) { return heed::masks::Causal{} & (x.array() > 0.f); }
#endif
