// SPDX-License-Identifier: MIT
// The matrix product of layers, on the product of micro tiles: its kernels. The loops around them
// are in tensor/detail/gemm.inl. Included by part.inl.

template <class T>
struct ProductTable {
  using S = Lanes<T>;
  static constexpr int panel = static_cast<int>(panel_columns);
  // A single row needs more columns to keep the multiplier busy.
  static constexpr int single_row_vectors = panel / S::width < 8 ? panel / S::width : 8;
  // Vectors of half a cache line: a micro tile of two of them reads a line of every row of a panel,
  // which the processor does not foresee.
  static constexpr bool half_lines = HEED_SIMD_BYTES == 32;
  // For two rows: the sums of two vectors would wait for each other.
  static constexpr int pair_vectors = (half_lines ? 2 : 1) * HEED_SIMD_VECTORS;
  // Up to how many rows lying_piece takes, measured on Zen 3 and Zen 4. The micro tiles of more
  // rows take time to compile.
  static constexpr Index lying_rows =
      HEED_SIMD_ALL_KERNELS && HEED_SIMD_BYTES >= 32 ? HEED_SIMD_BYTES / 8 : 2;

  HEED_KERNEL static void pack(MatrixRef<T> b, Index depth, Index columns, T* packed) {
    Index column = 0;
    if (b.column_stride == 1 && columns == panel) {  // row by row, to read memory sequentially
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
    // A piece of more than one vector reads whole strips: numbers there, not what memory held.
    for (; columns > S::width && column < panel; column += S::width) {
      for (Index k = 0; k < depth; ++k) S::store(packed + k * panel + column, S::broadcast(0));
    }
  }

  template <int Rows, int Vectors>
  HEED_KERNEL static void part(const ProductPiece<T>& piece, Index row, Index lane) {
    typename S::V sums[Rows][Vectors] = {};
    const auto& a = piece.a;
    fetch_out<Rows, Vectors>(piece, row, lane);
    if constexpr (half_lines && Rows > 1) {
      multiply_ahead<Rows, Vectors>(piece, row, lane, sums);
    } else {
      const auto add = [&](auto ahead) HEED_LAMBDA {
        multiply<S, Rows, Vectors>(a.data + row * a.row_stride, a.row_stride, a.column_stride,
                                   piece.b + lane, piece.b_stride, piece.depth, sums, ahead);
      };
      if constexpr (Rows == 1 && HEED_SIMD_BYTES == 64 && HEED_SIMD_ALL_KERNELS) {
        piece.soon ? add(PanelAhead<Vectors>{piece.b + lane}) : add(NothingAhead());
      } else {
        add(NothingAhead());
      }
    }
    finish<Rows, Vectors>(piece, row, lane, sums);
  }

  /// Prefetches for each term what a single row reads 4 and 16 kB later of packed panels. On an
  /// Emerald Rapids weights of 18 to 64 MB took 0.88 to 0.96 of the time; smaller ones 0.88 to 0.93
  /// from memory, but 1.03 from the third-level cache and 1.5 to 1.7 from the second.
  template <int Vectors>
  struct PanelAhead {
    const T* at;
    template <int Level = 3>
    HEED_SIMD void fetch_line() {
      constexpr Index kilobyte = 1024 / Index{sizeof(T)};
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        __builtin_prefetch(at + 4 * kilobyte + j * S::width);
        __builtin_prefetch(at + 16 * kilobyte + j * S::width, 0, 2);
      }
      at += panel;
    }
  };

  /// Multiplies, and prefetches: the processor does not foresee reads of short runs of b. The rows
  /// 16 terms ahead come into the first-level cache, and a part of `next` with each range of lanes:
  /// all of it by the last. Measured on Zen 3: 1.5 to 2 times as fast for 2 to 16 rows.
  template <int Rows, int Vectors>
  HEED_SIMD static void multiply_ahead(const ProductPiece<T>& piece, Index row, Index lane,
                                       typename S::V (&sums)[Rows][Vectors]) {
    constexpr Index lanes = Vectors * S::width;
    constexpr Index ahead = 16;  // terms
    const T* a = piece.a.data + row * piece.a.row_stride;
    const T* b = piece.b + lane;
    const T* next = piece.next == nullptr ? b : piece.next + lane * piece.depth;
    const Index step = piece.next == nullptr ? piece.b_stride : lanes;
    for (Index k = 0; k < piece.depth; ++k) {
      HEED_UNROLL for (Index at = 0; at < lanes; at += numbers_in_line<T>) {
        __builtin_prefetch(b + ahead * piece.b_stride + at);
        __builtin_prefetch(next + at, 0, 2);
      }
      multiply<S, Rows, Vectors>(a, piece.a.row_stride, 0, b, 0, 1, sums);
      a += piece.a.column_stride;
      b += piece.b_stride;
      next += step;
    }
  }

  /// Prefetches the lines of out that `finish` of a large micro tile writes, which would stop the
  /// next one if they were far away.
  template <int Rows, int Vectors>
  HEED_SIMD static void fetch_out(const ProductPiece<T>& piece, Index row, Index lane) {
    if (Rows < product_rows || piece.out_column != 1) return;
    const T* out = piece.out + row * piece.out_row + lane;
    HEED_UNROLL for (int r = 0; r < Rows; ++r) {
      HEED_UNROLL for (Index at = 0; at < Vectors * S::width; at += numbers_in_line<T>) {
        __builtin_prefetch(out + r * piece.out_row + at, 1);
      }
    }
  }

  /// Adds the addend to the sums and writes them out, for as many columns as exist.
  template <int Rows, int Vectors>
  HEED_SIMD static void finish(const ProductPiece<T>& piece, Index row, Index lane,
                               typename S::V (&sums)[Rows][Vectors]) {
    const auto& addend = piece.addend;
    const T* add = addend.data + row * addend.row_stride + lane * addend.column_stride;
    T* out = piece.out + row * piece.out_row + lane * piece.out_column;
    if (piece.columns - lane >= Vectors * S::width && piece.out_column == 1 &&
        (addend.data == nullptr || addend.column_stride == 1)) {
      HEED_UNROLL for (int r = 0; r < Rows; ++r) {
        HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
          if (addend.data != nullptr) {
            sums[r][j] = S::load(add + r * addend.row_stride + j * S::width) + sums[r][j];
          }
          S::store(out + r * piece.out_row + j * S::width, sums[r][j]);
        }
      }
      return;
    }
    T spill[Rows][Vectors * S::width];
    store_sums<S>(sums, spill[0], Vectors * S::width);
    for (int r = 0; r < Rows; ++r) {
      for (Index c = 0; c < Vectors * S::width && c < piece.columns - lane; ++c) {
        const Index at = r * addend.row_stride + c * addend.column_stride;
        out[r * piece.out_row + c * piece.out_column] =
            addend.data == nullptr ? spill[r][c] : add[at] + spill[r][c];
      }
    }
  }

  template <int Rows, int Vectors>
  HEED_SIMD static void across(const ProductPiece<T>& piece, Index row) {
    Index lane = 0;  // strips, while more than a vector is left
    for (; lane + S::width < piece.columns; lane += Vectors * S::width) {
      part<Rows, Vectors>(piece, row, lane);
    }
    if (lane < piece.columns) part<Rows, 1>(piece, row, lane);
  }

  HEED_KERNEL static void piece(const ProductPiece<T>& piece) {
    Index row = 0;
    for (; row + product_rows <= piece.rows; row += product_rows) {
      across<product_rows, HEED_SIMD_VECTORS>(piece, row);
    }
    if constexpr (product_rows > 4 && (half_lines || HEED_SIMD_ALL_KERNELS)) {
      if (row + 4 <= piece.rows) {
        across<4, HEED_SIMD_VECTORS>(piece, row);
        row += 4;
      }
    }
    for (; row + 2 <= piece.rows; row += 2) across<2, pair_vectors>(piece, row);
    if (row < piece.rows) across<1, single_row_vectors>(piece, row);
  }

  // Columns that are contiguous, as the weights of layers are.

  static constexpr int lying_vectors = 2;  // the sums of one would wait for each other, and four
                                           // vectors of columns lie in more places than the
                                           // processor foresees (1, 2, 4: 70, 96, 88 GB/s)
  static constexpr Index lying_columns = lying_vectors * S::width;

  /// Prefetches what a single row reads 6 and 24 lines later of each column, or of those behind the
  /// vector, into the first-level cache and the second. On an Emerald Rapids, a vector of columns
  /// at a time, weights beyond the second level took 0.90 to 0.95 of the time in the third and 0.84
  /// to 0.90 from memory; 4 and 8 lines for the first, or 8 to 36 for the second, differ little.
  struct ColumnsAhead : NothingAhead {
    Index depth;
    Index width;  // of the vector, in numbers
    HEED_SIMD explicit ColumnsAhead(const ProductPiece<T>& piece)
        : depth(piece.depth), width(S::width * piece.b_stride) {}

    HEED_SIMD void fetch_columns(const T* from, Index stride, Index k) const {
      fetch_lines<3>(from, stride, k, 6 * numbers_in_line<T>);
      fetch_lines<2>(from, stride, k, 24 * numbers_in_line<T>);
    }
    template <int Level>
    HEED_SIMD void fetch_lines(const T* from, Index stride, Index k, Index distance) const {
      const Index offset = k + distance < depth ? distance : distance - depth + width;
      for_each_row<S::width>(from + offset, stride, [&](int, const T* at) HEED_LAMBDA {
        __builtin_prefetch(at, 0, Level);
      });
    }
  };

  /// Adds a vector of terms from k on to the sums of the columns from `lane` on, which all exist.
  template <int Rows, int Vectors, class Ahead>
  HEED_SIMD static void add_lying(const ProductPiece<T>& piece, Index lane, Index k, Ahead& ahead,
                                  typename S::V (&sums)[Rows][Vectors]) {
    HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
      // One vector after the other: of several rows, two would not stay in registers.
      if constexpr (Rows > 1 && HEED_SIMD_BYTES >= 32) asm volatile("" ::: "memory");
      const T* from = piece.b + (lane + j * S::width) * piece.b_stride + k;
      if constexpr (std::is_same_v<Ahead, ColumnsAhead>) {
        ahead.fetch_columns(from, piece.b_stride, k);
      }
      const auto use = [&](int i, typename S::V column) HEED_LAMBDA {
        HEED_UNROLL for (int r = 0; r < Rows; ++r) {
          const auto value = S::broadcast(piece.a.data[r * piece.a.row_stride + k + i]);
          sums[r][j] = S::fma(value, column, sums[r][j]);
        }
      };
      each_column<S, true>(from, piece.b_stride, ahead, use);
    }
  }
  /// The same for the terms [k, end) and columns of which not all may exist, with sums in memory.
  template <int Vectors>
  HEED_KERNEL static void add_some_lying(const ProductPiece<T>& piece, Index lane, Index k,
                                         Index end, T* sums) {
    typename S::V first[1][Vectors];  // the sums of the first row stay in registers
    load_sums<S>(first, sums, 0);
    const auto add_terms = [&](auto whole) HEED_LAMBDA {
      typename S::V b[Vectors][S::width];
      HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
        const Index column = lane + j * S::width;
        const T* from = piece.b + column * piece.b_stride + k;
        HEED_UNROLL for (int i = 0; i < S::width; ++i) {
          const T* at = row_or_last(from, piece.b_stride, piece.columns - column, i);
          b[j][i] = whole ? S::load(at) : load_first<S>(at, end - k);
        }
        transpose<S>(b[j]);
      }
      const auto add = [&](Index row, typename S::V(&some)[1][Vectors]) HEED_LAMBDA {
        const T* at = piece.a.data + row * piece.a.row_stride + k;
        HEED_UNROLL for (int i = 0; i < S::width; ++i) {
          if (!whole && i == end - k) break;
          HEED_UNROLL for (int j = 0; j < Vectors; ++j) {
            some[0][j] = S::fma(S::broadcast(at[i]), b[j][i], some[0][j]);
          }
        }
      };
      add(0, first);
      for (Index row = 1; row < piece.rows; ++row) {
        typename S::V some[1][Vectors];
        load_sums<S>(some, sums + row * lying_columns, 0);
        add(row, some);
        store_sums<S>(some, sums + row * lying_columns, 0);
      }
    };
    for (; k + S::width <= end; k += S::width) add_terms(Known<true>());
    if (k < end) add_terms(Known<false>());
    store_sums<S>(first, sums, 0);
  }
  /// The sums of all terms, a partial sum at a time: reading each column in short runs is slower.
  template <int Rows, int Vectors, class Ahead>
  HEED_KERNEL static void rows_lying(ProductPiece<T> piece, Index lane, Ahead ahead) {
    Index k = 0;
    do {
      typename S::V sums[Rows][Vectors] = {};
      const Index end = piece.depth - k < product_block ? piece.depth : k + product_block;
      for (; k + S::width <= end; k += S::width) add_lying(piece, lane, k, ahead, sums);
      if (k < end) {
        T spill[Rows][lying_columns];
        store_sums<S>(sums, spill[0], lying_columns);
        add_some_lying<Vectors>(piece, lane, k, end, spill[0]);
        load_sums<S>(sums, spill[0], lying_columns);
        k = end;
      }
      finish<Rows, Vectors>(piece, 0, lane, sums);
      piece.addend = {piece.out, piece.out_row, piece.out_column};
    } while (k < piece.depth);
  }
  /// The same for columns of which not all may exist.
  template <int Vectors>
  HEED_KERNEL static void some_lying(ProductPiece<T> piece, Index lane) {
    Index k = 0;
    do {
      T sums[lying_rows * lying_columns] = {};
      const Index end = piece.depth - k < product_block ? piece.depth : k + product_block;
      add_some_lying<Vectors>(piece, lane, k, end, sums);
      for (Index row = 0; row < piece.rows; ++row) {
        typename S::V some[1][Vectors];
        load_sums<S>(some, sums + row * lying_columns, 0);
        finish<1, Vectors>(piece, row, lane, some);
      }
      piece.addend = {piece.out, piece.out_row, piece.out_column};
      k = end;
    } while (k < piece.depth);
  }
  template <class Ahead, int Rows = 1>
  HEED_SIMD static void whole_lying(const ProductPiece<T>& piece, Index lane, Ahead ahead) {
    if constexpr (Rows < lying_rows) {
      if (piece.rows > Rows) return whole_lying<Ahead, Rows + 1>(piece, lane, ahead);
    }
    rows_lying<Rows, lying_vectors>(piece, lane, ahead);
  }
  HEED_KERNEL static void lying_piece(const ProductPiece<T>& piece) {
    Index lane = 0;
    if constexpr (HEED_SIMD_ALL_KERNELS && HEED_SIMD_BYTES == 64) {
      for (; piece.soon && lane + S::width <= piece.columns; lane += S::width) {
        rows_lying<1, 1>(piece, lane, ColumnsAhead(piece));
      }
    }
    for (; lane + lying_columns <= piece.columns; lane += lying_columns) {
      if (HEED_SIMD_ALL_KERNELS && piece.next != nullptr) {
        const T* later = piece.next + (lane + lying_columns - panel) * piece.b_stride;
        whole_lying(piece, lane, LinesAhead::of(later, piece.b_stride, piece.depth));
      } else {
        whole_lying(piece, lane, NothingAhead());
      }
    }
    if (lane + S::width < piece.columns) {
      some_lying<2>(piece, lane);
    } else if (lane < piece.columns) {
      some_lying<1>(piece, lane);
    }
  }
};
