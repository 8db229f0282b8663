// SPDX-License-Identifier: MIT
// Matrix products on tiles: of factors rounded to bfloat16, and of int16 rows with quantized
// weights. Included by part.inl, after gemm_bfloat16.inl and gemm_int16.inl.

/// The entries of Bfloat16ProductKernels. Rows and panels have the first term of a pair in the
/// upper half of a word, where tiles have the second: no bit depends on it, since both halves are
/// chains by themselves (TileChains), and a + b is b + a.
template <class Tiles>
struct TileBfloat16Product {
  using S = Lanes<float>;
  // Rows are pairs, in whole blocks of terms.
  using Rounded = Bfloat16Product<true, Tiles::has_rounding>;
  using Instructions = typename Tiles::Instructions;
  static constexpr Index most_rows = 2 * amx_side;  // of a ProductPiece

  /// Pairs in `depth` terms, and in whole blocks of them.
  HEED_SIMD static Index pairs_of(Index depth) { return (depth + 1) / 2; }
  HEED_SIMD static Index whole_pairs_of(Index depth) { return whole_terms(depth) / 2; }

  template <class Number>
  HEED_KERNEL static void pack(MatrixRef<Number> b, Index depth, Index columns,
                               std::uint8_t* blocks) {
    constexpr Index bytes = 4 * panel_columns;  // of a pair per column
    Rounded::template pack<Number>(b, depth, columns, blocks);
    for (Index i = bytes * pairs_of(depth); i < bytes * whole_pairs_of(depth); ++i) blocks[i] = 0;
  }

  /// Prefetches the lines of out, which is written after the products: those of some rows beside
  /// each product. Stores would wait for far lines.
  template <int Lines>
  struct OutAhead {
    HEED_SIMD void operator()() {
      for (Index i = 0; i < share && row < rows; ++i, ++row) {
        HEED_UNROLL for (int j = 0; j < Lines; ++j) {
          __builtin_prefetch(out + row * out_row + j * amx_side, 1);
        }
      }
    }
    const float* out;
    Index out_row, rows, share;
    Index row = 0;
  };

  /// Rows × Vectors tiles of sums, from the column `lane` on.
  template <int Rows, int Vectors>
  HEED_KERNEL static void part(Instructions& tiles, const ProductPiece<float>& piece,
                               AmxMatrix<const std::uint16_t> a, AmxMatrix<const std::uint16_t> b,
                               Index lane) {
    constexpr auto sum_tiles = std::make_integer_sequence<int, Rows * Vectors>();
    const Index depth = whole_terms(piece.depth);
    float* out = piece.out + lane;
    const Index products = depth / amx_terms * Rows * Vectors;
    OutAhead<Vectors> ahead{out, piece.out_row, piece.out_column == 1 ? piece.rows : 0,
                            products > 0 ? 1 + piece.rows / products : 0};
    b.data += 2 * lane;
    if (piece.addend.data == nullptr && piece.out_column == 1 && piece.rows == Rows * amx_side &&
        piece.columns - lane >= Vectors * amx_side) {
      return multiply_tiles<Vectors>(sum_tiles, tiles, a, b, depth,
                                     AmxMatrix<float>{out, piece.out_row}, false, ahead);
    }
    alignas(64) float sums[Rows * amx_side][Vectors * amx_side];
    multiply_tiles<Vectors>(sum_tiles, tiles, a, b, depth,
                            AmxMatrix<float>{sums[0], Vectors * amx_side}, false, ahead);
    for (Index row = 0; row < piece.rows; ++row) {
      typename S::V row_sums[1][Vectors];
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        row_sums[0][j] = S::load(sums[row] + j * amx_side);
      }
      ProductTable<float>::finish<1, Vectors>(piece, row, lane, row_sums);
    }
  }

  HEED_KERNEL static void begin() { Instructions::begin(); }
  HEED_KERNEL static void end() { Instructions::end(); }
  /// Few rows take a whole panel at once, so that its weights are read as they lie.
  HEED_KERNEL static void piece(const ProductPiece<float>& piece, const float* a, Index a_stride,
                                const std::uint8_t* blocks) {
    Instructions tiles;
    const AmxMatrix<const std::uint16_t> left{reinterpret_cast<const std::uint16_t*>(a),
                                              2 * a_stride};
    const AmxMatrix<const std::uint16_t> right{reinterpret_cast<const std::uint16_t*>(blocks),
                                               2 * panel_columns};
    if (piece.rows <= amx_side) return part<1, 4>(tiles, piece, left, right, 0);
    for (Index lane = 0; lane < piece.columns; lane += 2 * amx_side) {
      part<2, 2>(tiles, piece, left, right, lane);
    }
  }
};

/// Bfloat16ProductKernels of the sets with tiles.
template <class Tiles, class T>
const Bfloat16ProductKernels<T>& tile_product_table() {
  using K = TileBfloat16Product<Tiles>;
  static constexpr Bfloat16ProductKernels<T> entries{K::most_rows,
                                                     2,
                                                     K::Rounded::template round_rows<T>,
                                                     K::Rounded::template round_rows<std::uint16_t>,
                                                     K::template pack<T>,
                                                     K::template pack<std::uint16_t>,
                                                     K::Rounded::narrow,
                                                     K::begin,
                                                     K::end,
                                                     K::piece};
  return entries;
}

/// Int16Pieces for many rows: a · b = 256 · (upper(a) · b) + lower(a) · b with the bytes of a, two
/// sums that are exact in any order. Every 32 terms have scales, which vectors apply. That takes
/// longer than the products of the tiles, which have half of their possible depth.
template <class Tiles, bool Vnni>
struct TileInt16Product : Int16Product<Vnni> {
  using Base = Int16Product<Vnni>;
  using S = Lanes<float>;
  using Words = typename Base::Words;
  static constexpr Index terms = Base::terms, most_blocks = product_block / terms;

  /// The rows of a piece, block by block, in order of the quads that `unpack` makes: upper bytes,
  /// then lower bytes. Rows that do not exist are 0.
  struct alignas(64) Rows {
    std::int8_t bytes[most_blocks][amx_side][2][terms];
    Int16Rows::Block blocks[most_blocks][amx_side];
  };
  HEED_KERNEL static void split(const Int16Rows& a, Index rows, Index depth, Rows& to) {
    typedef std::int16_t Shorts __attribute__((vector_size(64)));
    typedef std::int8_t Bytes __attribute__((vector_size(32)));
    for (Index row = 0; row < amx_side; ++row) {
      for (Index i = 0; i < depth / terms; ++i) {
        Shorts pairs{};
        to.blocks[i][row] = {};
        if (row < rows) {
          __builtin_memcpy(&pairs, a.pairs + row * a.pair_stride + i * Base::pairs, sizeof(pairs));
          to.blocks[i][row] = a.blocks[row * a.block_stride + i];
        }
        const Bytes bytes[] = {__builtin_convertvector(pairs >> 8, Bytes),
                               __builtin_convertvector(pairs, Bytes)};
        __builtin_memcpy(to.bytes[i][row], bytes, sizeof(bytes));
      }
    }
  }

  using Sums = std::int32_t[2][amx_side * amx_side];

  HEED_SIMD static void multiply(Tiles& tiles, const std::int8_t (&a)[amx_side][2][terms],
                                 const UnpackedBlock& b, Index lane, Sums& sums) {
    constexpr Index side = 4 * amx_side;
    tiles.template zero<0>();
    tiles.template zero<1>();
    tiles.template load<6>(b.words + lane, 4 * panel_columns);
    tiles.template load<4>(a[0][0], sizeof(a[0]));
    tiles.template load<5>(a[0][1], sizeof(a[0]));
    tiles.template multiply_bytes<true, 0, 4, 6>();
    tiles.template multiply_bytes<false, 1, 5, 6>();
    tiles.template store<0>(sums[0], side);
    tiles.template store<1>(sums[1], side);
  }

  /// 16 columns from `lane` on. Tiles multiply the next block while vectors scale the sums of this.
  template <bool Least>
  HEED_KERNEL static void part(Tiles& tiles, const ProductPiece<float>& piece, const Rows& a,
                               const UnpackedBlock* b, Index lane) {
    alignas(64) Sums sums[2];
    typename S::V totals[amx_side][1][1] = {}, scale[1], least[1] = {};
    const Index blocks = piece.depth / terms;
    multiply(tiles, a.bytes[0], b[0], lane, sums[0]);
    for (Index i = 0; i < blocks; ++i) {
      if (i + 1 < blocks) multiply(tiles, a.bytes[i + 1], b[i + 1], lane, sums[(i + 1) % 2]);
      scale[0] = S::load(b[i].scale + lane);
      if constexpr (Least) least[0] = S::load(b[i].least + lane);
      const auto& of_block = sums[i % 2];
      HEED_UNROLL for (int r = 0; r < amx_side; ++r) {
        const auto upper = Base::template load<Words>(of_block[0] + r * amx_side);
        const auto lower = Base::template load<Words>(of_block[1] + r * amx_side);
        const Words sum[1][1] = {{(upper << 8) + lower}};
        Base::template add_block<Least>(sum, &a.blocks[i][r], 0, scale, least, totals[r]);
      }
    }
    typename S::V all_sums[amx_side][1][1];  // totals stay in registers: no index is a variable
    HEED_UNROLL for (int r = 0; r < amx_side; ++r) all_sums[r][0][0] = totals[r][0][0];
    for (Index row = 0; row < piece.rows; ++row) {
      ProductTable<float>::finish<1, 1>(piece, row, lane, all_sums[row]);
    }
  }

  HEED_KERNEL static void piece(const ProductPiece<float>& piece, const Int16Rows& a,
                                const UnpackedBlock* blocks, QuantizedCodes codes) {
    Tiles tiles(terms);
    Rows rows;
    split(a, piece.rows, piece.depth, rows);
    for (Index lane = 0; lane < piece.columns; lane += amx_side) {
      Base::has_least(codes) ? part<true>(tiles, piece, rows, blocks, lane)
                             : part<false>(tiles, piece, rows, blocks, lane);
    }
  }
};

/// Int16Kernels of the sets with tiles.
template <class Tiles, class T, bool Vnni>
const Int16Kernels<T>& tile_int16_table() {
  using K = TileInt16Product<Tiles, Vnni>;
  static constexpr Int16Kernels<T> entries{
      K::round_row,
      K::int16_row,
      {product_rows, K::template unpack<false>, K::int16_piece},
      {amx_side, K::template unpack<true>, K::piece}};
  return entries;
}
