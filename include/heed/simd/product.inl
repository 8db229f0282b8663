// SPDX-License-Identifier: MIT
// The matrix product of layers, on the tile product. Included by part.inl.

template <class T>
struct ProductTable {
  using S = Lanes<T>;
  static constexpr int panel = static_cast<int>(panel_columns);
  // One row alone keeps the multiplier busy with more columns.
  static constexpr int single_row_vectors = panel / S::width < 8 ? panel / S::width : 8;

  HEED_KERNEL static void pack(MatrixRef<T> b, Index depth, Index columns, T* packed) {
    Index column = 0;
    if (b.column_stride == 1 && columns == panel) {  // a row at a time: memory is read on and on
      for (Index k = 0; k < depth; ++k) {
        HEED_UNROLL for (int at = 0; at < panel; at += S::width) {
          S::store(packed + k * panel + at, S::load(b.data + k * b.row_stride + at));
        }
      }
      return;
    }
    if (b.column_stride == 1) {
      for (; column + S::width <= columns; column += S::width) {
        for (Index k = 0; k < depth; ++k) {
          S::store(packed + k * panel + column, S::load(b.data + k * b.row_stride + column));
        }
      }
    }
    for (; column < columns; column += S::width) {
      pack_lanes<S>(b.data + column * b.column_stride, b.column_stride, b.row_stride,
                    columns - column, depth, T{1}, packed + column, panel);
    }
    for (; columns > S::width && column < panel; column += S::width) {
      for (Index k = 0; k < depth; ++k) S::store(packed + k * panel + column, S::broadcast(0));
    }
  }

  template <int Rows, int Vectors>
  HEED_KERNEL static void part(const ProductTile<T>& tile, Index row, Index lane) {
    typename S::V sums[Rows][Vectors];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) sums[r][j] = S::broadcast(0);
    }
    const auto& a = tile.a;
    multiply<S, Rows, Vectors>(a.data + row * a.row_stride, a.row_stride, a.column_stride,
                               tile.b + lane, tile.b_stride, tile.depth, sums);
    finish<Rows, Vectors>(tile, row, lane, sums);
  }

  /// Adds the addend to sums and writes them out, as many columns as there are.
  template <int Rows, int Vectors>
  HEED_SIMD static void finish(const ProductTile<T>& tile, Index row, Index lane,
                               typename S::V (&sums)[Rows][Vectors]) {
    const auto& addend = tile.addend;
    const T* add = addend.data + row * addend.row_stride + lane * addend.column_stride;
    T* out = tile.out + row * tile.out_row + lane * tile.out_column;
    if (tile.columns - lane >= Vectors * S::width && tile.out_column == 1 &&
        (addend.data == nullptr || addend.column_stride == 1)) {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          if (addend.data != nullptr) {
            sums[r][j] = S::load(add + r * addend.row_stride + j * S::width) + sums[r][j];
          }
          S::store(out + r * tile.out_row + j * S::width, sums[r][j]);
        }
      }
      return;
    }
    T spill[Rows][Vectors * S::width];
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) S::store(spill[r] + j * S::width, sums[r][j]);
    }
    for (int r = 0; r < Rows; ++r) {
      for (Index c = 0; c < Vectors * S::width && c < tile.columns - lane; ++c) {
        const Index at = r * addend.row_stride + c * addend.column_stride;
        out[r * tile.out_row + c * tile.out_column] =
            addend.data == nullptr ? spill[r][c] : add[at] + spill[r][c];
      }
    }
  }

  template <int Rows, int Vectors>
  HEED_SIMD static void across(const ProductTile<T>& tile, Index row) {
    Index lane = 0;
    for (; lane + S::width < tile.columns; lane += Vectors * S::width) {
      part<Rows, Vectors>(tile, row, lane);
    }
    if (lane < tile.columns) part<Rows, 1>(tile, row, lane);
  }

  HEED_KERNEL static void tile(const ProductTile<T>& tile) {
    Index row = 0;
    for (; row + product_rows <= tile.rows; row += product_rows) {
      across<product_rows, HEED_SIMD_VECTORS>(tile, row);
    }
    for (; row + 2 <= tile.rows; row += 2) across<2, HEED_SIMD_VECTORS>(tile, row);
    if (row < tile.rows) across<1, single_row_vectors>(tile, row);
  }
};
