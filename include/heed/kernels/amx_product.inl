// SPDX-License-Identifier: MIT
// Matrix products of factors rounded to bfloat16, on tiles. Included by part.inl, after
// gemm_bfloat16.inl.

/// The entries of Bfloat16ProductKernels. Rows and panels have the first term of a pair in the
/// upper half of a word, where tiles have the second: no bit depends on it, since both halves are
/// chains by themselves (TileChains), and a + b is b + a.
template <class Tiles>
struct TileBfloat16Product {
  using S = Lanes<float>;
  using Rounded = Bfloat16Product<true>;             // whose rows are pairs
  static constexpr Index most_rows = 2 * tile_side;  // of a ProductTile

  /// Pairs in `depth` terms, and in whole blocks of them.
  HEED_SIMD static Index pairs_of(Index depth) { return (depth + 1) / 2; }
  HEED_SIMD static Index whole_pairs_of(Index depth) { return whole_terms(depth) / 2; }

  HEED_KERNEL static void round_rows(MatrixRef<float> a, Index rows, Index depth, float* pairs,
                                     Index stride) {
    Rounded::round_rows(a, rows, depth, pairs, stride);
    for (Index row = 0; row < rows; ++row) {
      for (Index i = pairs_of(depth); i < whole_pairs_of(depth); ++i) pairs[row * stride + i] = 0;
    }
  }
  HEED_KERNEL static void pack(MatrixRef<float> b, Index depth, Index columns,
                               std::uint8_t* blocks) {
    constexpr Index bytes = 4 * panel_columns;  // of a pair per column
    Rounded::pack(b, depth, columns, blocks);
    for (Index i = bytes * pairs_of(depth); i < bytes * whole_pairs_of(depth); ++i) blocks[i] = 0;
  }

  /// Rows × Vectors tiles of sums, from the column `lane` on.
  template <int Rows, int Vectors>
  HEED_KERNEL static void part(Tiles& tiles, const ProductTile<float>& tile,
                               TileRows<const std::uint16_t> a, TileRows<const std::uint16_t> b,
                               Index lane) {
    alignas(64) float sums[Rows * tile_side][Vectors * tile_side];
    multiply_tiles<Vectors>(std::make_integer_sequence<int, Rows * Vectors>(), tiles, a,
                            {b.data + 2 * lane, b.stride}, whole_terms(tile.depth),
                            TileRows<float>{sums[0], Vectors * tile_side}, false);
    for (Index row = 0; row < tile.rows; ++row) {
      typename S::V line[1][Vectors];
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        line[0][j] = S::load(sums[row] + j * tile_side);
      }
      ProductTable<float>::finish<1, Vectors>(tile, row, lane, line);
    }
  }

  /// Few rows take a whole panel at once, so that its weights are read as they lie.
  HEED_KERNEL static void tile(const ProductTile<float>& tile, const float* a, Index a_stride,
                               const std::uint8_t* blocks) {
    Tiles tiles;
    const TileRows<const std::uint16_t> left{reinterpret_cast<const std::uint16_t*>(a),
                                             2 * a_stride};
    const TileRows<const std::uint16_t> right{reinterpret_cast<const std::uint16_t*>(blocks),
                                              2 * panel_columns};
    if (tile.rows <= tile_side) return part<1, 4>(tiles, tile, left, right, 0);
    for (Index lane = 0; lane < tile.columns; lane += 2 * tile_side) {
      part<2, 2>(tiles, tile, left, right, lane);
    }
  }
};

/// Bfloat16ProductKernels of the sets with tiles.
template <class Tiles, class T>
const Bfloat16ProductKernels<T>& tile_product_table() {
  using K = TileBfloat16Product<Tiles>;
  static constexpr Bfloat16ProductKernels<T> entries{K::most_rows, 2, K::round_rows, K::pack,
                                                     K::tile};
  return entries;
}
