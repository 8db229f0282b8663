// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/error.hpp>
#include <heed/tensor/matrix_product.hpp>
#include <heed/tensor/overlap.hpp>
#include <heed/tensor/packed_matrix.hpp>
#include <heed/tensor/view.hpp>

namespace heed {

/// Products of one left side a (rows, depth) with several right sides, each with an out of its own,
/// in one go: `add` them, then `run`. The same bits as one by one; threads are woken once, and what
/// the products share of a is done once.
template <Scalar T>
class ProductGroup {
 public:
  static constexpr Index most = detail::most_products;

  explicit ProductGroup(TensorView<const T, 2> a) : a_(a) {}

  /// See matrix_product; nothing is written yet. Throws ShapeError as it does, and for an out that
  /// another product of the group reads or writes, and for more than `most` products.
  void add(TensorView<const T, 2> b, TensorView<T, 2> out, const ProductOptions<T>& options = {}) {
    add(detail::problem_of<T>(a_, b, out, options), out, detail::byte_range(b), options);
  }
  void add(const PackedMatrix<T>& b, TensorView<T, 2> out, const ProductOptions<T>& options = {}) {
    add(detail::problem_of<T>(a_, b, out, options), out, {}, options);
  }

  /// Computes what was added.
  void run() const { detail::run_products(problems_, count_); }

 private:
  struct Memory {
    detail::ByteRange out, b, bias;
  };

  void add(const detail::ProductProblem<T>& problem, const TensorView<T, 2>& out,
           const detail::ByteRange& b, const ProductOptions<T>& options) {
    if (count_ == most) throw_shape_error("ProductGroup: more than ", most, " products");
    const Memory mine{detail::byte_range(out), b, detail::byte_range(options.bias)};
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
    problems_[count_++] = problem;
  }

  TensorView<const T, 2> a_;
  Memory memory_[most];
  detail::ProductProblem<T> problems_[most];
  Index count_ = 0;
};

}  // namespace heed
