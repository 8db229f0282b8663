// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/index.hpp>
#include <heed/tensor/extents.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// The adapter for a foreign container: specialize it with `static view(container)`, which returns
/// a TensorView, and every function that takes a Viewable accepts that container. The order of
/// includes does not matter: a specialization is looked up when a call is compiled, not before.
/// <heed/tensor/eigen.hpp> adapts Eigen. If the adapter also has `static result(extents)`, which
/// returns zeros of the container's own kind, functions return that kind instead of a Tensor.
template <class Container>
struct ViewAdapter {};

namespace detail {

/// A std::vector, recognized by its members: <vector> is a sixth of the compile time of
/// <heed/attention.hpp>. Excludes std::string, and std::vector<bool>, which holds bits.
template <class X>
concept VectorLike = requires(std::remove_const_t<X>& x) {
  typename X::allocator_type;
  x.push_back(*x.data());
  x.capacity();
}
&&!requires(X & x) { x.c_str(); };

/// Whether X owns its values, as opposed to a view of them.
template <class X>
inline constexpr bool owns_values = VectorLike<X>;
template <class T, std::size_t Rank>
inline constexpr bool owns_values<Tensor<T, Rank>> = true;
template <class T, std::size_t Extent>
inline constexpr bool owns_values<std::array<T, Extent>> = true;
template <class X>
concept OwnsValues = owns_values<X>;
/// How many axes the view of what owns values has.
template <class X>
inline constexpr std::size_t owned_axes = 1;
template <class T, std::size_t Rank>
inline constexpr std::size_t owned_axes<Tensor<T, Rank>> = Rank;

/// What a ViewAdapter gives a view of, if it stays when the view is made.
template <class X>
concept Adapted = (std::is_lvalue_reference_v<X> ||
                   !OwnsValues<std::remove_cvref_t<X>>)&&requires(X& x) {
  ViewAdapter<std::remove_cvref_t<X>>::view(x);
};

}  // namespace detail

/// `view_of(x)`: the view of anything that holds values: a view itself, a Tensor, a span, an array,
/// a std::vector, or a type with a ViewAdapter (Eigen matrices if <heed/tensor/eigen.hpp> is
/// included). Nothing is copied; the values must outlive the view.
template <class T, std::size_t Rank>
TensorView<T, Rank> view_of(const TensorView<T, Rank>& view) {
  return view;
}
template <class T, std::size_t Rank>
TensorView<T, Rank> view_of(Tensor<T, Rank>& tensor) {
  return tensor.view();
}
template <class T, std::size_t Rank>
TensorView<const T, Rank> view_of(const Tensor<T, Rank>& tensor) {
  return tensor.view();
}
template <class T, std::size_t Extent>
TensorView<T, 1> view_of(std::span<T, Extent> values) {
  return TensorView<T, 1>(std::span<T>(values));
}
template <class T, std::size_t Extent>
TensorView<T, 1> view_of(std::array<T, Extent>& values) {
  return TensorView<T, 1>(std::span<T>(values));
}
template <class T, std::size_t Extent>
TensorView<const T, 1> view_of(const std::array<T, Extent>& values) {
  return TensorView<const T, 1>(std::span<const T>(values));
}
template <detail::VectorLike Vector>
auto view_of(Vector& values) {
  return TensorView<std::remove_reference_t<decltype(*values.data())>, 1>(std::span(values));
}
template <detail::Adapted X>
auto view_of(X&& x) {
  return ViewAdapter<std::remove_cvref_t<X>>::view(x);
}
template <detail::OwnsValues X>
TensorView<const typename X::value_type, detail::owned_axes<X>> view_of(const X&&) {
  static_assert(!detail::OwnsValues<X>,
                "a view of temporary values dangles: give them a name first");
  return {};
}

/// The values of a std::vector, std::array, std::span or Tensor under these extents, row-major:
/// `view_of(values, {2, 3})`. Throws ShapeError if the number of values differs.
template <detail::HoldsRun Values, std::size_t Rank>
TensorView<detail::RunElement<Values>, Rank> view_of(Values&& values,
                                                     const Extents<Rank>& extents) {
  return {std::forward<Values>(values), extents};
}
template <detail::HoldsRun Values, std::size_t Rank>
auto view_of(Values&& values, const detail::ListedExtent (&extents)[Rank]) {
  return view_of(std::forward<Values>(values), detail::listed<Rank>(extents));
}
template <detail::HoldsRun Values, detail::ExtentNumber Number, std::size_t Rank>
auto view_of(Values&& values, const std::array<Number, Rank>& extents) {
  return view_of(std::forward<Values>(values), Extents<Rank>(extents));
}

/// The argument type of public functions: everything `view_of` accepts.
template <class X>
concept Viewable = requires(X& x) {
  view_of(x).extents();
};

template <Viewable X>
using ViewOf = decltype(view_of(std::declval<X&>()));

/// The scalar type of a Viewable, without const.
template <Viewable X>
using ValueOf = typename ViewOf<X>::value_type;

namespace detail {

/// A type without values in memory, such as Eigen's sum of two matrices: its ViewAdapter has
/// `static evaluated(x)` and no view.
template <class X>
concept Expression = requires(const X& x) {
  ViewAdapter<X>::evaluated(x);
};
/// Refuses expressions where values are read in memory.
template <class... X>
constexpr bool expect_evaluated() {
  constexpr bool evaluated = !(Expression<X> || ...);
  static_assert(evaluated,
                "an expression of Eigen's, as 2 * m, has no values in memory: pass (2 * m).eval(), "
                "and give that a name where a view of it stays, as in options");
  return evaluated;
}
/// x itself, or the result of evaluating it.
template <class X>
decltype(auto) evaluated(const X& x) {
  if constexpr (Expression<X>) {
    return ViewAdapter<X>::evaluated(x);
  } else {
    return (x);
  }
}
template <class X>
using Evaluated = std::remove_reference_t<decltype(evaluated(std::declval<const X&>()))>;

/// Zeros for the result of a function of X: of X's own kind if its adapter makes results, otherwise
/// a Tensor.
template <class X, std::size_t Rank>
auto new_result(const Extents<Rank>& extents) {
  if constexpr (requires { ViewAdapter<std::remove_cvref_t<X>>::result(extents); }) {
    return ViewAdapter<std::remove_cvref_t<X>>::result(extents);
  } else {
    return Tensor<ValueOf<X>, Rank>(extents);
  }
}

/// A view with axes of extent 1 in front, up to `Rank` of them.
template <std::size_t Rank, class T, std::size_t Given>
TensorView<T, Rank> with_leading_axes(const TensorView<T, Given>& view) {
  static_assert(Given <= Rank, "the tensor has more axes than it may have here");
  if constexpr (Given < Rank) {
    return with_leading_axes<Rank>(view.with_leading_axis());
  } else if constexpr (Given == Rank) {
    return view;
  } else {
    return {};
  }
}

/// A column vector of Eigen's, by its type: VectorXf, or a column of a matrix.
template <class X>
concept EigenColumn = int{std::remove_cvref_t<X>::ColsAtCompileTime} == 1;
/// A vector of Eigen's that lies in either direction.
template <class X>
concept EigenVector = EigenColumn<X> || int{std::remove_cvref_t<X>::RowsAtCompileTime} == 1;

/// What a view of T can be made of, const or not.
template <class X, class T>
concept ViewedAs = Viewable<X> && std::is_convertible_v<typename ViewOf<X>::element_type*, T*>;

}  // namespace detail

template <class T, std::size_t Rank>
template <class Values>
requires(!std::convertible_to<const Values&, TensorView<const T, Rank>>)
    Tensor<T, Rank> Tensor<T, Rank>::copy_of(const Values& values) {
  using V = detail::Evaluated<Values>;
  static_assert(Viewable<V>, "a tensor copies views, vectors, arrays, spans and Eigen's matrices");
  if constexpr (Viewable<V>) {
    constexpr bool nested = detail::KeepsValuesElsewhere<ValueOf<V>>;
    static_assert(!nested,
                  "a vector of vectors is no tensor: flatten it, row behind row in one "
                  "std::vector<float>, and pass it behind the extents, ({rows, columns}, flat)");
    constexpr bool fits = ViewOf<V>::rank() == Rank;
    static_assert(
        nested || fits,
        "the values have another number of axes than the tensor: pass those of a vector "
        "behind extents, as in ({2, 3}, values); extents alone are heed::Extents<2>{2, 3}");
    if constexpr (fits && !nested) {
      decltype(auto) evaluated = detail::evaluated(values);
      return converted(view_of(evaluated));
    }
  }
  return {};
}

/// An optional view of rank `Rank`. Converts from anything `view_of` accepts that holds T, of that
/// rank or less: missing leading axes have extent 1. With `const T` it only reads.
template <class T, std::size_t Rank>
class OptionalView {
 public:
  OptionalView() = default;
  template <Viewable X>
  OptionalView(X&& tensor)  // NOLINT: a tensor converts; an OptionalView is not Viewable
      : given_(true) {
    static_assert(std::is_lvalue_reference_v<X> || !detail::OwnsValues<std::remove_cvref_t<X>>,
                  "a view of temporary values dangles: give them a name first");
    constexpr bool reads_alone = !std::is_const_v<T> && detail::ViewedAs<X, const T>;
    constexpr bool viewed = detail::ViewedAs<X, T>, fits = ViewOf<X>::rank() <= Rank;
    static_assert(viewed || !reads_alone,
                  "this option, as log_sum_exp, is written, and one that is written is not const");
    static_assert(viewed || reads_alone,
                  "an option's tensor holds numbers of the type that the call computes in: "
                  "heed::Tensor<float, 2>(bias) converts to float");
    static_assert(!viewed || fits,
                  "the tensor has more axes than it may have here: log_sum_exp is (batch, heads, "
                  "queries), a bias of attention (batch, heads, queries, keys), of a product "
                  "(columns)");
    if constexpr (viewed && fits) {
      view_ = detail::with_leading_axes<Rank>(view_of(tensor));
      column_ = detail::EigenColumn<X>;
    }
  }

  template <detail::Expression X>
  OptionalView(const X&) {  // NOLINT(google-explicit-constructor)
    detail::expect_evaluated<X>();
  }

  bool given() const { return given_; }
  const TensorView<T, Rank>& view() const { return view_; }
  /// The same for a call that wants these extents: a column vector of Eigen's may stand for a row.
  OptionalView fitted(const Extents<Rank>& wanted) const {
    OptionalView result = *this;
    if (column_ && view_.extents() != wanted) result.view_ = view_.transpose();
    return result;
  }

 private:
  TensorView<T, Rank> view_;
  bool given_ = false;
  bool column_ = false;
};

}  // namespace heed
