// SPDX-License-Identifier: MIT
#include <vector>

#include <heed/attention.hpp>
#include <heed/generation.hpp>
#include <heed/tensor.hpp>

using namespace heed;
using Options = AttentionOptions<float>;
using Gradients = GradientOptions<float>;

#ifdef VIEW  // a view of a temporary tensor dangles: give the tensor a name first
TensorView<const float, 2> misuse() { return Tensor<float, 2>({2, 3}).view(); }
#endif
#ifdef ROW  // a view of a temporary tensor dangles: give the tensor a name first
TensorView<const float, 1> misuse() { return Tensor<float, 2>(2, 3)[0]; }
#endif
#ifdef SLICE  // a view of a temporary tensor dangles: give the tensor a name first
auto misuse() { return Tensor<float, 2>(2, 3).slice(0, 0, 1); }
#endif
#ifdef TRANSPOSE  // a view of a temporary tensor dangles: give the tensor a name first
auto misuse() { return matrix_product(Tensor<float, 2>(2, 3), Tensor<float, 2>(3, 2)).transpose(); }
#endif
#ifdef VIEW_OF_VALUES  // a view of temporary values dangles: give them a name first
void misuse() { TensorView<const float, 2>(std::vector<float>(6), {2, 3}); }
#endif
#ifdef VALUES_UNDER_EXTENTS  // a view of temporary values dangles: give them a name first
auto misuse() { return view_of(std::vector<float>(6), {2, 3}); }
#endif
#ifdef BIAS  // a view of temporary values dangles: give them a name first
void misuse(Options& options) { options.bias = Tensor<float, 2>({2, 3}); }
#endif
#ifdef RELATIVE  // a view of a temporary tensor dangles: give the tensor a name first
void misuse(Options& options, const Tensor<float, 2>& table) {
  options.relative_bias = relative_bias(table);
}
#endif
#ifdef LOG_SUM_EXP  // a view of temporary values dangles: give them a name first
void misuse(Options& options) { options.log_sum_exp = Tensor<float, 2>({2, 3}); }
#endif
#ifdef MASK  // a mask of temporary values dangles: give them a name first
RowMask<2> misuse() { return Tensor<bool, 1>({3}); }
#endif
#ifdef GRADIENT  // a view of temporary values dangles: give them a name first
void misuse(Gradients& options) { options.grad_log_sum_exp = std::vector<float>(3); }
#endif
#ifdef SESSION  // a session refers to its model: give the model a name first
Session<float> misuse(LanguageModel<float> model()) { return Session<float>(model()); }
#endif
#ifdef TRANSLATION_SESSION  // a session refers to its model: give the model a name first
void misuse(EncoderDecoder<float> model(), const Tokens& x) {
  TranslationSession<float>(model(), x);
}
#endif
