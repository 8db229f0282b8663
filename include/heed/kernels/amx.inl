// SPDX-License-Identifier: MIT
// Tiles: registers of 16 rows by 64 bytes, the instruction that multiplies them as bfloat16 pairs,
// and the matrix product on them. A processor has them as AMX; a twin in plain vectors computes the
// same bits anywhere, slowly, so that kernels on tiles are tested where no processor has them.
// Included by part.inl, after lanes.inl.

/// bfloat16 numbers in a row of a tile, and thus the terms that one instruction adds up. Terms come
/// in groups of this many, which start at absolute multiples: where a group starts decides bits.
inline constexpr Index amx_terms = 32;
/// Rows of a tile, and floats in one of them.
inline constexpr Index amx_side = 16;

HEED_SIMD Index whole_terms(Index count) { return (count + amx_terms - 1) / amx_terms * amx_terms; }

/// What one instruction adds to one row of sums. Both halves of the pairs are chains of fused
/// multiply-adds that start at zero; the two are added to each other, then to the sums. Denormal
/// numbers count as zero, results too. Observed on Sapphire Rapids, bit by bit: Intel's manual
/// (tdpbf16ps) leaves the order open.
template <class T>
struct TileChains {
  using S = Lanes<T>;
  using V = typename S::V;
  using Ints = typename S::Ints;  // of pairs, too

  /// A denormal number becomes a zero of its sign.
  HEED_SIMD static V flushed(V x) {
    const Ints denormal = ((Ints)x & 0x7f800000) == 0;
    return (V)((Ints)x & (~denormal | ~0x7fffffff));
  }
  HEED_SIMD static V first_of(Ints pairs) { return flushed((V)(pairs << 16)); }
  HEED_SIMD static V second_of(Ints pairs) { return flushed((V)(pairs & ~0xffff)); }

  HEED_SIMD void add(Ints a, Ints b) {
    first = flushed(S::fma(first_of(a), first_of(b), first));
    second = flushed(S::fma(second_of(a), second_of(b), second));
  }
  HEED_SIMD V added_to(V sums) const { return flushed(flushed(sums) + flushed(first + second)); }

  V first{};
  V second{};
};

/// The shapes of eight tiles, as HardwareTiles says.
struct alignas(64) TileLayout {
  explicit constexpr TileLayout(Index bytes) {
    row_bytes[4] = row_bytes[5] = static_cast<std::uint16_t>(bytes);
    rows[6] = rows[7] = static_cast<std::uint8_t>(bytes / 4);
  }
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// The processor's eight tiles. They are in use while the object lives, so nothing of them is left
/// when a kernel returns. Addresses are any, `stride` is the distance of rows in bytes. Assembler,
/// since the intrinsics of g++ 12 do not say that they read memory.
class HardwareTiles {
 public:
  static constexpr bool has_rounding = true;  // avx512_bf16, with the set amx

  /// `bytes`: 64 or 32 in a row of the tiles 4 and 5, which are left-hand factors. The tiles 6 and
  /// 7, to their right, have a quarter as many rows. The others are whole.
  explicit HardwareTiles(Index bytes = 4 * amx_side) {
    static constexpr TileLayout half(2 * amx_side), whole(4 * amx_side);
    asm volatile("ldtilecfg %0" ::"m"(bytes == 2 * amx_side ? half : whole));
  }
  ~HardwareTiles() { asm volatile("tilerelease" ::: "memory"); }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;

  template <int Tile>
  HEED_SIMD void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
  }
  template <int Tile>
  HEED_SIMD void load(const void* rows, Index stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(Tile) : "memory");
  }
  template <int Tile>
  HEED_SIMD void store(void* rows, Index stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(Tile) : "memory");
  }
  /// sums(row, lane) += Σ_k a(row, k) · b(k, lane): a row of `A` holds 32 numbers, a row of `B` a
  /// pair of numbers for each of 16 lanes.
  template <int Sums, int A, int B>
  HEED_SIMD void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(A), "i"(B));
  }
  /// The same sums of integers: a row of `A` holds numbers of 8 bits, with a sign if `Signed`, a
  /// row of `B` four signed ones for each of 16 lanes.
  template <bool Signed, int Sums, int A, int B>
  HEED_SIMD void multiply_bytes() {
    if constexpr (Signed) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(A), "i"(B));
    } else {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(A), "i"(B));
    }
  }
};

/// The same tiles in memory.
template <class T>
class TwinTiles {
  using V = typename Lanes<T>::Ints;

 public:
  static constexpr bool has_rounding = false;

  explicit TwinTiles(Index bytes = 4 * amx_side) : bytes_(bytes) {}

  template <int Tile>
  HEED_SIMD void zero() {
    for (V& row : tiles_[Tile]) row = V{};
  }
  template <int Tile>
  HEED_SIMD void load(const void* rows, Index stride) {
    load_rows(tiles_[Tile], static_cast<const char*>(rows), stride,
              Tile >= 6 ? bytes_ / 4 : amx_side, Tile / 2 == 2 ? bytes_ : 4 * amx_side);
  }
  template <int Tile>
  HEED_SIMD void store(void* rows, Index stride) {
    store_rows(tiles_[Tile], static_cast<char*>(rows), stride);
  }
  template <int Sums, int A, int B>
  HEED_SIMD void multiply() {
    multiply_rows(tiles_[Sums], tiles_[A], tiles_[B]);
  }
  template <bool Signed, int Sums, int A, int B>
  HEED_SIMD void multiply_bytes() {
    multiply_byte_rows<Signed>(tiles_[Sums], tiles_[A], tiles_[B]);
  }

 private:
  HEED_KERNEL static void load_rows(V* tile, const char* rows, Index stride, Index count,
                                    Index bytes) {
    for (Index row = 0; row < count; ++row) {
      __builtin_memcpy(tile + row, rows + row * stride, static_cast<std::size_t>(bytes));
    }
  }
  HEED_KERNEL static void store_rows(const V* tile, char* rows, Index stride) {
    for (Index row = 0; row < amx_side; ++row) {
      __builtin_memcpy(rows + row * stride, tile + row, sizeof(V));
    }
  }
  HEED_KERNEL static void multiply_rows(V* sums, const V* a, const V* b) {
    for (Index row = 0; row < amx_side; ++row) {
      TileChains<T> chains;
      for (int k = 0; k < amx_side; ++k) chains.add(a[row][k] - V{}, b[k]);
      sums[row] = (V)chains.added_to((typename Lanes<T>::V)sums[row]);
    }
  }
  template <bool Signed>
  HEED_KERNEL static void multiply_byte_rows(V* sums, const V* a, const V* b) {
    for (Index row = 0; row < amx_side; ++row) {
      for (int k = 0; k < amx_side; ++k) {
        for (int up = 24; up >= 0; up -= 8) {  // moves a byte to the top
          const auto left = static_cast<std::uint32_t>(a[row][k]) << up;
          const auto factor = Signed ? static_cast<std::int32_t>(left) >> 24
                                     : static_cast<std::int32_t>(left >> 24);
          sums[row] += factor * (b[k] << up >> 24);
        }
      }
    }
  }

  Index bytes_;
  V tiles_[8][amx_side] = {};  // with zeros where a tile is not whole
};

/// A matrix for tiles, and the distance of its rows in elements.
template <class Element>
struct AmxMatrix {
  Element* data;
  Index stride;
};

/// Adds 32 terms, from k on, to tile `Sum` of the sums, which are rows of `Across` tiles. The first
/// row brings the tiles of b, the first lane those of a.
template <int Across, int Sum, class Tiles>
HEED_SIMD void add_terms(Tiles& tiles, AmxMatrix<const std::uint16_t> a,
                         AmxMatrix<const std::uint16_t> b, Index k) {
  constexpr auto element = static_cast<Index>(sizeof(std::uint16_t));
  constexpr int row = Sum / Across, lane = Sum % Across;
  if constexpr (row == 0) {
    tiles.template load<6 + lane % 2>(b.data + k / 2 * b.stride + 2 * lane * amx_side,
                                      b.stride * element);
  }
  if constexpr (lane == 0) {
    tiles.template load<4 + row % 2>(a.data + row * amx_side * a.stride + k, a.stride * element);
  }
  tiles.template multiply<Sum, 4 + row % 2, 6 + lane % 2>();
}

/// Nothing to compute between the instructions of tiles.
struct NothingBetween {
  HEED_SIMD void operator()() const {}
};

/// sums(row, lane) (+)= Σ_k a(row, k) · b(k, lane) for rows of `Across` tiles, as many as `Sum`
/// counts: up to four tiles in one row, two rows of two or one lane of four. A row of a holds
/// `depth` numbers, a row of b pairs of numbers, lane by lane; depth is a multiple of amx_terms.
/// Calls between() after each product of two tiles.
template <int Across, int... Sum, class Tiles, class T, class Between = NothingBetween>
HEED_SIMD void multiply_tiles(std::integer_sequence<int, Sum...>, Tiles& tiles,
                              AmxMatrix<const std::uint16_t> a, AmxMatrix<const std::uint16_t> b,
                              Index depth, AmxMatrix<T> sums, bool accumulate,
                              Between&& between = {}) {
  const auto stride = sums.stride * static_cast<Index>(sizeof(T));
  const auto at = [&](int tile) __attribute__((always_inline)) {
    return sums.data + tile / Across * amx_side * sums.stride + tile % Across * amx_side;
  };
  if (accumulate) {
    (tiles.template load<Sum>(at(Sum), stride), ...);
  } else {
    (tiles.template zero<Sum>(), ...);
  }
  for (Index k = 0; k < depth; k += amx_terms) {
    ((add_terms<Across, Sum>(tiles, a, b, k), between()), ...);
  }
  (tiles.template store<Sum>(at(Sum), stride), ...);
}

/// A product for tiles, with `row_tiles` tiles of rows.
template <class T>
struct PendingProduct {
  AmxMatrix<const std::uint16_t> a;
  Index row_tiles;
  AmxMatrix<const std::uint16_t> b;
  Index depth;
  AmxMatrix<T> sums;
  bool accumulate;

  /// Products of two tiles.
  HEED_SIMD Index size() const { return row_tiles * (depth / amx_terms); }
};

/// multiply_tiles for any number of tiles of rows: up to four at once, so that an instruction need
/// not wait for the one before, and shared out evenly.
template <class Tiles, class T, class Between = NothingBetween>
HEED_SIMD void multiply_tiles(Tiles& tiles, PendingProduct<T> product, Between&& between = {}) {
  const auto take = [&](auto some) __attribute__((always_inline)) {
    multiply_tiles<1>(std::make_integer_sequence<int, some>(), tiles, product.a, product.b,
                      product.depth, product.sums, product.accumulate, between);
  };
  Index left = product.row_tiles;
  while (left > 0) {
    const Index some = left <= 4 ? left : left <= 6 ? 3 : 4;
    if (some == 4) take(Known<4>());
    if (some == 3) take(Known<3>());
    if (some == 2) take(Known<2>());
    if (some == 1) take(Known<1>());
    product.a.data += some * amx_side * product.a.stride;
    product.sums.data += some * amx_side * product.sums.stride;
    left -= some;
  }
}
