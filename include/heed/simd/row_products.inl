// SPDX-License-Identifier: MIT
// Products whose right side is rows of a tensor as they lie: lanes are its columns. Included by
// part.inl.

/// out(row, column) = factor(row) · Σ_k a(row, k) · b(k, column) + 0.
template <class T>
struct RowProduct {
  const T* a;
  Index a_row;
  Index a_step;
  const T* b;  // columns side by side
  Index b_row;
  const T* tail;  // [k][a vector]: the columns that do not fill one, see fill_tail
  Index depth;
  Index columns;
  T* out;  // columns side by side
  Index out_row;
  const T* factors;
  Index factor_step;  // 0: one for all rows

  /// The same for the k from `first` to `end` alone.
  HEED_SIMD RowProduct between(Index first, Index end) const {
    RowProduct part = *this;
    part.a += first * a_step;
    part.b += first * b_row;
    part.tail += first * a_vector;
    part.depth = end - first;
    return part;
  }
  /// The same from row `row` on.
  HEED_SIMD RowProduct from(Index row) const {
    RowProduct part = *this;
    part.a += row * a_row;
    part.out += row * out_row;
    part.factors += row * factor_step;
    return part;
  }

 private:
  static constexpr Index a_vector = Lanes<T>::width;
};

/// tail[row] = the columns of a row that are left over from whole vectors, and zeros.
template <class S>
HEED_KERNEL void fill_tail(const MatrixRef<typename S::Scalar>& rows, Index count, Index columns,
                           typename S::Scalar* tail) {
  const Index left = columns % S::width;
  if (left == 0) return;
  for (Index row = 0; row < count; ++row) {
    S::store(tail + row * S::width,
             load_first<S>(rows.data + row * rows.row_stride + columns - left, left));
  }
}

template <class S, int Rows, int Vectors>
HEED_SIMD void put_sums(const RowProduct<typename S::Scalar>& task, Index column, Index left,
                        typename S::V (&sums)[Rows][Vectors]) {
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    auto* to = task.out + r * task.out_row + column;
    const auto factor = S::broadcast(task.factors[r * task.factor_step]);
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      const auto x = sums[r][j] * factor + S::broadcast(0);
      if (left >= S::width) {
        S::store(to + j * S::width, x);
      } else {
        store_first<S>(to, x, left);
      }
    }
  }
}

/// `Rows` rows of the product and `Vectors` vectors of columns, or what is left past those.
template <class S, int Rows, int Vectors>
HEED_KERNEL void put_product(const RowProduct<typename S::Scalar>& task, Index column) {
  typename S::V sums[Rows][Vectors];
  HEED_UNROLL for (int r = 0; r < Rows; ++r) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::broadcast(0);
  }
  const Index left = task.columns - column;
  const bool whole = left >= S::width;
  multiply<S, Rows, Vectors>(task.a, task.a_row, task.a_step, whole ? task.b + column : task.tail,
                             whole ? task.b_row : S::width, task.depth, sums);
  put_sums<S>(task, column, left, sums);
}

template <class S, int Rows>
HEED_SIMD void put_product_rows(const RowProduct<typename S::Scalar>& task) {
  constexpr int wide = HEED_SIMD_VECTORS;
  Index column = 0;
  for (; column + wide * S::width <= task.columns; column += wide * S::width) {
    put_product<S, Rows, wide>(task, column);
  }
  for (; wide > 2 && column + 2 * S::width <= task.columns; column += 2 * S::width) {
    put_product<S, Rows, 2>(task, column);
  }
  for (; column < task.columns; column += S::width) put_product<S, Rows, 1>(task, column);
}
