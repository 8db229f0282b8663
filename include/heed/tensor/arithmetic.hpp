// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/definitions/tensor.hpp>
#include <heed/kernels/row_kernels.hpp>
#include <heed/tensor/tensor.hpp>

namespace heed {

/// sum += term, element by element. Throws ShapeError if the extents differ.
template <Scalar T, std::size_t Rank>
Tensor<T, Rank>& operator+=(Tensor<T, Rank>& sum, const Tensor<T, Rank>& term) {
  if (sum.extents() != term.extents()) {
    throw_shape_error("sum of tensors: ", sum.extents(), " and ", term.extents(),
                      "; expected the same extents");
  }
  constexpr Index chunk = 1 << 15;
  const Index count = sum.size();
  const auto add = simd::row_kernels<T>().add;
  parallel_for(detail::parts_of(count, chunk), [&](Index i) {
    const Index first = i * chunk, left = count - first;
    add(term.data() + first, sum.data() + first, detail::smaller(left, chunk));
  });
  return sum;
}
/// The same as a new tensor.
template <Scalar T, std::size_t Rank>
Tensor<T, Rank> operator+(Tensor<T, Rank> a, const Tensor<T, Rank>& b) {
  a += b;
  return a;
}

// Other arithmetic is Eigen's: what is meant for it does not compile, with a sentence that says so.

namespace detail {

template <class X>
inline constexpr bool is_tensor = false;
template <class T, std::size_t Rank>
inline constexpr bool is_tensor<Tensor<T, Rank>> = true;
/// A tensor or a view.
template <class X>
concept AnyTensor = is_tensor<X> || requires(const X& x) {
  x.data_handle();
};
/// A stream, where its operator<< is missing: by a conversion, so that every other is preferred.
struct PrintingNeedsHeedOstreamHpp {
  template <class Stream>
  requires requires(Stream& stream) { stream.rdbuf(); }
  PrintingNeedsHeedOstreamHpp(Stream&) {}  // NOLINT(google-explicit-constructor)
};
/// A number, or a tensor where `tensors` are meant too: by a conversion, so that an operator of the
/// program's own is preferred.
template <bool tensors>
struct Term {
  template <class X>
  requires(std::is_arithmetic_v<X> || (tensors && AnyTensor<X>)) Term(const X&) {}  // NOLINT
};

template <class X>
X expect_eigen(const X& a) {
  static_assert(never<X>,
                "tensors have a + b and a += b alone, both of float or both of double, and views "
                "none (heed::Tensor(view) copies one): matrix_product(a, b) multiplies matrices, "
                "and heed::as_matrix(a) of <heed/tensor/eigen.hpp> has Eigen's arithmetic");
  return a;
}

}  // namespace detail

template <detail::AnyTensor X>
X operator-(const X& a) {
  return detail::expect_eigen(a);
}
// With a tensor on the left, and numbers on either side.
#define HEED_REFUSE(operation, left, right) \
  template <detail::AnyTensor X>            \
  X operator operation(left, right) {       \
    return detail::expect_eigen(a);         \
  }
#define HEED_REFUSE_BOTH(operation)                          \
  HEED_REFUSE(operation, const X& a, detail::Term<true>)     \
  HEED_REFUSE(operation## =, const X& a, detail::Term<true>) \
  HEED_REFUSE(operation, detail::Term<false>, const X& a)
HEED_REFUSE_BOTH(+)
HEED_REFUSE_BOTH(-)
HEED_REFUSE_BOTH(*)
HEED_REFUSE_BOTH(/)
#undef HEED_REFUSE_BOTH
#undef HEED_REFUSE

template <class T, std::size_t Rank>
void operator<<(detail::PrintingNeedsHeedOstreamHpp, const Tensor<T, Rank>&) = delete;
template <class T, std::size_t Rank>
void operator<<(detail::PrintingNeedsHeedOstreamHpp, const TensorView<T, Rank>&) = delete;

namespace detail {

template <class X>
inline constexpr bool is_tensor_or_view = is_tensor<X>;
template <class T, std::size_t Rank>
inline constexpr bool is_tensor_or_view<TensorView<T, Rank>> = true;

}  // namespace detail

/// Whether extents and all values are equal, as in `==` of vectors; NaN equals nothing. Of tensors
/// and views of one type and rank.
template <class A, class B>
requires(detail::is_tensor_or_view<A>&& detail::is_tensor_or_view<B>&& A::rank() == B::rank() &&
         std::same_as<typename A::value_type, typename B::value_type>)  //
    bool
    operator==(const A& a, const B& b) {
  return a.extents() == b.extents() && std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace heed
