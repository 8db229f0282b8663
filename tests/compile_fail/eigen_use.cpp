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
#ifdef VIEW_OF_AN_EXPRESSION  // an expression of Eigen's, as 2 * m, has no values in memory
void use(const Eigen::MatrixXf& x) { auto view = heed::view_of(2 * x); }
#endif
#ifdef BIAS_OF_AN_EXPRESSION  // give that a name where a view of it stays, as in options
auto use(const Eigen::MatrixXf& x) { return heed::attention(x, x, x, {.bias = 2 * x}); }
#endif
#ifdef BACKWARD_OF_AN_EXPRESSION  // pass (2 * m).eval()
auto use(const Eigen::MatrixXf& x, const Eigen::VectorXf& lse) {
  return heed::attention_backward(x, x, x, heed::masks::Causal{}, x, lse, 2 * x);
}
#endif
#ifdef BACKWARD_OF_AN_EXPRESSION_TO_MATRICES  // pass (2 * m).eval()
void use(Eigen::MatrixXf& x, const Eigen::VectorXf& lse) {
  heed::attention_backward(x, x, x, heed::masks::Causal{}, x, lse, 2 * x, x, x, x);
}
#endif
#ifdef LAYER_OF_AN_EXPRESSION  // pass (2 * m).eval()
#include <heed/layers/linear.hpp>
auto use(const heed::Linear<float>& layer, const Eigen::MatrixXf& x) {
  return layer.forward(2 * x);
}
#endif
#ifdef NPY_OF_AN_EXPRESSION  // pass (2 * m).eval()
#include <heed/io/npy.hpp>
void use(const Eigen::MatrixXf& x) { heed::write_npy("x.npy", 2 * x); }
#endif
#ifdef EXPRESSION_FOR_A_MASK  // numbers that are added to scores are AttentionOptions::bias
auto use(const Eigen::MatrixXf& x) { return heed::attention(x, x, x, 2 * x); }
#endif
#ifdef MATRIX_OF_A_BATCH  // as_vector(x) of a vector, and of several matrices
auto use(const heed::Tensor<float, 3>& x) { return heed::as_matrix(x); }
#endif
#ifdef MATRIX_OF_A_ROW  // as_matrix takes (rows, columns): as_vector(x) of a vector
Eigen::MatrixXf use(heed::Tensor<float, 2>& x) { return heed::as_matrix(x[0]); }
#endif
#ifdef MATRIX_OF_BOOL_FOR_A_MASK  // a tensor is no mask by itself: heed::masks::Dense(tensor)
auto use(const Eigen::MatrixXf& x) { return heed::attention(x, x, x, x.array() > 0.f); }
#endif
#ifdef MASK_AND_A_MATRIX_OF_BOOL  // a tensor of bool is no mask by itself: wrap it
auto use(const Eigen::MatrixXf& x) { return heed::masks::Causal{} & (x.array() > 0.f); }
#endif
