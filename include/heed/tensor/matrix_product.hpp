// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include <heed/core/bfloat16.hpp>
#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/detail/product_args.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Options of a matrix product.
template <class T>
struct ProductOptions {
  /// out += a · b instead of out = a · b.
  bool accumulate = false;
  /// One number per column of out, added to every row; empty: none. Not with `accumulate`.
  OptionalView<const T, 1> bias = {};
  /// Products::bfloat16 rounds both factors to bfloat16, to nearest, and adds in T: float only. A
  /// packed b has its own, and so have two factors in bfloat16.
  Products products = Products::exact;
};

namespace detail {

template <class T>
simd::MatrixRef<T> strided(const TensorView<const T, 2>& view) {
  return {view.data_handle(), view.stride(0), view.stride(1)};
}

/// Whether a factor may hold `Number` in a product that is written in T.
template <class Number, class T>
inline constexpr bool factor_of = std::is_same_v<Number, T> ||
                                  (std::is_same_v<Number, bfloat16> && std::is_same_v<T, float>);
/// The type in which a product with such a factor is computed.
template <class Number>
using ProductScalar = std::conditional_t<std::is_same_v<Number, bfloat16>, float, Number>;

/// Sets a factor of a product, which is one of both.
template <class T, class Number>
void set_factor(const TensorView<const Number, 2>& view, simd::MatrixRef<T>& wide,
                simd::MatrixRef<std::uint16_t>& narrow) {
  if constexpr (std::is_same_v<Number, T>) {
    wide = strided(view);
  } else {
    wide = {nullptr, view.stride(0), view.stride(1)};
    narrow = {view.size() == 0 ? nullptr : &view.data_handle()->bits, view.stride(0),
              view.stride(1)};
  }
}

/// Checks everything but b, whose extents are (depth, columns).
template <class T, class A>
ProductArgs<T> checked_product(const TensorView<const A, 2>& a, Index depth, Index columns,
                               const TensorView<T, 2>& out, const ProductOptions<T>& options) {
  if (a.extent(1) != depth) {
    throw_shape_error("matrix_product: a is ", a.extents(), ", b ", Extents<2>{depth, columns});
  }
  const Extents<2> expected{a.extent(0), columns};
  if (out.extents() != expected) {
    throw_shape_error("matrix_product: out is ", out.extents(), ", expected ", expected);
  }
  if (has_internal_overlap(out)) {
    throw_shape_error("matrix_product: elements of out share memory");
  }
  if (overlaps(a, out)) throw_shape_error("matrix_product: out overlaps a");
  ProductArgs<T> args{
      {},          {},      nullptr, {}, out.data_handle(), out.stride(0), out.stride(1),
      a.extent(0), columns, depth};
  set_factor(a, args.a, args.narrow_a);
  const auto& bias = options.bias.view();
  if (bias.data_handle() != nullptr) {
    if (options.accumulate)
      throw_shape_error("matrix_product: bias and accumulate exclude each other");
    if (bias.extent(0) != columns) {
      throw_shape_error("matrix_product: bias of ", bias.extent(0), " for ", columns, " columns");
    }
    if (overlaps(bias, out)) throw_shape_error("matrix_product: out overlaps the bias");
    args.addend = {bias.data_handle(), 0, bias.stride(0)};
  }
  if (options.accumulate) args.addend = {args.out, args.out_row, args.out_column};
  return args;
}

/// How views are multiplied.
template <class A, class B>
Products products_of(Products wanted) {
  constexpr bool narrow_a = std::is_same_v<A, bfloat16>, narrow_b = std::is_same_v<B, bfloat16>;
  if (narrow_a && narrow_b && wanted == Products::exact) return Products::bfloat16;
  if (narrow_a != narrow_b && wanted != Products::bfloat16) {
    throw_invalid_argument("matrix_product: one factor is in bfloat16; ask for .products = ",
                           "Products::bfloat16, which rounds the other one too");
  }
  return wanted;
}

/// The checked product with b, a view or packed.
template <class T, class A, class B>
ProductArgs<T> args_of(const TensorView<const A, 2>& a, const TensorView<const B, 2>& b,
                       const TensorView<T, 2>& out, const ProductOptions<T>& options) {
  auto args = checked_product<T>(a, b.extent(0), b.extent(1), out, options);
  if (overlaps(b, out)) throw_shape_error("matrix_product: out overlaps b");
  args.quantized.products = products_of<A, B>(options.products);
  check_products<T>(args.quantized.products);
  set_factor(b, args.b, args.narrow_b);
  return args;
}
template <class T, class A>
ProductArgs<T> args_of(const TensorView<const A, 2>& a, const PackedMatrix<T>& b,
                       const TensorView<T, 2>& out, const ProductOptions<T>& options) {
  auto args = checked_product<T>(a, b.rows(), b.columns(), out, options);
  args.packed = b.data();
  args.quantized = b.blocks();
  if (std::is_same_v<A, bfloat16> && args.quantized.products != Products::bfloat16) {
    throw_invalid_argument("matrix_product: a is in bfloat16, b was packed for other products");
  }
  return args;
}

}  // namespace detail

/// out = a · b (+ bias), or out += a · b: a (rows, depth), b (depth, columns), out (rows, columns),
/// float or double, any strides: a view's `.transpose()` is a factor too. Where out is float, a and
/// b may be in bfloat16: their products have the bits of floats with the same values and
/// Products::bfloat16, and half of the memory is read. The sum over depth runs in order with fused
/// multiply-adds, in partial sums of 512 terms that are added in order. An output row has the same
/// bits for any number of rows, threads and chunks, with b packed or not, and computed as
/// out = a · b or as outᵀ = bᵀ · aᵀ. Throws ShapeError, before the first write, for shapes that do
/// not fit, for a bias with `accumulate`, and for an out that overlaps an input, and
/// InvalidArgument for `products` that T does not have, or for one factor in bfloat16 with others
/// than Products::bfloat16.
template <Viewable A, Viewable B, Viewable Out>
void matrix_product(const A& a, const B& b, Out&& out,
                    const ProductOptions<detail::ProductScalar<ValueOf<const A>>>& options = {}) {
  using T = ValueOf<Out>;
  constexpr bool matrices =
      ViewOf<const A>::rank() == 2 && ViewOf<const B>::rank() == 2 && ViewOf<Out>::rank() == 2;
  static_assert(matrices,
                "matrix_product multiplies matrices: view.select(0, i) is one of a batch, and "
                "merge_axes(view, 0) makes one of all rows");
  constexpr bool factors =
      detail::factor_of<ValueOf<const A>, T> && detail::factor_of<ValueOf<const B>, T>;
  static_assert(factors,
                "matrix_product: a, b and out must have one scalar type; where out is float, a and "
                "b may be bfloat16");
  static_assert(!factors || Scalar<T>, "matrix_product computes in float or double");
  if constexpr (matrices && factors) {
    const auto args = detail::args_of<T>(TensorView<const ValueOf<const A>, 2>(view_of(a)),
                                         TensorView<const ValueOf<const B>, 2>(view_of(b)),
                                         view_of(out), options);
    detail::run_products(&args, 1);
  }
}

/// The same with a packed matrix. Its own `products` count, not those of the options. The bits
/// are those of the matrix it was packed from with the same `products`; int16 products, which
/// only packed blocks have, differ as described at PackedMatrix::transposed_blocks.
template <Viewable A, Scalar T, Viewable Out>
void matrix_product(const A& a, const PackedMatrix<T>& b, Out&& out,
                    const std::type_identity_t<ProductOptions<T>>& options = {}) {
  static_assert(detail::factor_of<ValueOf<const A>, T> && std::is_same_v<T, ValueOf<Out>>,
                "matrix_product: a, b and out must have one scalar type; where out is float, a may "
                "be bfloat16");
  const auto args = detail::args_of<T>(TensorView<const ValueOf<const A>, 2>(view_of(a)), b,
                                       view_of(out), options);
  detail::run_products(&args, 1);
}

/// The product as a new tensor, of float where a is in bfloat16.
template <Viewable A, class B>
auto matrix_product(const A& a, const B& b,
                    const ProductOptions<detail::ProductScalar<ValueOf<const A>>>& options = {}) {
  Index columns = 0;
  if constexpr (Viewable<const B>) {
    constexpr bool narrow = std::is_same_v<ValueOf<const A>, bfloat16>;
    static_assert(narrow == std::is_same_v<ValueOf<const B>, bfloat16>,
                  "matrix_product(a, b): both factors must have one scalar type; with an out and "
                  "{.products = Products::bfloat16}, one may be float and one bfloat16");
    columns = view_of(b).extent(1);
  } else {
    columns = b.columns();
  }
  Tensor<detail::ProductScalar<ValueOf<const A>>, 2> out({view_of(a).extent(0), columns});
  matrix_product(a, b, out, options);
  return out;
}

/// Products of one left side a (rows, depth) with several right sides, each with its own out,
/// computed together: `add` them, then `run`. The same bits as one by one; threads are woken once,
/// and work on a that the products share is done once. Refers to a and to every b, out and bias,
/// which must outlive the last `run`.
template <ModelScalar T>
class ProductGroup {
 public:
  static constexpr Index most = detail::most_products;

  explicit ProductGroup(TensorView<const T, 2> a) : a_(a) {}

  /// See matrix_product; nothing is written yet. Throws ShapeError like matrix_product, and for an
  /// out that another product of the group reads or writes, and for more than `most` products;
  /// InvalidArgument for `products` that T does not have.
  void add(TensorView<const T, 2> b, TensorView<T, 2> out, const ProductOptions<T>& options = {}) {
    add(detail::args_of<T>(a_, b, out, options), out, detail::byte_range(b), options);
  }
  void add(const PackedMatrix<T>& b, TensorView<T, 2> out, const ProductOptions<T>& options = {}) {
    add(detail::args_of<T>(a_, b, out, options), out, {}, options);
  }

  /// Computes the added products. They stay in the group: a second call computes them again.
  void run() const { detail::run_products(problems_, count_); }

 private:
  struct Memory {
    detail::ByteRange out, b, bias;
  };

  void add(const detail::ProductArgs<T>& args, const TensorView<T, 2>& out,
           const detail::ByteRange& b, const ProductOptions<T>& options) {
    if (count_ == most) throw_shape_error("ProductGroup: more than ", most, " products");
    const Memory mine{detail::byte_range(out), b, detail::byte_range(options.bias.view())};
    const auto spoils = [](const Memory& writer, const Memory& other) {
      return detail::meet(writer.out, other.out) || detail::meet(writer.out, other.b) ||
             detail::meet(writer.out, other.bias);
    };
    for (Index i = 0; i < count_; ++i) {
      if (spoils(mine, memory_[i]) || spoils(memory_[i], mine)) {
        throw_shape_error("ProductGroup: products ", i, " and ", count_,
                          " share memory with an out");
      }
    }
    memory_[count_] = mine;
    problems_[count_++] = args;
  }

  TensorView<const T, 2> a_;
  Memory memory_[most];
  detail::ProductArgs<T> problems_[most];
  Index count_ = 0;
};

}  // namespace heed

#include <heed/definitions/tensor.hpp>
