// SPDX-License-Identifier: MIT
#include <sstream>
#include <string>
#include <vector>

#include <heed/tensor.hpp>

using namespace heed;

#ifdef NESTED_VECTORS  // a vector of vectors is no tensor: flatten it
void misuse(std::vector<std::vector<float>>& rows) { TensorView view(rows, {2, 3}); }
#endif
#ifdef NESTED_VECTORS_UNDER_EXTENTS  // a vector of vectors is no tensor: flatten it
void misuse(std::vector<std::vector<float>>& rows) { view_of(rows, {2, 3}); }
#endif

#ifdef ARRAY_OF_ARRAYS  // a view of an array of arrays begins at its first number
void misuse(float (&x)[6][4]) { TensorView view(x, {6, 4}); }
#endif

#ifdef PACKED_MATRIX_OF_ANOTHER_TYPE  // of its own scalar type, or of bfloat16 for float
void misuse(const Tensor<double, 2>& a) { const PackedMatrix<float> packed(a); }
#endif
#ifdef PACKED_MATRIX_OF_A_VECTOR  // PackedMatrix takes a matrix (rows, columns)
void misuse(const Tensor<float, 1>& a) { const PackedMatrix<float> packed(a); }
#endif

#ifdef ROWS_ASSIGNED  // assigning to a temporary view
void misuse(Tensor<float, 2>& a, const Tensor<float, 2>& b) { a[0] = b[0]; }
#endif
#ifdef PARTS_ASSIGNED  // copy(from, to) copies values
void misuse(Tensor<float, 2>& a) { a.view().slice(0, 0, 1) = 2; }
#endif

#ifdef VIEW_ASSIGNED_TO_A_TENSOR  // a view is no tensor: t = heed::Tensor(view) copies it
void misuse(Tensor<float, 2>& a) { a = a.transpose(); }
#endif

#ifdef TENSOR_OF_ANOTHER_TYPE_ASSIGNED  // copy(from, to) converts values
void misuse(Tensor<float, 2>& a, const Tensor<double, 2>& b) { a = b; }
#endif
#ifdef TENSOR_WITH_ITS_VALUES_FIRST  // a tensor has its extents first
Index misuse(const std::vector<float>& values) { return Tensor<float, 2>(values, {2, 2}).size(); }
#endif
#ifdef VECTOR_OF_ONE_VALUE  // a vector of one value says its extent
Index misuse() { return Tensor<float, 1>{2.5f}.size(); }
#endif

#ifdef RESHAPED_BUT_KEPT  // reshaped hands the memory on
Index misuse(Tensor<float, 2>& a) { return a.reshaped({6, 4}).size(); }
#endif
#ifdef RESHAPED_TO_EXTENTS_BUT_KEPT  // reshaped hands the memory on
Index misuse(const Tensor<float, 2>& a) { return a.reshaped(Extents<2>{6, 4}).size(); }
#endif

#ifdef EXTENTS_TOO_FEW  // the list is too short: it has one number for each axis
Index misuse() { return Tensor<float, 3>({2, 3}).size(); }
#endif
#ifdef EXTENTS_OF_A_VIEW_TOO_FEW  // the list is too short: it has one number for each axis
void misuse(float* values) { TensorView<float, 3> view(values, {2, 3}); }
#endif
#ifdef STRIDES_TOO_FEW  // the list is too short: it has one number for each axis
void misuse(float* values) { TensorView<float, 3> view(values, {2, 3, 4}, {12, 4}); }
#endif
#ifdef STRIDES_TOO_FEW_FOR_A_VECTOR  // the list is too short: it has one number for each axis
void misuse(std::vector<float>& values) { TensorView<float, 3> view(values, {2, 3, 4}, {12, 4}); }
#endif
#ifdef STRIDES_TOO_FEW_FOR_THE_EXTENTS  // the list is too short: it has one number for each axis
void misuse(float* values) { TensorView view(values, {2, 3, 4}, {12, 4}); }
#endif

#ifdef EXTENTS_TOO_MANY  // the list is too long: it has one number for each axis
Index misuse() { return Tensor<float, 2>({2, 3, 4}).size(); }
#endif
#ifdef EXTENTS_OF_A_VIEW_TOO_MANY  // the list is too long: it has one number for each axis
void misuse(float* values) { TensorView<float, 2> view(values, {2, 3, 4}); }
#endif
#ifdef STRIDES_TOO_MANY  // the list is too long: it has one number for each axis
void misuse(std::vector<float>& values) { TensorView view(values, {2, 3}, {12, 4, 1}); }
#endif

#ifdef EXTENTS_FOR_ANOTHER_RANK  // a tensor has as many extents as axes: Tensor<float, 3>(2, 3, 4)
auto misuse() { return Tensor<float, 2>(2, 3, 4); }
#endif

#ifdef TENSOR_OF_NESTED_VECTORS  // a vector of vectors is no tensor: flatten it
auto misuse(const std::vector<std::vector<float>>& rows) { return Tensor<float, 2>(rows); }
#endif
#ifdef MATRIX_OF_A_VECTOR  // pass those of a vector behind extents, as in ({2, 3}, values)
auto misuse(const std::vector<float>& values) { return Tensor<float, 2>(values); }
#endif
#ifdef EXTENTS_IN_A_VECTOR  // extents alone are heed::Extents<2>{2, 3}
auto misuse(const std::vector<Index>& extents) { return Tensor<float, 2>(extents); }
#endif
#ifdef TENSOR_OF_A_STRING  // a tensor copies views, vectors, arrays, spans and Eigen's matrices
auto misuse(const std::string& text) { return Tensor<float, 1>(text); }
#endif

#ifdef VIEW_OF_CONST_VALUES  // TensorView<const float, 2> of const floats
void misuse(const std::vector<float>& values) { TensorView<float, 2> view(values, {2, 3}); }
#endif
#ifdef VIEW_OF_DOUBLES  // a view has the type of its values
void misuse(std::vector<double>& values) { TensorView<float, 2> view(values, {2, 3}); }
#endif
#ifdef ELEMENT_BY_ONE_INDEX  // an element has one index for each axis
float misuse(const Tensor<float, 2>& x) {
  auto element = x(1);
  return element;
}
#endif
#ifdef ELEMENT_OF_A_VIEW_BY_THREE_INDICES  // an element has one index for each axis
auto misuse(const TensorView<float, 2>& x) { return x(1, 2, 3); }
#endif
#ifdef ROW_OF_A_CONST_TENSOR_FILLED  // this view only reads: it is one of const values
void misuse(const Tensor<float, 2>& x) { x[0].fill(1); }
#endif
// A deleted operator, whose name clang tells in the first note, see CMakeLists.txt.
#if defined(PRINTED_WITHOUT_ITS_HEADER)
void misuse(std::ostringstream& out, const Tensor<float, 2>& x) { out << x; }
#endif
#if defined(VIEW_PRINTED_WITHOUT_ITS_HEADER)
void misuse(std::ostream& out, const Tensor<float, 2>& x) { out << x[0] << 1; }
#endif
#ifdef VIEW_OF_A_TEMPORARY_TENSOR  // a view of a temporary tensor dangles: give the tensor a name
auto misuse() { return Tensor<float, 2>({2, 3}).view({3, 2}); }
#endif
#ifdef SLICE_WITHOUT_AN_END  // slice(axis, begin, end)
auto misuse(const Tensor<float, 2>& x) { return x.view().slice(0, 1); }
#endif
#ifdef SOFTMAX_OF_AN_AXIS  // row functions work along the last axis
auto misuse(const Tensor<float, 2>& x) { return softmax(x, 1); }
#endif
#ifdef LOG_SOFTMAX_OF_AN_AXIS  // row functions work along the last axis
auto misuse(const std::vector<float>& x) { return log_softmax(x, -1); }
#endif
#ifdef LOG_SUM_EXP_OF_AN_AXIS  // row functions work along the last axis
auto misuse(const Tensor<float, 2>& x) { return log_sum_exp(x, 0); }
#endif

#ifdef PRODUCT_BY_A_STAR  // matrix_product(a, b) multiplies matrices
auto misuse(const Tensor<float, 2>& a, const Tensor<float, 2>& b) { return a * b; }
#endif
#ifdef DIFFERENCE_OF_TENSORS  // heed::as_matrix(a) of <heed/tensor/eigen.hpp> has Eigen's
                              // arithmetic
auto misuse(const Tensor<float, 2>& a, const Tensor<float, 2>& b) { return a - b; }
#endif
#ifdef TENSOR_SCALED  // heed::as_matrix(a) of <heed/tensor/eigen.hpp> has Eigen's arithmetic
auto misuse(const Tensor<float, 2>& a) { return a / 2; }
#endif
#ifdef TENSOR_SCALED_FROM_THE_LEFT  // heed::as_matrix(a) of <heed/tensor/eigen.hpp> has Eigen's
                                    // arithmetic
auto misuse(const Tensor<float, 2>& a) { return 2 * a; }
#endif
#ifdef NUMBER_ADDED  // tensors have a + b and a += b alone
auto misuse(const Tensor<float, 2>& a) { return a + 1.f; }
#endif
#ifdef NUMBER_ADDED_FROM_THE_LEFT  // tensors have a + b and a += b alone
Tensor<float, 2> misuse(const Tensor<float, 2>& a) { return 1 + a; }
#endif
#ifdef NEGATIVE_TENSOR  // tensors have a + b and a += b alone
Tensor<float, 2> misuse(const Tensor<float, 2>& a) { return -a; }
#endif
#ifdef TENSOR_SCALED_IN_PLACE  // tensors have a + b and a += b alone
void misuse(Tensor<float, 2>& a) { a *= 2.f; }
#endif
#ifdef TENSOR_SUBTRACTED_IN_PLACE  // tensors have a + b and a += b alone
void misuse(Tensor<float, 2>& a, const Tensor<float, 2>& b) { a -= b; }
#endif
#ifdef ROW_SCALED_IN_PLACE  // tensors have a + b and a += b alone
void misuse(Tensor<float, 2>& a) { a[0] /= 2; }
#endif
#ifdef SUM_OF_ROWS  // views none (heed::Tensor(view) copies one)
auto misuse(const Tensor<float, 2>& a) { return a[0] + a[1]; }
#endif
#ifdef SUM_OF_A_TRANSPOSE  // views none (heed::Tensor(view) copies one)
auto misuse(const Tensor<float, 2>& a) { return a + a.transpose(); }
#endif
#ifdef SUM_OF_FLOAT_AND_DOUBLE  // both of float or both of double
auto misuse(const Tensor<float, 2>& a, const Tensor<double, 2>& b) { return a + b; }
#endif
#ifdef SUM_OF_INTEGERS  // both of float or both of double
auto misuse(const Tensor<int, 2>& a) { return a + a; }
#endif

#ifdef PRODUCT_OF_FLOAT_AND_BFLOAT16  // matrix_product(a, b): both factors must have one scalar
                                      // type
void misuse(const Tensor<float, 2>& a, const Tensor<bfloat16, 2>& b) { matrix_product(a, b); }
#endif
#ifdef PRODUCT_TO_DOUBLE  // matrix_product: a, b and out must have one scalar type
void misuse(const Tensor<float, 2>& a, Tensor<double, 2>& out) {
  matrix_product(a, a, out, ProductOptions<float>{});
}
#endif
#ifdef PRODUCT_TO_BFLOAT16  // matrix_product: a, b and out must have one scalar type
void misuse(const Tensor<float, 2>& a, Tensor<bfloat16, 2>& out) { matrix_product(a, a, out); }
#endif

#ifdef BIAS_OF_A_PRODUCT_AS_A_MATRIX  // the tensor has more axes than it may have here
auto misuse(const Tensor<float, 2>& a) { return matrix_product(a, a, {.bias = a}); }
#endif
#ifdef TEMPORARY_BIAS_OF_A_PRODUCT  // a view of temporary values dangles: give them a name first
auto misuse(const Tensor<float, 2>& a) {
  return matrix_product(a, a, {.bias = std::vector<float>(3)});
}
#endif

#ifdef PRODUCT_OF_BATCHES  // matrix_product multiplies matrices: view.select(0, i) is one of a
                           // batch
void misuse(const Tensor<float, 3>& a, const Tensor<float, 2>& b) { matrix_product(a, b); }
#endif

float correct(const std::vector<float>& values) { return TensorView(values, {2, 3})(1, 2); }

float correct(const Tensor<float, 2>& a) { return (Tensor(a[0]) + Tensor(a[1]))(0); }
